//! The connection pool of one origin, on one event loop.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use super::http2::connections::Http2Connections;
use super::origin::{Origin, Protocol};
use super::progress_timeout::ProgressTimeouts;
use super::socket::ClientSocket;
use weir_base::Nanos;

/// Counts of a client's connections and requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounts {
    /// Connections established or connecting, busy or idle.
    pub open: usize,
    /// Idle connections among them.
    pub idle: usize,
    /// Total of established connections.
    pub connected: u64,
    /// Total of requests over a reused connection.
    pub reused: u64,
    /// Total of requests sent again because a reused connection had been closed.
    pub resent: u64,
}

pub(super) type SharedClientCounts = Rc<Cell<ClientCounts>>;

pub(super) fn update_counts(shared_counts: &SharedClientCounts, change: impl FnOnce(&mut ClientCounts)) {
    let mut counts = shared_counts.get();
    change(&mut counts);
    shared_counts.set(counts);
}

#[derive(Debug)]
pub(super) struct ConnectionPool {
    pub(super) origin: Arc<Origin>,
    pub(super) counts: SharedClientCounts,
    pub(super) http2: Http2Connections,
    pub(super) progress_timeouts: Rc<ProgressTimeouts>,
    max_idle: usize,
    open: Cell<usize>,
    /// Last in, first out, so that surplus connections become idle.
    idle: RefCell<Vec<IdleConnection>>,
    /// Waiting requests in order; only when the maximum of connections is reached.
    waiters: RefCell<VecDeque<Rc<ConnectionWaiter>>>,
}

#[derive(Debug)]
struct IdleConnection {
    socket: ClientSocket,
    /// Time of the last sweep before the connection became idle.
    since: Nanos,
    /// Requests that the connection has carried, and the time of the last sweep before it was established.
    requests: u64,
    connected: Nanos,
}

/// A slot among an origin's connections, and the connection once established. Dropping it closes the connection and
/// frees the slot.
#[derive(Debug)]
pub(super) struct PooledConnection {
    pool: Rc<ConnectionPool>,
    pub(super) socket: Option<ClientSocket>,
    /// Whether the connection has carried a request before.
    pub(super) reused: bool,
    /// Requests that the connection has carried.
    requests: u64,
    /// Time of the last sweep before the connection was established.
    pub(super) connected: Nanos,
    /// False once the slot was passed on.
    holds_slot: bool,
}

pub(super) enum Checkout {
    Connection(PooledConnection),
    Wait(ConnectionWait),
}

impl ConnectionPool {
    pub(super) fn new(origin: Arc<Origin>, counts: SharedClientCounts, max_idle: usize) -> Self {
        origin.pools.fetch_add(1, Ordering::Relaxed);
        Self {
            progress_timeouts: Rc::new(ProgressTimeouts::new(origin.stall_timeout)),
            max_idle: origin.max_idle.unwrap_or(max_idle),
            origin,
            counts,
            http2: Http2Connections::default(),
            open: Cell::default(),
            idle: RefCell::default(),
            waiters: RefCell::default(),
        }
    }

    /// A healthy idle connection, a slot for a new one, or a place in the queue.
    pub(super) fn check_out(self: &Rc<Self>) -> Checkout {
        self.check_out_idle().map_or_else(|| self.check_out_new(), Checkout::Connection)
    }

    /// A healthy idle connection.
    pub(super) fn check_out_idle(self: &Rc<Self>) -> Option<PooledConnection> {
        loop {
            let mut idle = self.idle.borrow_mut().pop()?;
            update_counts(&self.counts, |counts| counts.idle -= 1);
            let mut connection = self.reserved();
            if idle.socket.is_quiet() {
                (connection.requests, connection.connected) = (idle.requests, idle.connected);
                connection.reused = idle.requests > 0;
                self.count_reused(&connection);
                connection.socket = Some(idle.socket);
                return Some(connection);
            }
        }
    }

    /// A slot for a new connection, or a place in the queue.
    pub(super) fn check_out_new(self: &Rc<Self>) -> Checkout {
        if self.has_capacity() {
            return Checkout::Connection(self.reserve());
        }
        let waiter = Rc::new(ConnectionWaiter::default());
        self.waiters.borrow_mut().push_back(Rc::clone(&waiter));
        Checkout::Wait(ConnectionWait { pool: Rc::clone(self), waiter })
    }

    /// Whether requests may go over HTTP/2, as far as the origin's protocol is known.
    pub(super) fn may_speak_http2(&self) -> bool {
        match self.origin.protocol {
            Protocol::Http1 => false,
            Protocol::Http2 => true,
            Protocol::Auto => self.origin.tls.is_some() && !self.http2.declined(),
        }
    }

    /// Whether one more connection is allowed.
    pub(super) fn has_capacity(&self) -> bool {
        self.open.get() < self.origin.max_connections
    }

    fn count_reused(&self, connection: &PooledConnection) {
        if connection.reused {
            update_counts(&self.counts, |counts| counts.reused += 1);
        }
    }

    fn reserve(self: &Rc<Self>) -> PooledConnection {
        self.open.set(self.open.get() + 1);
        update_counts(&self.counts, |counts| counts.open += 1);
        self.reserved()
    }

    /// A lease of a slot that is counted already.
    fn reserved(self: &Rc<Self>) -> PooledConnection {
        PooledConnection {
            pool: Rc::clone(self),
            socket: None,
            reused: false,
            requests: 0,
            connected: Nanos::ZERO,
            holds_slot: true,
        }
    }

    /// Passes a slot and its connection to the longest-waiting request, or returns it.
    fn pass_to_waiter(self: &Rc<Self>, connection: PooledConnection) -> Option<PooledConnection> {
        let Some(waiter) = self.waiters.borrow_mut().pop_front() else { return Some(connection) };
        *waiter.connection.borrow_mut() = Some(connection);
        if let Some(waker) = waiter.waker.take() {
            waker.wake();
        }
        None
    }

    /// Closes connections idle since `before` or not healthy, and ends stalled requests.
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
        // Nothing was awaited, so no connection was returned in between.
        self.idle.replace(kept);
    }

    /// Whether nothing uses the pool any more.
    pub(super) fn is_abandoned(&self) -> bool {
        self.open.get() == 0 && self.origin.is_lost()
    }

    pub(super) fn has_lost_origin(&self) -> bool {
        self.origin.is_lost()
    }
}

impl Drop for ConnectionPool {
    fn drop(&mut self) {
        self.origin.pools.fetch_sub(1, Ordering::Relaxed);
        // Busy connections hold the pool, so only idle ones are left.
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

    /// Makes the connection idle; `now` is the last sweep's.
    pub(super) fn return_to_pool(mut self, now: Nanos) {
        self.reused = true;
        self.requests += 1;
        let origin = &self.pool.origin;
        if self.requests >= origin.max_requests || now - self.connected >= origin.max_age {
            // Dropped, it is closed, and its slot is another's.
            return;
        }
        self.return_unused(now);
    }

    /// Returns a connection that may not have carried a request.
    pub(super) fn return_unused(self, now: Nanos) {
        if self.socket.is_none() {
            return;
        }
        let pool = Rc::clone(&self.pool);
        if let Some(mut connection) = pool.pass_to_waiter(self) {
            let full = pool.idle.borrow().len() >= pool.max_idle;
            if let (false, Some(socket)) = (full, connection.socket.take()) {
                connection.holds_slot = false;
                update_counts(&pool.counts, |counts| counts.idle += 1);
                pool.idle.borrow_mut().push(IdleConnection {
                    socket,
                    since: now,
                    requests: connection.requests,
                    connected: connection.connected,
                });
            }
        }
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        // Closed first, so that no request connects while it is open.
        self.socket = None;
        if !self.holds_slot {
            return;
        }
        self.holds_slot = false;
        let pool = Rc::clone(&self.pool);
        if let Some(mut connection) = pool.pass_to_waiter(pool.reserved()) {
            connection.holds_slot = false;
            pool.open.set(pool.open.get() - 1);
            update_counts(&pool.counts, |counts| counts.open -= 1);
        }
    }
}

#[derive(Debug, Default)]
struct ConnectionWaiter {
    connection: RefCell<Option<PooledConnection>>,
    waker: RefCell<Option<Waker>>,
    /// Whether the request has taken the connection given to it.
    is_served: Cell<bool>,
}

/// A place in the queue for a connection. Dropping it leaves the queue, and passes on a connection given to it.
#[derive(Debug)]
pub(super) struct ConnectionWait {
    pool: Rc<ConnectionPool>,
    waiter: Rc<ConnectionWaiter>,
}

impl Future for ConnectionWait {
    type Output = PooledConnection;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<PooledConnection> {
        match self.waiter.connection.take() {
            Some(connection) => {
                self.pool.count_reused(&connection);
                self.waiter.is_served.set(true);
                Poll::Ready(connection)
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
        // A request with a connection is not in the queue any more.
        match self.waiter.connection.take() {
            Some(connection) => connection.return_unclaimed(),
            None if self.waiter.is_served.get() => {}
            None => self.pool.waiters.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.waiter)),
        }
    }
}

impl PooledConnection {
    /// Closes the connection, if there is one, and keeps the slot.
    pub(super) fn without_socket(mut self) -> Self {
        self.socket = None;
        self.reused = false;
        self.requests = 0;
        self
    }

    /// Returns a connection given to a request that was dropped.
    fn return_unclaimed(self) {
        // The connection was idle for a moment at most; a sweep checks it anew.
        self.return_unused(Nanos::NEVER);
    }
}
