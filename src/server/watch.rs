//! One connection as its event loop keeps it: what it waits for, and what is to become of it.

use std::cell::{Cell, OnceCell, RefCell};
use std::net::SocketAddr;
use std::task::Waker;

use http::HeaderValue;

use super::Tunnel;
use crate::decide::Nanos;
use crate::decide::patience::{Expired, Limits, Patience};

/// What is to become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It goes on.
    Stay,
    /// It ends after the answers that are owed.
    Leave,
    /// It ends now.
    Die,
}

/// Memory that hyper holds for what comes, as long as no head or body needs more.
const USUAL_ROOM: usize = 8 * 1024;

#[derive(Debug)]
pub(super) struct Watch {
    pub(super) peer: SocketAddr,
    patience: Cell<Patience>,
    fate: Cell<Fate>,
    /// Ends with a reset in place of a regular close.
    reset: Cell<bool>,
    /// The connection closes after the answer that is on its way.
    last: Cell<bool>,
    /// The request has a body of which nobody has seen the end.
    unread: Cell<bool>,
    /// Answers that will never come; nobody waits for those at the end.
    hopeless: Cell<u32>,
    task: RefCell<Option<Waker>>,
    /// How long the first request had waited when it was read.
    waited: Cell<Nanos>,
    /// The peer's address as a header has it, once somebody has asked.
    client: OnceCell<HeaderValue>,
    /// Whether more memory is held for what comes than a usual head takes.
    grown: Cell<bool>,
    /// What the connection leads to once it speaks another protocol.
    tunnel: RefCell<Option<Box<dyn Tunnel>>>,
}

impl Watch {
    pub(super) fn new(peer: SocketAddr, now: Nanos) -> Self {
        Self {
            peer,
            patience: Cell::new(Patience::new(now)),
            fate: Cell::new(Fate::Stay),
            reset: Cell::new(false),
            last: Cell::new(false),
            unread: Cell::new(false),
            hopeless: Cell::new(0),
            task: RefCell::default(),
            waited: Cell::new(Nanos::ZERO),
            client: OnceCell::new(),
            grown: Cell::new(false),
            tunnel: RefCell::default(),
        }
    }

    /// The request that comes now has waited so long to be read.
    pub(super) fn has_waited(&self, waited: Nanos) {
        self.waited.set(waited);
    }

    /// How long this request has waited to be read; told once.
    pub(super) fn take_wait(&self) -> Nanos {
        self.waited.take()
    }

    /// The peer's address without port.
    pub(super) fn client(&self) -> &HeaderValue {
        self.client.get_or_init(|| {
            let text = self.peer.ip().to_canonical().to_string();
            HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
        })
    }

    /// Tells the connection's patience something.
    pub(super) fn note<T>(&self, tell: impl FnOnce(&mut Patience) -> T) -> T {
        let mut patience = self.patience.get();
        let told = tell(&mut patience);
        self.patience.set(patience);
        told
    }

    pub(super) fn expired(&self, now: Nanos, limits: &Limits) -> Option<Expired> {
        self.patience.get().expired(now, limits)
    }

    pub(super) fn fate(&self) -> Fate {
        self.fate.get()
    }

    /// Decides the fate, and has the connection's task see it.
    pub(super) fn decide(&self, fate: Fate) {
        self.fate.set(fate);
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }

    /// Which task to wake.
    pub(super) fn runs_in(&self, task: &Waker) {
        let mut kept = self.task.borrow_mut();
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(task)) {
            *kept = Some(task.clone());
        }
    }

    /// The answer to come is the last one, and nothing more is read before the close.
    pub(super) fn ends_with_this(&self) {
        self.last.set(true);
    }

    /// Whether what is written now are the last bytes of all.
    pub(super) fn is_at_the_end(&self) -> bool {
        self.last.get() && self.patience.get().is_idle()
    }

    /// A request begins, with a body or without.
    pub(super) fn has_unread_body(&self, unread: bool) {
        self.unread.set(unread);
    }

    /// Whether bytes may still come that belong to a request.
    pub(super) fn expects_bytes(&self) -> bool {
        self.unread.get()
    }

    /// Has the connection's task look whether the other end is still there, where it would not notice by itself.
    pub(super) fn look(&self) {
        if let Some(task) = self.task.borrow().as_ref().filter(|_| self.expects_bytes()) {
            task.wake_by_ref();
        }
    }

    /// Memory is held for what comes, so much of it.
    pub(super) fn has_room(&self, bytes: usize) {
        if bytes > USUAL_ROOM {
            self.grown.set(true);
        }
    }

    /// Whether more memory is held than is usual.
    pub(super) fn is_grown(&self) -> bool {
        self.grown.get()
    }

    /// Whether that memory can go: the connection goes on, and nothing is under way.
    pub(super) fn can_shrink(&self) -> bool {
        self.is_grown() && self.fate() == Fate::Stay && self.patience.get().is_at_rest() && !self.expects_bytes()
    }

    /// That memory has gone.
    pub(super) fn has_shrunk(&self) {
        self.grown.set(false);
    }

    /// After the answer that is on its way the connection leads to `tunnel`.
    pub(super) fn switches_to(&self, tunnel: Box<dyn Tunnel>) {
        *self.tunnel.borrow_mut() = Some(tunnel);
    }

    pub(super) fn take_tunnel(&self) -> Option<Box<dyn Tunnel>> {
        self.tunnel.take()
    }

    /// Whether the connection leads there already.
    pub(super) fn has_switched(&self) -> bool {
        self.patience.get().has_switched()
    }

    /// Its close is to be a reset.
    pub(super) fn reset(&self) {
        self.reset.set(true);
    }

    pub(super) fn is_reset(&self) -> bool {
        self.reset.get()
    }

    /// Never ends. An answer that does not come is no reason to keep a server from stopping.
    pub(super) async fn lose_hope<T>(&self) -> T {
        let _given_up = GivenUp(self);
        self.hopeless.set(self.hopeless.get() + 1);
        std::future::pending().await
    }

    /// The server stops: this connection ends when it owes nothing more.
    pub(super) fn leave(&self) {
        let owes = !self.patience.get().is_idle() && self.hopeless.get() == 0;
        self.decide(if owes { Fate::Leave } else { Fate::Die });
    }
}

struct GivenUp<'a>(&'a Watch);

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        self.0.hopeless.set(self.0.hopeless.get() - 1);
    }
}
