//! Work queue of a store's writer thread: filled by callers, taken by the thread in groups.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::submission_queue::{SubmitBatch, SubmitQueue};
use weir_base::Nanos;
use weir_machine::lock::{lock, wait, wait_timeout, wait_timeout_while};

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
    fn update(&self, change: impl FnOnce(&mut WorkQueueState<T>)) {
        change(&mut lock(&self.state));
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
        lock(&self.state).closed
    }

    /// Moves new batches to those that wait, and takes at most `most` tasks. Blocks while there is nothing to do, at
    /// most for `timeout`. `None` when the queue is closed and empty.
    pub(super) fn take(&self, waiting: &mut SubmitQueue, most: usize, timeout: Nanos) -> Option<WorkBatch<T>> {
        let mut work = lock(&self.state);
        let mut over = timeout == Nanos::ZERO;
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
            if timeout == Nanos::NEVER {
                work = wait(&self.changed, work);
            } else {
                (work, over) = wait_timeout(&self.changed, work, Duration::from_nanos(timeout.0));
            }
        }
    }

    /// Sleeps, unless the queue is closed.
    pub(super) fn sleep_unless_closed(&self, length: Duration) {
        let work = lock(&self.state);
        if !work.closed {
            drop(wait_timeout_while(&self.changed, work, length, |work| !work.closed));
        }
    }
}
