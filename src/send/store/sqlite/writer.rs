//! The one thread that writes: all who wait share a transaction, and a wait for the disk (group commit).

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::watch;

use super::open::{told, told_of_change};
use super::read::Reading;
use super::rows::Rows;
use super::task::Task;
use super::turn::Turn;
use crate::decide::Nanos;
use crate::send::store::StoreError;
use crate::send::store::inbox::Inbox;
use crate::send::store::waiting::Waiting;

/// So many jobs get in with one transaction: those who come after wait for no longer than that takes.
const MOST_JOBS: usize = 10_000;
/// So many tasks are done in one transaction, each of which may have a thousand jobs.
const MOST_TASKS: usize = 64;

/// What the thread has.
pub(super) struct Writer<'c> {
    pub(super) connection: &'c Connection,
    pub(super) rows: Rows<'c>,
    pub(super) shared: Arc<Shared>,
    pub(super) waiting: Waiting,
}

/// What the threads of a store share.
pub(super) struct Shared {
    pub(super) path: std::path::PathBuf,
    pub(super) turn: Turn,
    pub(super) inbox: Inbox<Box<dyn Task>>,
    /// The changes that were told of already: the last of our own, or the last seen.
    pub(super) seen: std::sync::atomic::AtomicU64,
    pub(super) arrivals: watch::Sender<u64>,
    pub(super) changes: watch::Sender<u64>,
}

impl Writer<'_> {
    /// Works until the inbox is closed and empty.
    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut wait = Nanos::NEVER;
        while let Some(taken) = shared.inbox.take(&mut self.waiting, MOST_TASKS, wait) {
            wait = if self.work(taken.tasks) { Nanos::ZERO } else { Nanos::NEVER };
        }
        self.waiting.fail_all(&StoreError::Closed);
    }

    /// All in one transaction; one by one if that fails. Says whether more of the batches that wait may get in at once.
    fn work(&mut self, mut tasks: Vec<Box<dyn Task>>) -> bool {
        match self.transact(&mut tasks, usize::MAX) {
            Ok(more) => {
                self.commit(tasks);
                more
            }
            Err(error @ StoreError::Locked(_)) => {
                self.waiting.fail_all(&error);
                tasks.into_iter().for_each(|task| task.fail(error.clone()));
                false
            }
            Err(_) => self.one_by_one(tasks),
        }
    }

    fn one_by_one(&mut self, tasks: Vec<Box<dyn Task>>) -> bool {
        for task in tasks {
            let mut alone = vec![task];
            match self.transact(&mut alone, 0) {
                Ok(_) => self.commit(alone),
                Err(error) => alone.into_iter().for_each(|task| task.fail(error.clone())),
            }
        }
        for _ in 0..self.waiting.len() {
            match self.transact(&mut [], 1) {
                Ok(_) => self.waiting.commit(),
                Err(error) => self.waiting.fail_first(error),
            }
        }
        false
    }

    fn commit(&mut self, tasks: Vec<Box<dyn Task>>) {
        self.waiting.commit();
        for task in tasks {
            if let Some(rest) = task.commit() {
                self.shared.inbox.ask(rest);
            }
        }
    }

    /// One transaction: the tasks, then what there is room for of the first `batches`. Either all of it is durable, or
    /// nothing has happened.
    fn transact(&mut self, tasks: &mut [Box<dyn Task>], batches: usize) -> Result<bool, StoreError> {
        let shared = Arc::clone(&self.shared);
        let _held = shared.turn.take().map_err(|error| StoreError::Broken(shared.path.clone(), error.to_string()))?;
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(|error| told(&shared.path, &error))?;
        let changed = self.connection.total_changes();
        let done = self.apply(tasks, batches).and_then(|more| {
            self.connection.execute_batch("COMMIT")?;
            Ok(more)
        });
        match done {
            Ok(more) => {
                self.rows.commit();
                if self.connection.total_changes() != changed {
                    self.tell();
                }
                Ok(more)
            }
            Err(error) => {
                // Before the roll-back, which may leave another word.
                let error = told_of_change(&shared.path, &error, self.connection);
                self.rows.roll_back();
                self.waiting.roll_back();
                if !self.connection.is_autocommit() {
                    // If this fails, too, the next BEGIN says why.
                    let _ = self.connection.execute_batch("ROLLBACK");
                }
                Err(error)
            }
        }
    }

    fn apply(&mut self, tasks: &mut [Box<dyn Task>], batches: usize) -> rusqlite::Result<bool> {
        let Self { connection, rows, waiting, .. } = self;
        rows.begin()?;
        for task in tasks {
            task.apply(rows, &Reading(connection))?;
        }
        let more = waiting.admit(batches, MOST_JOBS, |job| rows.enter(job))?;
        rows.end()?;
        Ok(more)
    }

    /// Others by the file, our own at once.
    fn tell(&self) {
        use std::sync::atomic::Ordering::Relaxed;
        let Shared { turn, seen, arrivals, changes, .. } = &*self.shared;
        let before = turn.count();
        // Only if nothing of another process came in between is there nothing left to see.
        let _ = seen.compare_exchange(before, before.wrapping_add(1), Relaxed, Relaxed);
        turn.tell(before.wrapping_add(1));
        changes.send_modify(|n| *n = n.wrapping_add(1));
        if self.rows.arrived > 0 {
            arrivals.send_modify(|n| *n = n.wrapping_add(1));
        }
    }
}
