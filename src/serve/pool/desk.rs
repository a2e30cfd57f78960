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

use super::state::{Arrival, Home};
use super::{Job, Missed, Shared, run};

/// Where an event loop asks for jobs to be done.
pub struct Desk<J: Job> {
    inner: Rc<Inner<J>>,
}

struct Inner<J: Job> {
    shared: Arc<Shared<J>>,
    number: usize,
    /// Who waits.
    places: RefCell<Slab<Place<J::Answer>>>,
}

/// One who waits. A place is used again, so a ticket tells who had it.
struct Place<A> {
    ticket: u64,
    waker: Option<Waker>,
    answer: Option<Result<A, Missed>>,
}

impl<J: Job> Desk<J> {
    /// On the event loop of this thread, which has to run tasks that stay there.
    pub(super) fn new(shared: Arc<Shared<J>>) -> Self {
        let bell = Arc::new(Notify::new());
        let number = shared.lock().open_desk(Arc::clone(&bell));
        let inner = Rc::new(Inner { shared, number, places: RefCell::default() });
        tokio::task::spawn_local(pump(Rc::clone(&inner), bell));
        Self { inner }
    }

    /// Has a job done. It waits behind those that were asked for before; if the future is dropped before a thread
    /// begins with it, it is not done at all.
    pub fn ask(&self, job: J) -> Asked<'_, J> {
        let desk = &*self.inner;
        let mut state = desk.shared.lock();
        if job.is_brief() && state.has_free_thread() {
            state.did += 1;
            drop(state);
            let answer = run(job).ok_or(Missed::Broken);
            return Asked { desk, progress: Progress::Ended(Some(answer)) };
        }
        let mut places = desk.places.borrow_mut();
        let vacant = places.vacant_entry();
        let home = Home { desk: desk.number, place: vacant.key() };
        let Arrival::Waits { ticket, wake } = state.arrive(home, job) else {
            return Asked { desk, progress: Progress::Ended(Some(Err(Missed::Refused))) };
        };
        drop(state);
        vacant.insert(Place { ticket, waker: None, answer: None });
        if wake {
            desk.shared.work.notify_one();
        }
        Asked { desk, progress: Progress::Waits { place: home.place, ticket } }
    }

    /// Ends when no thread is at a job.
    pub async fn rest(&self) {
        let shared = &self.inner.shared;
        loop {
            let rested = shared.rested.notified();
            if shared.lock().busy == 0 {
                return;
            }
            rested.await;
        }
    }
}

/// Brings answers to those who wait.
async fn pump<J: Job>(desk: Rc<Inner<J>>, bell: Arc<Notify>) {
    let mut fetched = Vec::new();
    loop {
        bell.notified().await;
        desk.shared.lock().fetch(desk.number, &mut fetched);
        for done in fetched.drain(..) {
            let waker = match desk.places.borrow_mut().get_mut(done.place) {
                Some(place) if place.ticket == done.ticket => {
                    place.answer = Some(done.answer.ok_or(Missed::Broken));
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

/// A job that was asked for; see [`Desk::ask`].
pub struct Asked<'a, J: Job> {
    desk: &'a Inner<J>,
    progress: Progress<J::Answer>,
}

/// How far a job is for the one who asked.
enum Progress<A> {
    Waits {
        place: usize,
        ticket: u64,
    },
    /// None: its answer has been fetched.
    Ended(Option<Result<A, Missed>>),
}

// Nothing in it is pinned.
impl<J: Job> Unpin for Asked<'_, J> {}

impl<J: Job> Future for Asked<'_, J> {
    type Output = Result<J::Answer, Missed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let at = match &mut self.progress {
            Progress::Waits { place, .. } => *place,
            Progress::Ended(answer) => return answer.take().map_or(Poll::Pending, Poll::Ready),
        };
        let mut places = self.desk.places.borrow_mut();
        let Some(place) = places.get_mut(at) else { return Poll::Pending };
        if let Some(answer) = place.answer.take() {
            places.remove(at);
            drop(places);
            self.progress = Progress::Ended(None);
            return Poll::Ready(answer);
        }
        if !place.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            place.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl<J: Job> Drop for Asked<'_, J> {
    fn drop(&mut self) {
        let Progress::Waits { place, ticket } = self.progress else { return };
        let place = self.desk.places.borrow_mut().try_remove(place);
        if place.is_some_and(|place| place.answer.is_none()) {
            // The job is dropped after the lock is free.
            let given_up = self.desk.shared.lock().give_up(ticket);
            drop(given_up);
        }
    }
}

impl<J: Job> fmt::Debug for Desk<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Desk({} wait)", self.inner.places.borrow().len())
    }
}

impl<J: Job> fmt::Debug for Asked<'_, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked")
    }
}
