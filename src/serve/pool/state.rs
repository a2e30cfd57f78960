//! What a pool's lock guards: who waits, who works, and what has been done for whom.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;

use super::{PoolJob, PoolOverflow};

/// A job on its way to a thread.
pub(super) struct QueuedJob<J> {
    /// Counts up; who came first has the lowest.
    pub(super) ticket: u64,
    pub(super) reply_to: ReplyTo,
    pub(super) job: J,
}

/// Where an answer belongs: which desk, and who there.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyTo {
    pub(super) handle: usize,
    pub(super) slot: usize,
}

/// What came of a job.
pub(super) struct JobCompletion<A> {
    pub(super) ticket: u64,
    pub(super) slot: usize,
    /// None: it panicked.
    pub(super) output: Option<A>,
}

/// What lies ready for one desk.
struct CompletionQueue<A> {
    completions: Vec<JobCompletion<A>>,
    /// The desk has been told, and has not looked yet.
    notified: bool,
    notify: Arc<Notify>,
}

/// What becomes of a job that comes.
pub(super) enum EnqueueResult {
    /// It waits for a thread; one that sleeps has to be woken if `wake`.
    Queued { ticket: u64, wake: bool },
    /// The queue is full.
    Rejected,
}

/// What threads and event loops share.
pub(super) struct State<J: PoolJob> {
    /// Those that live.
    pub(super) threads: usize,
    /// Those at a job.
    pub(super) busy: usize,
    /// Those that sleep and have not been called.
    sleeping: usize,
    /// Those that were called and have not noticed.
    waking: usize,
    /// In the order of their tickets. The first `room` are the queue; the others wait in front of it.
    pub(super) queue: VecDeque<QueuedJob<J>>,
    queue_capacity: usize,
    overflow: PoolOverflow,
    next_ticket: u64,
    completion_queues: Vec<CompletionQueue<J::Output>>,
    /// Jobs that were done, that were given up before a thread began with them, and that found no room.
    pub(super) completed: u64,
    pub(super) cancelled: u64,
    pub(super) rejected: u64,
    /// The pool ends.
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

    /// Jobs in the queue, and in front of it.
    pub(super) fn lengths(&self) -> (usize, usize) {
        let queue = self.queue.len().min(self.queue_capacity);
        (queue, self.queue.len() - queue)
    }

    /// A desk opens; its number.
    pub(super) fn open_handle(&mut self, bell: Arc<Notify>) -> usize {
        self.completion_queues.push(CompletionQueue { completions: Vec::new(), notified: false, notify: bell });
        self.completion_queues.len() - 1
    }

    /// Whether a thread is free and nobody waits for one.
    pub(super) fn has_free_thread(&self) -> bool {
        self.busy < self.threads && self.queue.is_empty()
    }

    /// A job comes.
    pub(super) fn enqueue(&mut self, home: ReplyTo, job: J) -> EnqueueResult {
        if self.overflow == PoolOverflow::Reject && self.queue.len() >= self.queue_capacity {
            self.rejected += 1;
            return EnqueueResult::Rejected;
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.queue.push_back(QueuedJob { ticket, reply_to: home, job });
        let wake = self.sleeping > 0;
        self.sleeping -= usize::from(wake);
        self.waking += usize::from(wake);
        EnqueueResult::Queued { ticket, wake }
    }

    /// A thread takes the next job.
    pub(super) fn start_next(&mut self) -> Option<QueuedJob<J>> {
        let next = self.queue.pop_front()?;
        self.busy += 1;
        Some(next)
    }

    /// A thread has done its job; the bell of the desk, if it has to be rung.
    pub(super) fn complete(&mut self, desk: usize, done: JobCompletion<J::Output>) -> Option<Arc<Notify>> {
        self.busy -= 1;
        self.completed += 1;
        let tray = self.completion_queues.get_mut(desk)?;
        tray.completions.push(done);
        (!std::mem::replace(&mut tray.notified, true)).then(|| Arc::clone(&tray.notify))
    }

    /// A desk fetches what is done, into an empty `fetched`.
    pub(super) fn take_completions(&mut self, desk: usize, fetched: &mut Vec<JobCompletion<J::Output>>) {
        if let Some(tray) = self.completion_queues.get_mut(desk) {
            std::mem::swap(&mut tray.completions, fetched);
            tray.notified = false;
        }
    }

    /// The job, if no thread has begun with it.
    pub(super) fn cancel(&mut self, ticket: u64) -> Option<QueuedJob<J>> {
        let at = self.queue.binary_search_by_key(&ticket, |waiting| waiting.ticket).ok()?;
        self.cancelled += 1;
        self.queue.remove(at)
    }

    /// A thread lies down.
    pub(super) fn mark_sleeping(&mut self) {
        self.sleeping += 1;
    }

    /// Whether a thread that sleeps is one of those that were called.
    pub(super) fn take_wakeup(&mut self) -> bool {
        let called = self.waking > 0;
        self.waking -= usize::from(called);
        called
    }
}
