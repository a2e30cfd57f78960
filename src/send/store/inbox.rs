//! What a store's writing thread has to do: left by whoever asks, taken by the thread in groups.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::waiting::{Batch, Waiting};
use crate::decide::Nanos;

/// Tasks and batches on their way to the thread that writes.
pub(super) struct Inbox<T> {
    work: Mutex<Work<T>>,
    came: Condvar,
}

struct Work<T> {
    tasks: VecDeque<T>,
    batches: Vec<Batch>,
    /// There may be room for batches that wait.
    look: bool,
    closed: bool,
}

/// What there was.
pub(super) struct Taken<T> {
    pub(super) tasks: Vec<T>,
    /// There may be room for batches that wait.
    pub(super) look: bool,
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        let work = Work { tasks: VecDeque::new(), batches: Vec::new(), look: false, closed: false };
        Self { work: Mutex::new(work), came: Condvar::new() }
    }
}

impl<T> Inbox<T> {
    fn work(&self) -> MutexGuard<'_, Work<T>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Work<T>)) {
        change(&mut self.work());
        self.came.notify_one();
    }

    pub(super) fn ask(&self, task: T) {
        self.change(|work| work.tasks.push_back(task));
    }

    pub(super) fn submit(&self, batch: Batch) {
        self.change(|work| work.batches.push(batch));
    }

    pub(super) fn look(&self) {
        self.change(|work| work.look = true);
    }

    pub(super) fn close(&self) {
        self.change(|work| work.closed = true);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.work().closed
    }

    /// Moves the batches to those that wait, and gives `most` tasks. Blocks while there is nothing to do, but no longer than
    /// `wait`; zero: there is something to do anyway. `None` when it is closed and all is done.
    pub(super) fn take(&self, waiting: &mut Waiting, most: usize, wait: Nanos) -> Option<Taken<T>> {
        let mut work = self.work();
        let mut over = wait == Nanos::ZERO;
        loop {
            let look = std::mem::take(&mut work.look) && !waiting.is_empty();
            if over || look || !work.tasks.is_empty() || !work.batches.is_empty() {
                for batch in work.batches.drain(..) {
                    waiting.push(batch);
                }
                let some = work.tasks.len().min(most);
                return Some(Taken { tasks: work.tasks.drain(..some).collect(), look });
            }
            if work.closed {
                return None;
            }
            if wait == Nanos::NEVER {
                work = self.came.wait(work).unwrap_or_else(PoisonError::into_inner);
            } else {
                let waited = self.came.wait_timeout(work, Duration::from_nanos(wait.0));
                let (back, result) = waited.unwrap_or_else(PoisonError::into_inner);
                (work, over) = (back, result.timed_out());
            }
        }
    }

    /// Waits, but not for somebody who wants to end.
    pub(super) fn pause(&self, length: Duration) {
        let work = self.work();
        if !work.closed {
            drop(self.came.wait_timeout_while(work, length, |work| !work.closed));
        }
    }
}
