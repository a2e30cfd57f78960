//! The connections to one origin, on one event loop.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::http2::Http2Connections;
use super::origin::{Origin, Protocol};
use super::socket::ClientSocket;
use super::stall::ProgressTimeouts;
use crate::decide::Nanos;

/// What a client has and has had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounts {
    /// Connections that are there or being dialled, busy or not.
    pub open: usize,
    /// Of these, the ones that wait for a request.
    pub idle: usize,
    /// Connections that came about, ever.
    pub connected: u64,
    /// Requests that went over a connection that was there before.
    pub reused: u64,
    /// Requests that were sent once more because a reused connection had died.
    pub resent: u64,
}

pub(super) type SharedClientCounts = Rc<Cell<ClientCounts>>;

pub(super) fn update_counts(tally: &SharedClientCounts, change: impl FnOnce(&mut ClientCounts)) {
    let mut counts = tally.get();
    change(&mut counts);
    tally.set(counts);
}

#[derive(Debug)]
pub(super) struct ConnectionPool {
    pub(super) origin: Arc<Origin>,
    pub(super) counts: SharedClientCounts,
    pub(super) http2: Http2Connections,
    pub(super) progress_timeouts: Rc<ProgressTimeouts>,
    max_idle: usize,
    open: Cell<usize>,
    /// The last one in is the first one out: the others may then go.
    idle: RefCell<Vec<IdleConnection>>,
    /// In the order of asking; only when there are as many connections as may be.
    waiters: RefCell<VecDeque<Rc<ConnectionWaiter>>>,
}

#[derive(Debug)]
struct IdleConnection {
    socket: ClientSocket,
    /// As of the last sweep before.
    since: Nanos,
    /// Whether it has carried a request.
    reused: bool,
}

/// A place among an origin's connections, and the connection once there is one. Dropped it makes room: the connection
/// is closed.
#[derive(Debug)]
pub(super) struct PooledConnection {
    pool: Rc<ConnectionPool>,
    pub(super) socket: Option<ClientSocket>,
    /// Whether the connection has carried a request before.
    pub(super) reused: bool,
    /// Cleared when the place goes elsewhere.
    holds_slot: bool,
}

pub(super) enum Checkout {
    Connection(PooledConnection),
    Wait(ConnectionWait),
}

impl ConnectionPool {
    pub(super) fn new(origin: Arc<Origin>, counts: SharedClientCounts, max_idle: usize) -> Self {
        Self {
            progress_timeouts: Rc::new(ProgressTimeouts::new(origin.stall_timeout)),
            origin,
            counts,
            http2: Http2Connections::default(),
            max_idle,
            open: Cell::default(),
            idle: RefCell::default(),
            waiters: RefCell::default(),
        }
    }

    /// A connection that is idle and sound; or a place for a new one; or a place in the queue.
    pub(super) fn check_out(self: &Rc<Self>) -> Checkout {
        loop {
            let Some(mut idle) = self.idle.borrow_mut().pop() else { break };
            update_counts(&self.counts, |counts| counts.idle -= 1);
            let mut lease = self.reserved();
            if idle.socket.is_quiet() {
                lease.reused = idle.reused;
                self.count_reused(&lease);
                lease.socket = Some(idle.socket);
                return Checkout::Connection(lease);
            }
        }
        self.check_out_new()
    }

    /// A place for a new connection, or in the queue.
    pub(super) fn check_out_new(self: &Rc<Self>) -> Checkout {
        if self.has_capacity() {
            return Checkout::Connection(self.reserve());
        }
        let waiter = Rc::new(ConnectionWaiter::default());
        self.waiters.borrow_mut().push_back(Rc::clone(&waiter));
        Checkout::Wait(ConnectionWait { pool: Rc::clone(self), waiter })
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
    pub(super) fn has_capacity(&self) -> bool {
        self.open.get() < self.origin.max_connections
    }

    fn count_reused(&self, lease: &PooledConnection) {
        if lease.reused {
            update_counts(&self.counts, |counts| counts.reused += 1);
        }
    }

    fn reserve(self: &Rc<Self>) -> PooledConnection {
        self.open.set(self.open.get() + 1);
        update_counts(&self.counts, |counts| counts.open += 1);
        self.reserved()
    }

    /// For a place that is counted already.
    fn reserved(self: &Rc<Self>) -> PooledConnection {
        PooledConnection { pool: Rc::clone(self), socket: None, reused: false, holds_slot: true }
    }

    /// Gives a place, and what is in it, to whoever waits longest; or gives it back.
    fn pass_to_waiter(self: &Rc<Self>, lease: PooledConnection) -> Option<PooledConnection> {
        let Some(waiter) = self.waiters.borrow_mut().pop_front() else { return Some(lease) };
        *waiter.connection.borrow_mut() = Some(lease);
        if let Some(waker) = waiter.waker.take() {
            waker.wake();
        }
        None
    }

    /// Closes what has been idle since `before`, or is not sound any more, and ends what has stalled for too long.
    pub(super) fn sweep(self: &Rc<Self>, before: Nanos, now: Nanos) {
        self.progress_timeouts.sweep(now);
        self.http2.sweep(before, now);
        let mut kept = Vec::new();
        for mut idle in self.idle.take() {
            if idle.since >= before && idle.socket.is_quiet() {
                kept.push(idle);
            } else {
                update_counts(&self.counts, |counts| counts.idle -= 1);
                drop(self.reserved());
            }
        }
        // Nothing can have come back in between: nothing was awaited.
        self.idle.replace(kept);
    }

    /// Whether nothing is left of it but itself.
    pub(super) fn is_abandoned(&self) -> bool {
        self.open.get() == 0 && Arc::strong_count(&self.origin) == 1
    }

    pub(super) fn has_lost_origin(&self) -> bool {
        Arc::strong_count(&self.origin) == 1
    }
}

impl Drop for ConnectionPool {
    fn drop(&mut self) {
        // What is busy holds the pool, so only idle connections are left.
        let idle = self.idle.get_mut().len();
        update_counts(&self.counts, |counts| {
            counts.idle -= idle;
            counts.open -= idle;
        });
    }
}

impl PooledConnection {
    pub(super) fn pool(&self) -> &Rc<ConnectionPool> {
        &self.pool
    }

    /// Has the connection wait for the next request; `now` is the last sweep's.
    pub(super) fn return_to_pool(mut self, now: Nanos) {
        self.reused = true;
        self.return_unused(now);
    }

    /// The same for a connection that may not have carried any.
    pub(super) fn return_unused(self, now: Nanos) {
        if self.socket.is_none() {
            return;
        }
        let pool = Rc::clone(&self.pool);
        if let Some(mut lease) = pool.pass_to_waiter(self) {
            let full = pool.idle.borrow().len() >= pool.max_idle;
            if let (false, Some(socket)) = (full, lease.socket.take()) {
                lease.holds_slot = false;
                update_counts(&pool.counts, |counts| counts.idle += 1);
                pool.idle.borrow_mut().push(IdleConnection { socket, since: now, reused: lease.reused });
            }
        }
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        // Closed first: nobody is to dial while it is still there.
        self.socket = None;
        if !self.holds_slot {
            return;
        }
        self.holds_slot = false;
        let pool = Rc::clone(&self.pool);
        if let Some(mut lease) = pool.pass_to_waiter(pool.reserved()) {
            lease.holds_slot = false;
            pool.open.set(pool.open.get() - 1);
            update_counts(&pool.counts, |counts| counts.open -= 1);
        }
    }
}

#[derive(Debug, Default)]
struct ConnectionWaiter {
    connection: RefCell<Option<PooledConnection>>,
    waker: RefCell<Option<Waker>>,
    /// Whether it has taken what it was given.
    is_served: Cell<bool>,
}

/// A place in the queue for a connection. Dropped it leaves the queue, and passes on what it was given.
#[derive(Debug)]
pub(super) struct ConnectionWait {
    pool: Rc<ConnectionPool>,
    waiter: Rc<ConnectionWaiter>,
}

impl Future for ConnectionWait {
    type Output = PooledConnection;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<PooledConnection> {
        match self.waiter.connection.take() {
            Some(lease) => {
                self.pool.count_reused(&lease);
                self.waiter.is_served.set(true);
                Poll::Ready(lease)
            }
            None => {
                self.waiter.waker.replace(Some(cx.waker().clone()));
                Poll::Pending
            }
        }
    }
}

impl Drop for ConnectionWait {
    fn drop(&mut self) {
        // Who was given something is not in the queue any more.
        match self.waiter.connection.take() {
            Some(lease) => lease.return_unclaimed(),
            None if self.waiter.is_served.get() => {}
            None => self.pool.waiters.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.waiter)),
        }
    }
}

impl PooledConnection {
    /// Closes the connection, if there is one, and keeps the place.
    pub(super) fn without_socket(mut self) -> Self {
        self.socket = None;
        self.reused = false;
        self
    }

    /// Somebody was given it and does not want it any more.
    fn return_unclaimed(self) {
        // It was idle for a moment at most; a sweep looks at it anew.
        self.return_unused(Nanos::NEVER);
    }
}
