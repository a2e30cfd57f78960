//! State of a pool: queue, threads, and completions by event loop.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;

use super::{PoolJob, PoolOverflow};

/// Job that waits for a thread, with its ticket and the receiver of its result.
pub(super) struct QueuedJob<J> {
    /// Sequence number, in order of arrival.
    pub(super) ticket: u64,
    pub(super) reply_to: ReplyTo,
    pub(super) job: J,
}

/// Destination of a result: handle, and slot there.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyTo {
    pub(super) handle: usize,
    pub(super) slot: usize,
}

/// Completed job.
pub(super) struct JobCompletion<A> {
    pub(super) ticket: u64,
    pub(super) slot: usize,
    /// Result; none if the job panicked.
    pub(super) output: Option<A>,
}

/// Completed jobs of one handle.
struct CompletionQueue<A> {
    completions: Vec<JobCompletion<A>>,
    /// Whether the handle has been notified and has not fetched yet.
    notified: bool,
    notify: Arc<Notify>,
}

/// Decision on a submitted job.
pub(super) enum EnqueueResult {
    /// Queued; a sleeping thread has to be woken if `wake`.
    Queued { ticket: u64, wake: bool },
    /// Rejected because of a full queue.
    Rejected,
}

/// State that threads and event loops share.
pub(super) struct State<J: PoolJob> {
    /// Running threads.
    pub(super) threads: usize,
    /// Threads that run a job.
    pub(super) busy: usize,
    /// Sleeping threads that have not been woken.
    sleeping: usize,
    /// Woken threads that are not awake yet.
    waking: usize,
    /// Jobs in the order of tickets: the first `queue_capacity` are queued, the others wait in front of the queue.
    pub(super) queue: VecDeque<QueuedJob<J>>,
    queue_capacity: usize,
    overflow: PoolOverflow,
    next_ticket: u64,
    completion_queues: Vec<CompletionQueue<J::Output>>,
    /// Jobs completed, cancelled before a thread started them, and rejected.
    pub(super) completed: u64,
    pub(super) cancelled: u64,
    pub(super) rejected: u64,
    /// Whether the pool has been dropped.
    pub(super) closed: bool,
}

impl<J: PoolJob> State<J> {
    pub(super) fn new(queue_capacity: usize, overflow: PoolOverflow) -> Self {
        Self {
            threads: 0,
            busy: 0,
            sleeping: 0,
            waking: 0,
            queue: VecDeque::new(),
            queue_capacity,
            overflow,
            next_ticket: 0,
            completion_queues: Vec::new(),
            completed: 0,
            cancelled: 0,
            rejected: 0,
            closed: false,
        }
    }

    /// Number of jobs in the queue.
    pub(super) fn queued(&self) -> usize {
        self.queue.len().min(self.queue_capacity)
    }

    /// Number of jobs in front of the full queue.
    pub(super) fn backlog(&self) -> usize {
        self.queue.len() - self.queued()
    }

    /// Adds a handle; returns its index.
    pub(super) fn open_handle(&mut self, notify: Arc<Notify>) -> usize {
        self.completion_queues.push(CompletionQueue { completions: Vec::new(), notified: false, notify });
        self.completion_queues.len() - 1
    }

    /// Whether a thread is free and no job is queued.
    pub(super) fn has_free_thread(&self) -> bool {
        self.busy < self.threads && self.queue.is_empty()
    }

    /// Queues or rejects a job.
    pub(super) fn enqueue(&mut self, reply_to: ReplyTo, job: J) -> EnqueueResult {
        if self.overflow == PoolOverflow::Reject && self.queue.len() >= self.queue_capacity {
            self.rejected += 1;
            return EnqueueResult::Rejected;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.queue.push_back(QueuedJob { ticket, reply_to, job });
        let wake = self.sleeping > 0;
        self.sleeping -= usize::from(wake);
        self.waking += usize::from(wake);
        EnqueueResult::Queued { ticket, wake }
    }

    /// Takes the next job for a thread.
    pub(super) fn start_next(&mut self) -> Option<QueuedJob<J>> {
        let next = self.queue.pop_front()?;
        self.busy += 1;
        Some(next)
    }

    /// Adds a completed job; returns the notifier of its handle, if that has to be notified.
    pub(super) fn complete(&mut self, handle: usize, done: JobCompletion<J::Output>) -> Option<Arc<Notify>> {
        self.busy -= 1;
        self.completed += 1;
        let completed = self.completion_queues.get_mut(handle)?;
        completed.completions.push(done);
        (!std::mem::replace(&mut completed.notified, true)).then(|| Arc::clone(&completed.notify))
    }

    /// Moves the completed jobs of a handle to an empty `fetched`.
    pub(super) fn take_completions(&mut self, handle: usize, fetched: &mut Vec<JobCompletion<J::Output>>) {
        if let Some(completed) = self.completion_queues.get_mut(handle) {
            std::mem::swap(&mut completed.completions, fetched);
            completed.notified = false;
        }
    }

    /// Removes a job that no thread has started.
    pub(super) fn cancel(&mut self, ticket: u64) -> Option<QueuedJob<J>> {
        let at = self.queue.binary_search_by_key(&ticket, |waiting| waiting.ticket).ok()?;
        self.cancelled += 1;
        self.queue.remove(at)
    }

    /// Counts a thread that goes to sleep.
    pub(super) fn mark_sleeping(&mut self) {
        self.sleeping += 1;
    }

    /// Whether a sleeping thread may wake up; takes one of the wake-ups.
    pub(super) fn take_wakeup(&mut self) -> bool {
        let woken = self.waking > 0;
        self.waking -= usize::from(woken);
        woken
    }
}
