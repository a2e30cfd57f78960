//! Writer thread: pending calls share a transaction and a sync (group commit).

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::watch;

use super::open::{store_error, write_error};
use super::read::TableReader;
use super::rows::TableWriter;
use super::task::WriteTask;
use super::write_lock::WriteLock;
use crate::store::StoreError;
use crate::store::submission_queue::SubmitQueue;
use crate::store::work_queue::WorkQueue;
use weir_base::Nanos;

/// Jobs per transaction, which bounds the wait of later calls.
const MAX_SUBMIT_JOBS: usize = 10_000;
/// Tasks per transaction, each of up to a thousand jobs.
const MAX_TRANSACTION_TASKS: usize = 64;

/// State of the writer thread.
pub(super) struct SqliteWriter<'c> {
    pub(super) connection: &'c Connection,
    pub(super) rows: TableWriter<'c>,
    pub(super) shared: Arc<SqliteStoreShared>,
    pub(super) submit_queue: SubmitQueue,
}

/// State shared by the threads of a store.
pub(super) struct SqliteStoreShared {
    pub(super) path: std::path::PathBuf,
    pub(super) write_lock: WriteLock,
    pub(super) work_queue: WorkQueue<Box<dyn WriteTask>>,
    /// Counter of changes that watchers know: the last own change, or the last one seen.
    pub(super) seen_change_count: std::sync::atomic::AtomicU64,
    pub(super) arrivals: watch::Sender<u64>,
    pub(super) changes: watch::Sender<u64>,
}

impl SqliteWriter<'_> {
    /// Works until the work queue is closed and empty.
    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut wait = Nanos::NEVER;
        while let Some(taken) = shared.work_queue.take(&mut self.submit_queue, MAX_TRANSACTION_TASKS, wait) {
            wait = if self.run_tasks(taken.tasks) { Nanos::ZERO } else { Nanos::NEVER };
        }
        self.submit_queue.fail_all(&StoreError::Closed);
    }

    /// Executes all in one transaction; one by one if that fails. Returns whether more waiting batches may fit at once.
    fn run_tasks(&mut self, mut tasks: Vec<Box<dyn WriteTask>>) -> bool {
        match self.transact(&mut tasks, usize::MAX) {
            Ok(more) => {
                self.commit(tasks);
                more
            }
            Err(error @ StoreError::Locked(_)) => {
                self.submit_queue.fail_all(&error);
                tasks.into_iter().for_each(|task| task.fail(error.clone()));
                false
            }
            Err(_) => self.run_one_by_one(tasks),
        }
    }

    fn run_one_by_one(&mut self, tasks: Vec<Box<dyn WriteTask>>) -> bool {
        for task in tasks {
            let mut alone = vec![task];
            match self.transact(&mut alone, 0) {
                Ok(_) => self.commit(alone),
                Err(error) => alone.into_iter().for_each(|task| task.fail(error.clone())),
            }
        }
        for _ in 0..self.submit_queue.len() {
            match self.transact(&mut [], 1) {
                Ok(_) => self.submit_queue.commit(),
                Err(error) => self.submit_queue.fail_first(error),
            }
        }
        false
    }

    fn commit(&mut self, tasks: Vec<Box<dyn WriteTask>>) {
        self.submit_queue.commit();
        for task in tasks {
            if let Some(rest) = task.commit() {
                self.shared.work_queue.push(rest);
            }
        }
    }

    /// One transaction: the tasks, then jobs of the first `batches` while there is room. All of it is durable, or
    /// nothing.
    fn transact(&mut self, tasks: &mut [Box<dyn WriteTask>], batches: usize) -> Result<bool, StoreError> {
        let shared = Arc::clone(&self.shared);
        let _held = shared
            .write_lock
            .lock()
            .map_err(|error| StoreError::ReadWriteFailed(shared.path.clone(), error.to_string()))?;
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(|error| store_error(&shared.path, &error))?;
        let changed = self.connection.total_changes();
        let done = self.apply(tasks, batches).and_then(|more| {
            self.connection.execute_batch("COMMIT")?;
            Ok(more)
        });
        match done {
            Ok(more) => {
                self.rows.commit();
                if self.connection.total_changes() != changed {
                    self.publish_change();
                }
                Ok(more)
            }
            Err(error) => {
                // Before the rollback, which may leave another error number.
                let error = write_error(&shared.path, &error, self.connection);
                self.rows.roll_back();
                self.submit_queue.roll_back();
                if !self.connection.is_autocommit() {
                    // If this fails, too, the next BEGIN has the error.
                    let _ = self.connection.execute_batch("ROLLBACK");
                }
                Err(error)
            }
        }
    }

    fn apply(&mut self, tasks: &mut [Box<dyn WriteTask>], batches: usize) -> rusqlite::Result<bool> {
        let Self { connection, rows, submit_queue: waiting, .. } = self;
        rows.begin()?;
        for task in tasks {
            task.apply(rows, &TableReader(connection))?;
        }
        let more = waiting.admit(batches, MAX_SUBMIT_JOBS, |job| rows.try_submit(job))?;
        rows.end()?;
        Ok(more)
    }

    /// Notifies other processes by the file, this one directly.
    fn publish_change(&self) {
        use std::sync::atomic::Ordering::Relaxed;
        let SqliteStoreShared { write_lock: turn, seen_change_count: seen, arrivals, changes, .. } = &*self.shared;
        let before = turn.change_count();
        // Unless another process made a change in between, there is nothing left to see.
        let _ = seen.compare_exchange(before, before.wrapping_add(1), Relaxed, Relaxed);
        turn.publish_change_count(before.wrapping_add(1));
        changes.send_modify(|n| *n = n.wrapping_add(1));
        if self.rows.arrival_count > 0 {
            arrivals.send_modify(|n| *n = n.wrapping_add(1));
        }
    }
}
