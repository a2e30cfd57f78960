//! Handle of a pool: an event loop's pending jobs and their results.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use slab::Slab;
use tokio::sync::Notify;

use super::state::{EnqueueResult, ReplyTo};
use super::{JobError, PoolJob, PoolShared, run};
use weir_machine::executor::spawn_task;
use weir_machine::lock::lock;

/// Event loop's side of a pool: submits jobs.
pub struct PoolHandle<J: PoolJob> {
    inner: Rc<PoolHandleInner<J>>,
}

struct PoolHandleInner<J: PoolJob> {
    shared: Arc<PoolShared<J>>,
    handle_index: usize,
    /// Pending jobs.
    slots: RefCell<Slab<ReplySlot<J::Output>>>,
}

/// Slot of a pending job. Slots are reused; the ticket identifies the job.
struct ReplySlot<A> {
    ticket: u64,
    waker: Option<Waker>,
    result: Option<Result<A, JobError>>,
}

impl<J: PoolJob> PoolHandle<J> {
    /// Handle for the event loop of this thread, which has to run local tasks.
    pub(super) fn new(shared: Arc<PoolShared<J>>) -> Self {
        let notify = Arc::new(Notify::new());
        let handle_index = lock(&shared.state).open_handle(Arc::clone(&notify));
        let inner = Rc::new(PoolHandleInner { shared, handle_index, slots: RefCell::default() });
        spawn_task(deliver_replies(Rc::clone(&inner), notify));
        Self { inner }
    }

    /// Submits a job, which queues behind earlier ones. If the future is dropped before a thread starts the job, it is
    /// cancelled.
    pub fn submit(&self, job: J) -> JobFuture<'_, J> {
        let handle = &*self.inner;
        let mut state = lock(&handle.shared.state);
        if job.is_brief() && state.has_free_thread() {
            state.completed += 1;
            drop(state);
            let result = run(job).ok_or(JobError::Panicked);
            return JobFuture { handle, progress: JobProgress::Done(Some(result)) };
        }
        let mut slots = handle.slots.borrow_mut();
        let vacant = slots.vacant_entry();
        let reply_to = ReplyTo { handle: handle.handle_index, slot: vacant.key() };
        let EnqueueResult::Queued { ticket, wake } = state.enqueue(reply_to, job) else {
            return JobFuture { handle, progress: JobProgress::Done(Some(Err(JobError::Rejected))) };
        };
        drop(state);
        vacant.insert(ReplySlot { ticket, waker: None, result: None });
        if wake {
            handle.shared.work_available.notify_one();
        }
        JobFuture { handle, progress: JobProgress::Waiting { slot: reply_to.slot, ticket } }
    }

    /// Waits until no thread runs a job.
    pub async fn wait_idle(&self) {
        let shared = &self.inner.shared;
        loop {
            let idle = shared.idle.notified();
            if lock(&shared.state).busy == 0 {
                return;
            }
            idle.await;
        }
    }
}

/// Delivers results to pending jobs.
async fn deliver_replies<J: PoolJob>(handle: Rc<PoolHandleInner<J>>, notify: Arc<Notify>) {
    let mut fetched = Vec::new();
    loop {
        notify.notified().await;
        lock(&handle.shared.state).take_completions(handle.handle_index, &mut fetched);
        for done in fetched.drain(..) {
            let waker = match handle.slots.borrow_mut().get_mut(done.slot) {
                Some(slot) if slot.ticket == done.ticket => {
                    slot.result = Some(done.output.ok_or(JobError::Panicked));
                    slot.waker.take()
                }
                // The future has been dropped.
                _ => None,
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// Future of a submitted job; see [`PoolHandle::submit`].
pub struct JobFuture<'a, J: PoolJob> {
    handle: &'a PoolHandleInner<J>,
    progress: JobProgress<J::Output>,
}

/// Progress of a submitted job.
enum JobProgress<A> {
    Waiting {
        slot: usize,
        ticket: u64,
    },
    /// Completed; none once the result has been returned.
    Done(Option<Result<A, JobError>>),
}

// No field is pinned.
impl<J: PoolJob> Unpin for JobFuture<'_, J> {}

impl<J: PoolJob> Future for JobFuture<'_, J> {
    type Output = Result<J::Output, JobError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let at = match &mut self.progress {
            JobProgress::Waiting { slot, .. } => *slot,
            JobProgress::Done(result) => return result.take().map_or(Poll::Pending, Poll::Ready),
        };
        let mut slots = self.handle.slots.borrow_mut();
        let Some(slot) = slots.get_mut(at) else { return Poll::Pending };
        if let Some(result) = slot.result.take() {
            slots.remove(at);
            drop(slots);
            self.progress = JobProgress::Done(None);
            return Poll::Ready(result);
        }
        if !slot.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            slot.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl<J: PoolJob> Drop for JobFuture<'_, J> {
    fn drop(&mut self) {
        let JobProgress::Waiting { slot, ticket } = self.progress else { return };
        let slot = self.handle.slots.borrow_mut().try_remove(slot);
        if slot.is_some_and(|slot| slot.result.is_none()) {
            // The job is dropped after the lock is released.
            let cancelled = lock(&self.handle.shared.state).cancel(ticket);
            drop(cancelled);
        }
    }
}

impl<J: PoolJob> fmt::Debug for PoolHandle<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PoolHandle({} pending)", self.inner.slots.borrow().len())
    }
}

impl<J: PoolJob> fmt::Debug for JobFuture<'_, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JobFuture")
    }
}
