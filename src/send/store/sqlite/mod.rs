//! A store in a file, by SQLite: several processes may submit and inspect while one sends.
//!
//! A thread of its own writes ([`writer`]), with the write-ahead log and a full sync for each commit; many who submit at
//! once share one. Another thread waits for word from other processes ([`turn`]). What reads has a connection of its
//! own, on the caller's thread, and waits for no one.

#[cfg(test)]
mod crashes;
mod locks;
mod marks;
mod open;
mod read;
mod row;
mod rows;
mod statements;
mod task;
mod turn;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::watch;

pub(crate) use open::VERSION;

use self::marks::{Left, Marks, new_session};
use self::open::told;
use self::read::Reading;
use self::rows::Rows;
use self::task::{Broom, Progress, Sweep, once};
use self::turn::{SenderLock, Turn, Watch};
use self::writer::{Shared, Writer};
use super::inbox::Inbox;
use super::leases::Leases;
use super::waiting::{Batch, Waiting};
use super::{
    Bounds, Claim, Claimed, Counts, Filter, KeyNote, KeyUse, Lease, Order, Receipt, Record, Recorded, Recovered, Sends,
    Store, StoreError, Ticket, Which,
};
use crate::decide::Nanos;
use crate::machine::clock::Clock;
use crate::send::job::{Detail, Edit, Entry, Job, UnixMs};

/// How a store is opened.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Make the file if there is none.
    pub create: bool,
    /// How much the queue holds.
    pub bounds: Bounds,
    /// Which jobs go first. Of a store that is there already, what it was made with holds.
    pub order: Order,
    /// The file gets no larger than this, in bytes: then all that needs room fails as with a full disk.
    pub most_file_bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { create: true, bounds: Bounds::default(), order: Order::FirstIn, most_file_bytes: None }
    }
}

/// Jobs in a file.
///
/// When it is dropped, what was asked of it is done; batches that wait for room get [`StoreError::Closed`].
pub struct Sqlite {
    shared: Arc<Shared>,
    reader: Mutex<Connection>,
    sender: Mutex<Option<SenderLock>>,
    leases: Arc<Mutex<Leases>>,
    marks: Arc<Marks>,
    clock: Clock,
    threads: Vec<JoinHandle<()>>,
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sqlite").field(&self.shared.path).finish()
    }
}

impl Sqlite {
    /// Opens the store in this file.
    ///
    /// # Errors
    /// The file is no store, or cannot be had.
    pub fn open(path: &Path, options: &Options) -> Result<Self, StoreError> {
        let cannot = |error: std::io::Error| StoreError::Open(path.to_owned(), error.to_string());
        let writing = open::writer(path, options)?;
        let reader = Mutex::new(open::reader(path)?);
        let turn = Turn::open(path).map_err(cannot)?;
        let watch = turn.watch().map_err(cannot)?;
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            seen: AtomicU64::new(turn.count()),
            turn,
            inbox: Inbox::default(),
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

    /// Asks for the sender's lock. In turn: who only asks has the lock for a moment, and a sender that begins then would be
    /// sent away. By a file of its own, for the writer's is ours as long as it is the writer's.
    fn in_turn<T>(&self, asks: impl FnOnce(&Path) -> std::io::Result<T>) -> Result<T, StoreError> {
        let path = &self.shared.path;
        let ask = || {
            let turn = Turn::open(path)?;
            let _held = turn.take()?;
            asks(path)
        };
        ask().map_err(|error| StoreError::Open(path.clone(), error.to_string()))
    }

    fn start(&mut self, connection: Connection, watch: Watch, bounds: Bounds) -> Result<(), StoreError> {
        let cannot = |error: std::io::Error| StoreError::Open(self.shared.path.clone(), error.to_string());
        let (shared, clock) = (Arc::clone(&self.shared), self.clock);
        let (leases, marks) = (Arc::clone(&self.leases), Arc::clone(&self.marks));
        let (says, ready) = mpsc::channel();
        let writer = thread::Builder::new().name("weir-store".into()).spawn(move || {
            // The statements belong to the connection, and both to this thread.
            match Rows::new(&connection, bounds, clock, leases, marks) {
                Ok(rows) => {
                    let _ = says.send(Ok(()));
                    Writer { connection: &connection, rows, shared, waiting: Waiting::default() }.run();
                }
                Err(error) => drop(says.send(Err(told(&shared.path, &error)))),
            }
        });
        self.threads.push(writer.map_err(cannot)?);
        ready.recv().unwrap_or(Err(StoreError::Closed))?;
        let shared = Arc::clone(&self.shared);
        let listener = thread::Builder::new().name("weir-store-ear".into()).spawn(move || listen(&shared, &watch));
        self.threads.push(listener.map_err(cannot)?);
        Ok(())
    }

    fn read<T>(&self, reads: impl FnOnce(Reading<'_>) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let connection = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        reads(Reading(&connection)).map_err(|error| told(&self.shared.path, &error))
    }

    fn ask<A, F>(&self, does: F) -> Ticket<A>
    where
        A: Send + 'static,
        F: FnMut(&mut Rows<'_>) -> rusqlite::Result<A> + Send + 'static,
    {
        let (task, ticket) = once(does);
        self.shared.inbox.ask(task);
        ticket
    }

    fn sweep(&self, filter: Filter, what: Broom) -> Ticket<u64> {
        let (reply, ticket) = Ticket::new();
        let (done, then) = (Progress::default(), Progress::default());
        self.shared.inbox.ask(Box::new(Sweep { filter, what, reply, done, then }));
        ticket
    }

    fn sends(&self) -> bool {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

/// Hears of changes by other processes.
fn listen(shared: &Shared, watch: &Watch) {
    while watch.wait().is_ok() && !shared.inbox.is_closed() {
        let count = shared.turn.count();
        if shared.seen.swap(count, Relaxed) == count {
            continue;
        }
        shared.inbox.look();
        shared.changes.send_modify(|n| *n = n.wrapping_add(1));
        shared.arrivals.send_modify(|n| *n = n.wrapping_add(1));
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.shared.inbox.close();
        if let Some(writer) = self.threads.drain(..1.min(self.threads.len())).next() {
            let _ = writer.join();
        }
        // Wakes the ear; others find nothing new. In our turn, or the count could go back behind another's.
        let held = self.shared.turn.take();
        self.shared.turn.tell(self.shared.turn.count());
        drop(held);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Store for Sqlite {
    fn submit(&self, batch: Vec<Job>) -> Ticket<Vec<Receipt>> {
        let (reply, ticket) = Ticket::new();
        self.shared.inbox.submit(Batch::new(batch, reply));
        ticket
    }

    fn start_sending(&self, now: UnixMs) -> Result<Recovered, StoreError> {
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = self.in_turn(SenderLock::take)?;
        let lock = lock.map_err(|pid| StoreError::SenderElsewhere(self.shared.path.clone(), pid))?;
        let (path, session) = (&self.shared.path, new_session());
        let (left, begins) = (Left::read(path), session.clone());
        let recovered = self.ask(move |rows| rows.recover(now, &left, &begins)).wait()?;
        // Only now: until the store has taken back what was leased, the marks of the one before count.
        self.marks.begin(path, &session);
        *sender = Some(lock);
        Ok(recovered)
    }

    fn claim(&self, claim: Claim) -> Ticket<Claimed> {
        if !self.sends() {
            return Ticket::ready(Err(StoreError::NotSending));
        }
        self.ask(move |rows| rows.claim(&claim))
    }

    fn record(&self, record: Record) -> Ticket<Recorded> {
        if !self.sends() {
            return Ticket::ready(Err(StoreError::NotSending));
        }
        self.ask(move |rows| rows.record(&record))
    }

    fn mark(&self, lease: Lease, at: UnixMs) -> bool {
        self.marks.set(lease.number, at)
    }

    fn unmark(&self, lease: Lease) -> bool {
        self.marks.end([(lease.number, false)]);
        true
    }

    fn renew(&self, leases: &[Lease], length: Nanos) -> Vec<Lease> {
        let mut held = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        held.renew(leases, self.clock.now() + length)
    }

    fn counts(&self) -> Result<Counts, StoreError> {
        self.read(|reading| reading.counts())
    }

    fn hints(&self) -> Result<Vec<(Option<String>, u64)>, StoreError> {
        self.read(|reading| reading.hints())
    }

    fn expiring(&self, before: UnixMs, most: usize) -> Result<usize, StoreError> {
        self.read(|reading| reading.expiring(before, most))
    }

    fn list(&self, filter: &Filter, after: u64, most: usize) -> Result<Vec<Entry>, StoreError> {
        let found = self.read(|reading| reading.page(filter, after, most))?;
        Ok(found.into_iter().map(|(entry, _)| entry).collect())
    }

    fn inspect(&self, which: &Which) -> Result<Option<Detail>, StoreError> {
        self.read(|reading| reading.inspect(which))
    }

    fn edit(&self, number: u64, edit: Edit, now: UnixMs) -> Ticket<bool> {
        self.ask(move |rows| rows.edit(number, &edit, now))
    }

    fn retry(&self, filter: Filter, expires: Option<UnixMs>, now: UnixMs) -> Ticket<u64> {
        self.sweep(filter, Broom::Retry { expires, now })
    }

    fn purge(&self, filter: Filter) -> Ticket<u64> {
        self.sweep(filter, Broom::Purge)
    }

    fn keys(&self) -> Result<Vec<KeyNote>, StoreError> {
        self.read(|reading| reading.keys())
    }

    fn arrivals(&self) -> watch::Receiver<u64> {
        self.shared.arrivals.subscribe()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    fn sender(&self) -> Result<Sends, StoreError> {
        if self.sends() {
            return Ok(Sends::Process(Some(std::process::id())));
        }
        let holder = self.in_turn(SenderLock::holder)?;
        Ok(holder.map_or(Sends::Nobody, Sends::Process))
    }

    fn key_uses(&self) -> Result<Vec<KeyUse>, StoreError> {
        self.read(|reading| reading.key_uses())
    }
}
