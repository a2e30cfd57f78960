//! The event loop's end of a pool: who waits for which answer.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use slab::Slab;
use tokio::runtime::Handle;

use super::state::{Waiting, without};
use super::{Job, Shared};

/// Where an event loop asks for jobs to be done.
pub struct Desk<J: Job> {
    inner: Rc<Inner<J>>,
}

struct Inner<J: Job> {
    shared: Arc<Shared<J>>,
    /// What this round of the event loop brings, and what found no room in the queue.
    backlog: RefCell<VecDeque<Waiting<J>>>,
    /// Who waits.
    places: RefCell<Slab<Place<J::Answer>>>,
    tickets: Cell<u64>,
    /// The pump is called already.
    called: Cell<bool>,
}

/// One who waits. A place is used again, so a ticket tells who had it.
struct Place<A> {
    ticket: u64,
    waker: Option<Waker>,
    answer: Option<Result<A, Broken>>,
}

/// The job panicked; its thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

impl<J: Job> Desk<J> {
    /// On the event loop of this thread, which has to run tasks that stay there.
    pub(super) fn new(shared: Arc<Shared<J>>) -> Self {
        let inner = Rc::new(Inner {
            shared,
            backlog: RefCell::default(),
            places: RefCell::default(),
            tickets: Cell::new(0),
            called: Cell::new(false),
        });
        tokio::task::spawn_local(pump(Rc::clone(&inner)));
        Self { inner }
    }

    /// Has a job done. It waits behind those that were asked for before; if the future is dropped before a thread
    /// begins with it, it is not done at all.
    pub fn ask(&self, job: J) -> Asked<'_, J> {
        let desk = &*self.inner;
        let ticket = desk.tickets.get();
        desk.tickets.set(ticket + 1);
        let place = desk.places.borrow_mut().insert(Place { ticket, waker: None, answer: None });
        desk.backlog.borrow_mut().push_back(Waiting { ticket, place, brief: job.is_brief(), job });
        desk.call_pump();
        Asked { desk, ticket, place: Some(place) }
    }
}

impl<J: Job> Inner<J> {
    /// The pump runs after all that is ready now, so it brings all jobs of this round together.
    fn call_pump(&self) {
        if !self.called.replace(true) {
            self.shared.bell.notify_one();
        }
    }

    /// Gives up a job that is not wanted any more.
    fn give_up(&self, ticket: u64) {
        // The backlog's are later than the queue's.
        let mut given_up = without(&mut self.backlog.borrow_mut(), ticket);
        let mut state = self.shared.lock();
        if given_up.is_some() {
            state.backlog = self.backlog.borrow().len();
            state.given_up += 1;
        } else {
            given_up = state.give_up(ticket);
        }
        // Outside of a runtime no client can leave: this is the server's own end.
        if Handle::try_current().is_err() {
            state.cut_off = true;
        }
        drop(state);
        if given_up.is_some() && !self.backlog.borrow().is_empty() {
            // There is room now.
            self.call_pump();
        }
    }
}

/// Brings jobs to the queue, and answers to those who wait.
async fn pump<J: Job>(desk: Rc<Inner<J>>) {
    let mut fetched = Vec::new();
    loop {
        desk.shared.bell.notified().await;
        desk.called.set(false);
        let mut state = desk.shared.lock();
        state.fetch(&mut fetched);
        let calls = state.take_in(&mut desk.backlog.borrow_mut());
        drop(state);
        desk.shared.wake(calls);
        for done in fetched.drain(..) {
            let waker = match desk.places.borrow_mut().get_mut(done.place) {
                Some(place) if place.ticket == done.ticket => {
                    place.answer = Some(done.answer.ok_or(Broken));
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
    ticket: u64,
    /// None: answered.
    place: Option<usize>,
}

impl<J: Job> Future for Asked<'_, J> {
    type Output = Result<J::Answer, Broken>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let desk = self.desk;
        let mut places = desk.places.borrow_mut();
        let Some(place) = self.place.and_then(|at| places.get_mut(at)) else { return Poll::Pending };
        if let Some(answer) = place.answer.take() {
            if let Some(at) = self.place.take() {
                places.remove(at);
            }
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
        let Some(at) = self.place else { return };
        let place = self.desk.places.borrow_mut().try_remove(at);
        if place.is_some_and(|place| place.answer.is_none()) {
            self.desk.give_up(self.ticket);
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
        write!(f, "Asked({})", self.ticket)
    }
}
