//! An event loop's end of a pool: who waits for which answer.

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

/// Where an event loop asks for jobs to be done.
pub struct PoolHandle<J: PoolJob> {
    inner: Rc<PoolHandleInner<J>>,
}

struct PoolHandleInner<J: PoolJob> {
    shared: Arc<PoolShared<J>>,
    handle_index: usize,
    /// Who waits.
    slots: RefCell<Slab<ReplySlot<J::Output>>>,
}

/// One who waits. A place is used again, so a ticket tells who had it.
struct ReplySlot<A> {
    ticket: u64,
    waker: Option<Waker>,
    result: Option<Result<A, JobError>>,
}

impl<J: PoolJob> PoolHandle<J> {
    /// On the event loop of this thread, which has to run tasks that stay there.
    pub(super) fn new(shared: Arc<PoolShared<J>>) -> Self {
        let bell = Arc::new(Notify::new());
        let number = shared.lock().open_handle(Arc::clone(&bell));
        let inner = Rc::new(PoolHandleInner { shared, handle_index: number, slots: RefCell::default() });
        tokio::task::spawn_local(deliver_replies(Rc::clone(&inner), bell));
        Self { inner }
    }

    /// Has a job done. It waits behind those that were asked for before; if the future is dropped before a thread
    /// begins with it, it is not done at all.
    pub fn submit(&self, job: J) -> JobFuture<'_, J> {
        let desk = &*self.inner;
        let mut state = desk.shared.lock();
        if job.is_brief() && state.has_free_thread() {
            state.completed += 1;
            drop(state);
            let answer = run(job).ok_or(JobError::Panicked);
            return JobFuture { desk, progress: JobProgress::Done(Some(answer)) };
        }
        let mut places = desk.slots.borrow_mut();
        let vacant = places.vacant_entry();
        let home = ReplyTo { handle: desk.handle_index, slot: vacant.key() };
        let EnqueueResult::Queued { ticket, wake } = state.enqueue(home, job) else {
            return JobFuture { desk, progress: JobProgress::Done(Some(Err(JobError::Rejected))) };
        };
        drop(state);
        vacant.insert(ReplySlot { ticket, waker: None, result: None });
        if wake {
            desk.shared.work_available.notify_one();
        }
        JobFuture { desk, progress: JobProgress::Waiting { slot: home.slot, ticket } }
    }

    /// Ends when no thread is at a job.
    pub async fn wait_idle(&self) {
        let shared = &self.inner.shared;
        loop {
            let rested = shared.idle.notified();
            if shared.lock().busy == 0 {
                return;
            }
            rested.await;
        }
    }
}

/// Brings answers to those who wait.
async fn deliver_replies<J: PoolJob>(desk: Rc<PoolHandleInner<J>>, bell: Arc<Notify>) {
    let mut fetched = Vec::new();
    loop {
        bell.notified().await;
        desk.shared.lock().take_completions(desk.handle_index, &mut fetched);
        for done in fetched.drain(..) {
            let waker = match desk.slots.borrow_mut().get_mut(done.slot) {
                Some(place) if place.ticket == done.ticket => {
                    place.result = Some(done.output.ok_or(JobError::Panicked));
                    place.waker.take()
                }
                // Who asked has left.
                _ => None,
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// A job that was asked for; see [`PoolHandle::submit`].
pub struct JobFuture<'a, J: PoolJob> {
    desk: &'a PoolHandleInner<J>,
    progress: JobProgress<J::Output>,
}

/// How far a job is for the one who asked.
enum JobProgress<A> {
    Waiting {
        slot: usize,
        ticket: u64,
    },
    /// None: its answer has been fetched.
    Done(Option<Result<A, JobError>>),
}

// Nothing in it is pinned.
impl<J: PoolJob> Unpin for JobFuture<'_, J> {}

impl<J: PoolJob> Future for JobFuture<'_, J> {
    type Output = Result<J::Output, JobError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let at = match &mut self.progress {
            JobProgress::Waiting { slot: place, .. } => *place,
            JobProgress::Done(answer) => return answer.take().map_or(Poll::Pending, Poll::Ready),
        };
        let mut places = self.desk.slots.borrow_mut();
        let Some(place) = places.get_mut(at) else { return Poll::Pending };
        if let Some(answer) = place.result.take() {
            places.remove(at);
            drop(places);
            self.progress = JobProgress::Done(None);
            return Poll::Ready(answer);
        }
        if !place.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            place.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl<J: PoolJob> Drop for JobFuture<'_, J> {
    fn drop(&mut self) {
        let JobProgress::Waiting { slot: place, ticket } = self.progress else { return };
        let place = self.desk.slots.borrow_mut().try_remove(place);
        if place.is_some_and(|place| place.result.is_none()) {
            // The job is dropped after the lock is free.
            let given_up = self.desk.shared.lock().cancel(ticket);
            drop(given_up);
        }
    }
}

impl<J: PoolJob> fmt::Debug for PoolHandle<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Desk({} wait)", self.inner.slots.borrow().len())
    }
}

impl<J: PoolJob> fmt::Debug for JobFuture<'_, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked")
    }
}
