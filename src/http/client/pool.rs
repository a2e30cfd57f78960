//! The connections to one origin, on one event loop.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::http2::Multiplexed;
use super::origin::{Origin, Protocol};
use super::socket::Socket;
use super::stall::Stalls;
use crate::decide::Nanos;

/// What a client has and has had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that are there or being dialled, busy or not.
    pub open: usize,
    /// Of these, the ones that wait for a request.
    pub idle: usize,
    /// Connections that came about, ever.
    pub dialled: u64,
    /// Requests that went over a connection that was there before.
    pub reused: u64,
    /// Requests that were sent once more because a reused connection had died.
    pub repeated: u64,
}

pub(super) type Tally = Rc<Cell<Counts>>;

pub(super) fn count(tally: &Tally, change: impl FnOnce(&mut Counts)) {
    let mut counts = tally.get();
    change(&mut counts);
    tally.set(counts);
}

#[derive(Debug)]
pub(super) struct Pool {
    pub(super) origin: Arc<Origin>,
    pub(super) tally: Tally,
    pub(super) http2: Multiplexed,
    pub(super) stalls: Rc<Stalls>,
    most_idle: usize,
    open: Cell<usize>,
    /// The last one in is the first one out: the others may then go.
    idle: RefCell<Vec<Idle>>,
    /// In the order of asking; only when there are as many connections as may be.
    waiting: RefCell<VecDeque<Rc<Waiter>>>,
}

#[derive(Debug)]
struct Idle {
    socket: Socket,
    /// As of the last sweep before.
    since: Nanos,
    /// Whether it has carried a request.
    reused: bool,
}

/// A place among an origin's connections, and the connection once there is one. Dropped it makes room: the connection
/// is closed.
#[derive(Debug)]
pub(super) struct Lease {
    pool: Rc<Pool>,
    pub(super) socket: Option<Socket>,
    /// Whether the connection has carried a request before.
    pub(super) reused: bool,
    /// Cleared when the place goes elsewhere.
    held: bool,
}

pub(super) enum Found {
    Lease(Lease),
    Wait(Waiting),
}

impl Pool {
    pub(super) fn new(origin: Arc<Origin>, tally: Tally, most_idle: usize) -> Self {
        Self {
            stalls: Rc::new(Stalls::new(origin.stall_timeout)),
            origin,
            tally,
            http2: Multiplexed::default(),
            most_idle,
            open: Cell::default(),
            idle: RefCell::default(),
            waiting: RefCell::default(),
        }
    }

    /// A connection that is idle and sound; or a place for a new one; or a place in the queue.
    pub(super) fn check_out(self: &Rc<Self>) -> Found {
        loop {
            let Some(mut idle) = self.idle.borrow_mut().pop() else { break };
            count(&self.tally, |counts| counts.idle -= 1);
            let mut lease = self.lease();
            if idle.socket.is_quiet() {
                lease.reused = idle.reused;
                self.count_reused(&lease);
                lease.socket = Some(idle.socket);
                return Found::Lease(lease);
            }
        }
        self.fresh()
    }

    /// A place for a new connection, or in the queue.
    pub(super) fn fresh(self: &Rc<Self>) -> Found {
        if self.has_room() {
            return Found::Lease(self.place());
        }
        let waiter = Rc::new(Waiter::default());
        self.waiting.borrow_mut().push_back(Rc::clone(&waiter));
        Found::Wait(Waiting { pool: Rc::clone(self), waiter })
    }

    /// Whether requests may go over HTTP/2, as far as is known.
    pub(super) fn may_speak_http2(&self) -> bool {
        match self.origin.protocol {
            Protocol::Http1 => false,
            Protocol::Http2 => true,
            Protocol::Auto => self.origin.tls.is_some() && !self.http2.declined(),
        }
    }

    /// Whether there may be one more connection.
    pub(super) fn has_room(&self) -> bool {
        self.open.get() < self.origin.most_connections
    }

    fn count_reused(&self, lease: &Lease) {
        if lease.reused {
            count(&self.tally, |counts| counts.reused += 1);
        }
    }

    fn place(self: &Rc<Self>) -> Lease {
        self.open.set(self.open.get() + 1);
        count(&self.tally, |counts| counts.open += 1);
        self.lease()
    }

    /// For a place that is counted already.
    fn lease(self: &Rc<Self>) -> Lease {
        Lease { pool: Rc::clone(self), socket: None, reused: false, held: true }
    }

    /// Gives a place, and what is in it, to whoever waits longest; or gives it back.
    fn hand_on(self: &Rc<Self>, lease: Lease) -> Option<Lease> {
        let Some(waiter) = self.waiting.borrow_mut().pop_front() else { return Some(lease) };
        *waiter.given.borrow_mut() = Some(lease);
        if let Some(waker) = waiter.waker.take() {
            waker.wake();
        }
        None
    }

    /// Closes what has been idle since `before`, or is not sound any more, and ends what has stalled for too long.
    pub(super) fn sweep(self: &Rc<Self>, before: Nanos, now: Nanos) {
        self.stalls.look(now);
        self.http2.sweep(before, now);
        let mut kept = Vec::new();
        for mut idle in self.idle.take() {
            if idle.since >= before && idle.socket.is_quiet() {
                kept.push(idle);
            } else {
                count(&self.tally, |counts| counts.idle -= 1);
                drop(self.lease());
            }
        }
        // Nothing can have come back in between: nothing was awaited.
        self.idle.replace(kept);
    }

    /// Whether nothing is left of it but itself.
    pub(super) fn is_abandoned(&self) -> bool {
        self.open.get() == 0 && Arc::strong_count(&self.origin) == 1
    }

    pub(super) fn is_orphan(&self) -> bool {
        Arc::strong_count(&self.origin) == 1
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // What is busy holds the pool, so only idle connections are left.
        let idle = self.idle.get_mut().len();
        count(&self.tally, |counts| {
            counts.idle -= idle;
            counts.open -= idle;
        });
    }
}

impl Lease {
    pub(super) fn pool(&self) -> &Rc<Pool> {
        &self.pool
    }

    /// Has the connection wait for the next request; `now` is the last sweep's.
    pub(super) fn give_back(mut self, now: Nanos) {
        self.reused = true;
        self.give_back_unused(now);
    }

    /// The same for a connection that may not have carried any.
    pub(super) fn give_back_unused(self, now: Nanos) {
        if self.socket.is_none() {
            return;
        }
        let pool = Rc::clone(&self.pool);
        if let Some(mut lease) = pool.hand_on(self) {
            let full = pool.idle.borrow().len() >= pool.most_idle;
            if let (false, Some(socket)) = (full, lease.socket.take()) {
                lease.held = false;
                count(&pool.tally, |counts| counts.idle += 1);
                pool.idle.borrow_mut().push(Idle { socket, since: now, reused: lease.reused });
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Closed first: nobody is to dial while it is still there.
        self.socket = None;
        if !self.held {
            return;
        }
        self.held = false;
        let pool = Rc::clone(&self.pool);
        if let Some(mut lease) = pool.hand_on(pool.lease()) {
            lease.held = false;
            pool.open.set(pool.open.get() - 1);
            count(&pool.tally, |counts| counts.open -= 1);
        }
    }
}

#[derive(Debug, Default)]
struct Waiter {
    given: RefCell<Option<Lease>>,
    waker: RefCell<Option<Waker>>,
    /// Whether it has taken what it was given.
    served: Cell<bool>,
}

/// A place in the queue for a connection. Dropped it leaves the queue, and passes on what it was given.
#[derive(Debug)]
pub(super) struct Waiting {
    pool: Rc<Pool>,
    waiter: Rc<Waiter>,
}

impl Future for Waiting {
    type Output = Lease;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Lease> {
        match self.waiter.given.take() {
            Some(lease) => {
                self.pool.count_reused(&lease);
                self.waiter.served.set(true);
                Poll::Ready(lease)
            }
            None => {
                self.waiter.waker.replace(Some(cx.waker().clone()));
                Poll::Pending
            }
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Who was given something is not in the queue any more.
        match self.waiter.given.take() {
            Some(lease) => lease.pass_on(),
            None if self.waiter.served.get() => {}
            None => self.pool.waiting.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.waiter)),
        }
    }
}

impl Lease {
    /// Closes the connection, if there is one, and keeps the place.
    pub(super) fn fresh(mut self) -> Self {
        self.socket = None;
        self.reused = false;
        self
    }

    /// Somebody was given it and does not want it any more.
    fn pass_on(self) {
        // It was idle for a moment at most; a sweep looks at it anew.
        self.give_back_unused(Nanos::NEVER);
    }
}
