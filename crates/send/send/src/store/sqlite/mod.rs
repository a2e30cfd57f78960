//! Store in a SQLite file: several processes may submit and inspect while one sends.
//!
//! A writer thread ([`writer`]) commits with the write-ahead log and a full sync; concurrent calls share a commit.
//! Another thread waits for changes by other processes ([`write_lock`]). Reads have a connection of their own, on the
//! caller's thread, and do not block.

#[cfg(target_os = "linux")]
mod locks;
mod marks;
mod open;
mod read;
mod row;
mod rows;
mod statements;
mod task;
mod write_lock;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::watch;

use self::marks::{PreviousMarks, SentMarks, new_session};
use self::open::store_error;
use self::read::TableReader;
use self::rows::TableWriter;
use self::task::{BulkAction, BulkProgress, BulkTask, single};
use self::write_lock::{SenderLock, WriteLock};
use self::writer::{SqliteStoreShared, SqliteWriter};
use super::leases::Leases;
use super::submission_queue::{SubmitBatch, SubmitQueue};
use super::work_queue::WorkQueue;
use super::{
    ActiveSenders, ClaimReply, ClaimRequest, JobCounts, JobFilter, JobLease, JobOrder, JobSelector, KeyUsage,
    QueueBounds, Receipt, RecordReply, RecordRequest, Recovery, Store, StoreError, StoreFuture, StoredKeyState,
};
use crate::job::{Job, JobDetail, JobEdit, JobEntry, UnixMs};
use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::lock::lock;
use weir_machine::system::FileWatcher;

/// Options of opening a store.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether a missing file is created.
    pub create: bool,
    /// Bounds of the open jobs.
    pub bounds: QueueBounds,
    /// Order of a new store; an existing one has its own.
    pub order: JobOrder,
    /// Maximum file size in bytes; beyond it writes fail as on a full disk.
    pub max_file_bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { create: true, bounds: QueueBounds::default(), order: JobOrder::Fifo, max_file_bytes: None }
    }
}

/// Store in a SQLite file.
///
/// Pending calls are finished on drop; batches that wait for room get [`StoreError::Closed`].
pub struct SqliteStore {
    shared: Arc<SqliteStoreShared>,
    reader: Mutex<Connection>,
    sender: Mutex<Option<SenderLock>>,
    leases: Arc<Mutex<Leases>>,
    marks: Arc<SentMarks>,
    clock: Clock,
    threads: Vec<JoinHandle<()>>,
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sqlite").field(&self.shared.path).finish()
    }
}

impl SqliteStore {
    /// Opens the store.
    ///
    /// # Errors
    /// The file is not a store, or cannot be opened.
    pub fn open(path: &Path, options: &Options) -> Result<Self, StoreError> {
        let cannot = |error: std::io::Error| StoreError::Open(path.to_owned(), error.to_string());
        let writing = open::open_writer(path, options)?;
        let reader = Mutex::new(open::open_reader(path)?);
        let write_lock = WriteLock::open(path).map_err(cannot)?;
        let watch = write_lock.watch().map_err(cannot)?;
        let shared = Arc::new(SqliteStoreShared {
            path: path.to_owned(),
            seen_change_count: AtomicU64::new(write_lock.change_count()),
            write_lock,
            work_queue: WorkQueue::default(),
            arrivals: watch::Sender::new(0),
            changes: watch::Sender::new(0),
        });
        let clock = Clock::starting_in(Nanos::ZERO);
        let (leases, marks) = (Arc::default(), Arc::default());
        let mut store =
            Self { shared, reader, sender: Mutex::new(None), leases, marks, clock, threads: Vec::with_capacity(2) };
        store.start(writing, watch, options.bounds)?;
        Ok(store)
    }

    /// Acquires the sender's lock. Serialized by a lock file: a test of the lock holds it for a moment, and a sender
    /// that starts then would be rejected. Not by the writer's own lock, which this process may hold.
    fn with_write_lock<T>(&self, asks: impl FnOnce(&Path) -> std::io::Result<T>) -> Result<T, StoreError> {
        let path = &self.shared.path;
        let ask = || {
            let write_lock = WriteLock::open(path)?;
            let _held = write_lock.lock()?;
            asks(path)
        };
        ask().map_err(|error| StoreError::Open(path.clone(), error.to_string()))
    }

    fn start(&mut self, connection: Connection, watch: FileWatcher, bounds: QueueBounds) -> Result<(), StoreError> {
        let cannot = |error: std::io::Error| StoreError::Open(self.shared.path.clone(), error.to_string());
        let (shared, clock) = (Arc::clone(&self.shared), self.clock);
        let (leases, marks) = (Arc::clone(&self.leases), Arc::clone(&self.marks));
        let (ready_sender, ready) = mpsc::channel();
        let writer = thread::Builder::new().name("weir-store".into()).spawn(move || {
            // The statements borrow the connection, and both live on this thread.
            match TableWriter::new(&connection, bounds, clock, leases, marks) {
                Ok(rows) => {
                    let _ = ready_sender.send(Ok(()));
                    SqliteWriter { connection: &connection, rows, shared, submit_queue: SubmitQueue::default() }.run();
                }
                Err(error) => drop(ready_sender.send(Err(store_error(&shared.path, &error)))),
            }
        });
        self.threads.push(writer.map_err(cannot)?);
        ready.recv().unwrap_or(Err(StoreError::Closed))?;
        let shared = Arc::clone(&self.shared);
        let listener =
            thread::Builder::new().name("weir-store-ear".into()).spawn(move || listen_for_changes(&shared, &watch));
        self.threads.push(listener.map_err(cannot)?);
        Ok(())
    }

    fn read<T>(&self, reads: impl FnOnce(TableReader<'_>) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let connection = lock(&self.reader);
        reads(TableReader(&connection)).map_err(|error| store_error(&self.shared.path, &error))
    }

    fn submit_task<A, F>(&self, does: F) -> StoreFuture<A>
    where
        A: Send + 'static,
        F: FnMut(&mut TableWriter<'_>) -> rusqlite::Result<A> + Send + 'static,
    {
        let (task, ticket) = single(does);
        self.shared.work_queue.push(task);
        ticket
    }

    fn submit_bulk_task(&self, filter: JobFilter, what: BulkAction) -> StoreFuture<u64> {
        let (reply, ticket) = StoreFuture::new();
        let (done, then) = (BulkProgress::default(), BulkProgress::default());
        self.shared.work_queue.push(Box::new(BulkTask { filter, action: what, reply, committed: done, pending: then }));
        ticket
    }

    fn is_sender(&self) -> bool {
        lock(&self.sender).is_some()
    }
}

/// Listens for changes by other processes.
fn listen_for_changes(shared: &SqliteStoreShared, watch: &FileWatcher) {
    while watch.wait().is_ok() && !shared.work_queue.is_closed() {
        let count = shared.write_lock.change_count();
        if shared.seen_change_count.swap(count, Relaxed) == count {
            continue;
        }
        shared.work_queue.signal_room();
        shared.changes.send_modify(|n| *n = n.wrapping_add(1));
        shared.arrivals.send_modify(|n| *n = n.wrapping_add(1));
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.shared.work_queue.close();
        if let Some(writer) = self.threads.drain(..1.min(self.threads.len())).next() {
            let _ = writer.join();
        }
        // Wakes the listener, without a change. Under the lock, or the counter could decrease.
        let held = self.shared.write_lock.lock();
        self.shared.write_lock.publish_change_count(self.shared.write_lock.change_count());
        drop(held);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Store for SqliteStore {
    fn submit(&self, batch: Vec<Job>) -> StoreFuture<Vec<Receipt>> {
        let (reply, ticket) = StoreFuture::new();
        self.shared.work_queue.submit(SubmitBatch::new(batch, reply));
        ticket
    }

    fn start_sending(&self, now: UnixMs) -> Result<Recovery, StoreError> {
        let mut sender = lock(&self.sender);
        let lock = self.with_write_lock(SenderLock::try_acquire)?;
        let lock = lock.map_err(|pid| StoreError::AnotherSender(self.shared.path.clone(), pid))?;
        let (path, session) = (&self.shared.path, new_session());
        let (left, begins) = (PreviousMarks::read(path), session.clone());
        let recovered = self.submit_task(move |rows| rows.recover(now, &left, &begins)).wait()?;
        // Only now: until leased jobs are requeued, the previous sender's marks count.
        self.marks.begin_session(path, &session);
        *sender = Some(lock);
        Ok(recovered)
    }

    fn claim(&self, claim: ClaimRequest) -> StoreFuture<ClaimReply> {
        if !self.is_sender() {
            return StoreFuture::ready(Err(StoreError::NotSending));
        }
        self.submit_task(move |rows| rows.claim(&claim))
    }

    fn record(&self, record: RecordRequest) -> StoreFuture<RecordReply> {
        if !self.is_sender() {
            return StoreFuture::ready(Err(StoreError::NotSending));
        }
        self.submit_task(move |rows| rows.record(&record))
    }

    fn marks_at_once(&self) -> bool {
        self.marks.is_open()
    }

    fn mark_sent(&self, leases: &[JobLease], at: UnixMs) -> Vec<JobLease> {
        let is_marked = self.marks.set(leases.iter().map(|lease| lease.number), at);
        if is_marked { Vec::new() } else { leases.to_vec() }
    }

    fn unmark_sent(&self, lease: JobLease) -> bool {
        self.marks.clear([(lease.number, false)]);
        true
    }

    fn renew(&self, leases: &[JobLease], length: Nanos) -> Vec<JobLease> {
        let mut held = lock(&self.leases);
        held.renew(leases, self.clock.now() + length)
    }

    fn counts(&self) -> Result<JobCounts, StoreError> {
        self.read(|reading| reading.counts())
    }

    fn queued_by_key(&self) -> Result<Vec<(Option<String>, u64)>, StoreError> {
        self.read(|reading| reading.queued_by_key())
    }

    fn expiring(&self, before: UnixMs, most: usize) -> Result<usize, StoreError> {
        self.read(|reading| reading.expiring(before, most))
    }

    fn list(&self, filter: &JobFilter, after: u64, most: usize) -> Result<Vec<JobEntry>, StoreError> {
        let found = self.read(|reading| reading.page(filter, after, most))?;
        Ok(found.into_iter().map(|(entry, _)| entry).collect())
    }

    fn inspect(&self, which: &JobSelector) -> Result<Option<JobDetail>, StoreError> {
        self.read(|reading| reading.inspect(which))
    }

    fn edit(&self, number: u64, edit: JobEdit, now: UnixMs) -> StoreFuture<bool> {
        self.submit_task(move |rows| rows.edit(number, &edit, now))
    }

    fn retry(&self, filter: JobFilter, expires: Option<UnixMs>, now: UnixMs) -> StoreFuture<u64> {
        self.submit_bulk_task(filter, BulkAction::Retry { expires, now })
    }

    fn purge(&self, filter: JobFilter) -> StoreFuture<u64> {
        self.submit_bulk_task(filter, BulkAction::Purge)
    }

    fn key_states(&self) -> Result<Vec<StoredKeyState>, StoreError> {
        self.read(|reading| reading.key_states())
    }

    fn arrivals(&self) -> watch::Receiver<u64> {
        self.shared.arrivals.subscribe()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    fn active_senders(&self) -> Result<ActiveSenders, StoreError> {
        if self.is_sender() {
            return Ok(ActiveSenders::Process(Some(std::process::id())));
        }
        let holder = self.with_write_lock(SenderLock::holder)?;
        Ok(holder.map_or(ActiveSenders::None, ActiveSenders::Process))
    }

    fn key_usage(&self) -> Result<Vec<KeyUsage>, StoreError> {
        self.read(|reading| reading.key_usage())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
mod tests;
