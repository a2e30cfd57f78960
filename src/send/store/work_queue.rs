//! Work queue of a store's writer thread: filled by callers, taken by the thread in groups.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::submission_queue::{SubmitBatch, SubmitQueue};
use crate::decide::Nanos;

/// Pending tasks and batches.
pub(super) struct WorkQueue<T> {
    state: Mutex<WorkQueueState<T>>,
    changed: Condvar,
}

struct WorkQueueState<T> {
    tasks: VecDeque<T>,
    batches: Vec<SubmitBatch>,
    /// Whether waiting batches may fit.
    may_have_room: bool,
    closed: bool,
}

/// Work taken from the queue.
pub(super) struct WorkBatch<T> {
    pub(super) tasks: Vec<T>,
    /// Whether waiting batches may fit.
    pub(super) may_have_room: bool,
}

impl<T> Default for WorkQueue<T> {
    fn default() -> Self {
        let work = WorkQueueState { tasks: VecDeque::new(), batches: Vec::new(), may_have_room: false, closed: false };
        Self { state: Mutex::new(work), changed: Condvar::new() }
    }
}

impl<T> WorkQueue<T> {
    fn lock(&self) -> MutexGuard<'_, WorkQueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut WorkQueueState<T>)) {
        change(&mut self.lock());
        self.changed.notify_one();
    }

    pub(super) fn push(&self, task: T) {
        self.update(|work| work.tasks.push_back(task));
    }

    pub(super) fn submit(&self, batch: SubmitBatch) {
        self.update(|work| work.batches.push(batch));
    }

    pub(super) fn signal_room(&self) {
        self.update(|work| work.may_have_room = true);
    }

    pub(super) fn close(&self) {
        self.update(|work| work.closed = true);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Moves new batches to those that wait, and takes at most `most` tasks. Blocks while there is nothing to do, at
    /// most for `wait`. `None` when the queue is closed and empty.
    pub(super) fn take(&self, waiting: &mut SubmitQueue, most: usize, wait: Nanos) -> Option<WorkBatch<T>> {
        let mut work = self.lock();
        let mut over = wait == Nanos::ZERO;
        loop {
            let look = std::mem::take(&mut work.may_have_room) && !waiting.is_empty();
            if over || look || !work.tasks.is_empty() || !work.batches.is_empty() {
                for batch in work.batches.drain(..) {
                    waiting.push(batch);
                }
                let some = work.tasks.len().min(most);
                return Some(WorkBatch { tasks: work.tasks.drain(..some).collect(), may_have_room: look });
            }
            if work.closed {
                return None;
            }
            if wait == Nanos::NEVER {
                work = self.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
            } else {
                let waited = self.changed.wait_timeout(work, Duration::from_nanos(wait.0));
                let (back, result) = waited.unwrap_or_else(PoisonError::into_inner);
                (work, over) = (back, result.timed_out());
            }
        }
    }

    /// Sleeps, unless the queue is closed.
    pub(super) fn sleep_unless_closed(&self, length: Duration) {
        let work = self.lock();
        if !work.closed {
            drop(self.changed.wait_timeout_while(work, length, |work| !work.closed));
        }
    }
}
