//! One connection as its event loop keeps it: what it waits for, and what is to become of it.

use std::cell::{Cell, OnceCell, RefCell};
use std::net::SocketAddr;
use std::task::Waker;

use http::HeaderValue;

use super::Tunnel;
use crate::decide::Nanos;
use crate::decide::patience::{TimeoutKind, TimeoutTracker, Timeouts};

/// What is to become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseMode {
    /// It goes on.
    Open,
    /// It ends after the answers that are owed.
    Drain,
    /// It ends now.
    Abort,
}

/// Memory that hyper holds for what comes, as long as no head or body needs more.
const DEFAULT_BUFFER_BYTES: usize = 8 * 1024;

#[derive(Debug)]
pub(super) struct ConnectionState {
    pub(super) peer: SocketAddr,
    timeout_tracker: Cell<TimeoutTracker>,
    close_mode: Cell<CloseMode>,
    /// Ends with a reset in place of a regular close.
    reset: Cell<bool>,
    /// The connection closes after the answer that is on its way.
    closes_after_response: Cell<bool>,
    /// The request has a body of which nobody has seen the end.
    unread_body: Cell<bool>,
    /// Answers that will never come; nobody waits for those at the end.
    hung_requests: Cell<u32>,
    task: RefCell<Option<Waker>>,
    /// How long the first request had waited when it was read.
    receive_delay: Cell<Nanos>,
    /// The peer's address as a header has it, once somebody has asked.
    client_address: OnceCell<HeaderValue>,
    /// Whether more memory is held for what comes than a usual head takes.
    grown: Cell<bool>,
    /// What the connection leads to once it speaks another protocol.
    tunnel: RefCell<Option<Box<dyn Tunnel>>>,
}

impl ConnectionState {
    pub(super) fn new(peer: SocketAddr, now: Nanos) -> Self {
        Self {
            peer,
            timeout_tracker: Cell::new(TimeoutTracker::new(now)),
            close_mode: Cell::new(CloseMode::Open),
            reset: Cell::new(false),
            closes_after_response: Cell::new(false),
            unread_body: Cell::new(false),
            hung_requests: Cell::new(0),
            task: RefCell::default(),
            receive_delay: Cell::new(Nanos::ZERO),
            client_address: OnceCell::new(),
            grown: Cell::new(false),
            tunnel: RefCell::default(),
        }
    }

    /// The request that comes now has waited so long to be read.
    pub(super) fn set_receive_delay(&self, waited: Nanos) {
        self.receive_delay.set(waited);
    }

    /// How long this request has waited to be read; told once.
    pub(super) fn take_receive_delay(&self) -> Nanos {
        self.receive_delay.take()
    }

    /// The peer's address without port.
    pub(super) fn client_address(&self) -> &HeaderValue {
        self.client_address.get_or_init(|| {
            let text = self.peer.ip().to_canonical().to_string();
            HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
        })
    }

    /// Tells the connection's patience something.
    pub(super) fn update_timeouts<T>(&self, tell: impl FnOnce(&mut TimeoutTracker) -> T) -> T {
        let mut patience = self.timeout_tracker.get();
        let told = tell(&mut patience);
        self.timeout_tracker.set(patience);
        told
    }

    pub(super) fn expired(&self, now: Nanos, limits: &Timeouts) -> Option<TimeoutKind> {
        self.timeout_tracker.get().expired(now, limits)
    }

    pub(super) fn close_mode(&self) -> CloseMode {
        self.close_mode.get()
    }

    /// Decides the fate, and has the connection's task see it.
    pub(super) fn set_close_mode(&self, fate: CloseMode) {
        self.close_mode.set(fate);
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }

    /// Which task to wake.
    pub(super) fn set_task(&self, task: &Waker) {
        let mut kept = self.task.borrow_mut();
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(task)) {
            *kept = Some(task.clone());
        }
    }

    /// The answer to come is the last one, and nothing more is read before the close.
    pub(super) fn close_after_response(&self) {
        self.closes_after_response.set(true);
    }

    /// Whether what is written now are the last bytes of all.
    pub(super) fn is_last_write(&self) -> bool {
        self.closes_after_response.get() && self.timeout_tracker.get().is_idle()
    }

    /// A request begins, with a body or without.
    pub(super) fn set_unread_body(&self, unread: bool) {
        self.unread_body.set(unread);
    }

    /// Whether bytes may still come that belong to a request.
    pub(super) fn expects_bytes(&self) -> bool {
        self.unread_body.get()
    }

    /// Has the connection's task look whether the other end is still there, where it would not notice by itself.
    pub(super) fn check_peer(&self) {
        if let Some(task) = self.task.borrow().as_ref().filter(|_| self.expects_bytes()) {
            task.wake_by_ref();
        }
    }

    /// Memory is held for what comes, so much of it.
    pub(super) fn record_buffer_bytes(&self, bytes: usize) {
        if bytes > DEFAULT_BUFFER_BYTES {
            self.grown.set(true);
        }
    }

    /// Whether more memory is held than is usual.
    pub(super) fn is_grown(&self) -> bool {
        self.grown.get()
    }

    /// Whether that memory can go: the connection goes on, and nothing is under way.
    pub(super) fn can_shrink(&self) -> bool {
        self.is_grown()
            && self.close_mode() == CloseMode::Open
            && self.timeout_tracker.get().is_drained()
            && !self.expects_bytes()
    }

    /// That memory has gone.
    pub(super) fn set_shrunk(&self) {
        self.grown.set(false);
    }

    /// After the answer that is on its way the connection leads to `tunnel`.
    pub(super) fn set_tunnel(&self, tunnel: Box<dyn Tunnel>) {
        *self.tunnel.borrow_mut() = Some(tunnel);
    }

    pub(super) fn take_tunnel(&self) -> Option<Box<dyn Tunnel>> {
        self.tunnel.take()
    }

    /// Whether the connection leads there already.
    pub(super) fn is_tunnel(&self) -> bool {
        self.timeout_tracker.get().has_switched()
    }

    /// Its close is to be a reset.
    pub(super) fn set_reset(&self) {
        self.reset.set(true);
    }

    pub(super) fn is_reset(&self) -> bool {
        self.reset.get()
    }

    /// Never ends. An answer that does not come is no reason to keep a server from stopping.
    pub(super) async fn hang<T>(&self) -> T {
        let _given_up = HungRequestGuard(self);
        self.hung_requests.set(self.hung_requests.get() + 1);
        std::future::pending().await
    }

    /// The server stops: this connection ends when it owes nothing more.
    pub(super) fn drain(&self) {
        let owes = !self.timeout_tracker.get().is_idle() && self.hung_requests.get() == 0;
        self.set_close_mode(if owes { CloseMode::Drain } else { CloseMode::Abort });
    }
}

struct HungRequestGuard<'a>(&'a ConnectionState);

impl Drop for HungRequestGuard<'_> {
    fn drop(&mut self) {
        self.0.hung_requests.set(self.0.hung_requests.get() - 1);
    }
}
