//! State of one connection in its event loop: timeouts, memory, and the decision to end it.

use std::cell::{Cell, OnceCell, RefCell};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;

use http::HeaderValue;

use super::Tunnel;
use super::outstanding_bytes::OutstandingBytes;
use super::stream_progress::OpenStreams;
use super::tls::ClientIdentity;
use crate::timeouts::{TimeoutKind, TimeoutTracker, Timeouts};
use weir_base::Nanos;

/// Decision about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CloseMode {
    /// The connection continues.
    Open,
    /// The connection ends after its pending responses.
    Drain,
    /// The connection ends now.
    Abort,
}

/// Number of the next connection.
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);

/// Idle time after which a connection gives back the memory of its last request.
const REST_AFTER: Nanos = Nanos::from_secs(2);

/// Origin of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionOrigin {
    Tcp(SocketAddr),
    /// A process of this machine, over a Unix socket.
    Unix,
}

/// TLS of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsPeer {
    /// The client, if it has shown a certificate.
    pub client: Option<ClientIdentity>,
    /// `TLSv1.2` or `TLSv1.3`.
    pub version: &'static str,
    /// Server name in the client's handshake (SNI), in lower case.
    pub server_name: Option<String>,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionStage {
    /// PROXY header, TLS handshake, first bytes.
    Opening,
    Http1,
    Http2,
}

/// Whether a connection has no more memory than its socket needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    No,
    /// It has been idle for a while, and is to free the rest.
    Wanted,
    Resting,
}

#[derive(Debug)]
pub(super) struct ConnectionState {
    /// The peer, or the client that a trusted proxy has named.
    peer: Cell<SocketAddr>,
    is_unix: Cell<bool>,
    /// Index of the listener.
    pub(super) listener: usize,
    /// Number among the connections of the process; wraps.
    pub(super) number: u32,
    stage: Cell<ConnectionStage>,
    tls: OnceCell<TlsPeer>,
    timeout_tracker: RefCell<TimeoutTracker>,
    close_mode: Cell<CloseMode>,
    /// Whether the connection ends with a reset in place of a close.
    reset: Cell<bool>,
    /// Whether the connection closes after the current response.
    closes_after_response: Cell<bool>,
    /// Whether the request has a body that was not read to its end.
    unread_body: Cell<bool>,
    /// Number of responses that will never come and are not awaited at the end.
    hung_requests: Cell<u32>,
    task: RefCell<Option<Waker>>,
    /// Age of the first request when it was read.
    receive_delay: Cell<Nanos>,
    /// The peer's address as a header value, cached.
    client_address: OnceCell<HeaderValue>,
    rest: Cell<Rest>,
    /// Peer of the upgraded connection.
    tunnel: RefCell<Option<Box<dyn Tunnel>>>,
    /// Streams of HTTP/2.
    pub(super) streams: OpenStreams,
    is_control_flood: Cell<bool>,
    pub(super) outstanding: OutstandingBytes,
}

impl ConnectionState {
    pub(super) fn new(origin: ConnectionOrigin, listener: usize, now: Nanos) -> Self {
        let (peer, is_unix) = match origin {
            ConnectionOrigin::Tcp(peer) => (peer, false),
            ConnectionOrigin::Unix => ((Ipv4Addr::LOCALHOST, 0).into(), true),
        };
        Self {
            peer: Cell::new(peer),
            is_unix: Cell::new(is_unix),
            listener,
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            stage: Cell::new(ConnectionStage::Opening),
            tls: OnceCell::new(),
            timeout_tracker: RefCell::new(TimeoutTracker::new(now)),
            close_mode: Cell::new(CloseMode::Open),
            reset: Cell::new(false),
            closes_after_response: Cell::new(false),
            unread_body: Cell::new(false),
            hung_requests: Cell::new(0),
            task: RefCell::default(),
            receive_delay: Cell::new(Nanos::ZERO),
            client_address: OnceCell::new(),
            rest: Cell::new(Rest::No),
            tunnel: RefCell::default(),
            streams: OpenStreams::default(),
            is_control_flood: Cell::new(false),
            outstanding: OutstandingBytes::default(),
        }
    }

    /// Address of the client; of a Unix socket that of this machine, 127.0.0.1.
    pub(super) fn peer(&self) -> SocketAddr {
        self.peer.get()
    }

    /// Sets the client that a trusted proxy has named.
    pub(super) fn set_peer(&self, client: SocketAddr) {
        self.peer.set(client);
        self.is_unix.set(false);
    }

    /// The client's address for a log: with port, or `unix:`.
    pub(super) fn peer_text(&self) -> String {
        if self.is_unix.get() { "unix:".to_owned() } else { self.peer().to_string() }
    }

    /// TLS, if the connection has it.
    pub(super) fn tls(&self) -> Option<&TlsPeer> {
        self.tls.get()
    }

    /// Records the result of the TLS handshake.
    pub(super) fn set_tls(&self, tls: TlsPeer) {
        // There is one handshake.
        let _ = self.tls.set(tls);
    }

    /// Records that HTTP begins.
    pub(super) fn set_opened(&self, is_http2: bool) {
        self.stage.set(if is_http2 { ConnectionStage::Http2 } else { ConnectionStage::Http1 });
    }

    /// Requests in progress that the end would cut off; those without a response to come do not count.
    pub(super) fn open_requests(&self) -> u64 {
        if self.stage.get() == ConnectionStage::Opening {
            return 0;
        }
        u64::from(self.timeout_tracker.borrow().open_requests().saturating_sub(self.hung_requests.get()))
    }

    /// Sets the age of the request that is read now.
    pub(super) fn set_receive_delay(&self, waited: Nanos) {
        self.receive_delay.set(waited);
    }

    /// Takes the age of this request when it was read.
    pub(super) fn take_receive_delay(&self) -> Nanos {
        self.receive_delay.take()
    }

    /// The peer's address without port.
    pub(super) fn client_address(&self) -> &HeaderValue {
        self.client_address.get_or_init(|| {
            let text = self.peer().ip().to_canonical().to_string();
            HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
        })
    }

    /// Records the end of the TLS handshake: the idle timeout of the first request begins.
    pub(super) fn set_handshake_done(&self, now: Nanos) {
        self.update_timeouts(|timeouts| timeouts.begin_idle(now));
    }

    /// Updates the connection's timeouts.
    pub(super) fn update_timeouts<T>(&self, update: impl FnOnce(&mut TimeoutTracker) -> T) -> T {
        update(&mut self.timeout_tracker.borrow_mut())
    }

    /// Timeout that has expired by these limits; to be called regularly.
    pub(super) fn expired(&self, now: Nanos, limits: &Timeouts) -> Option<TimeoutKind> {
        self.update_timeouts(|timeouts| timeouts.expired(now, limits))
    }

    /// Records received bytes. Over HTTP/2 only frames show what they are.
    pub(super) fn received(&self, now: Nanos, bytes: u64) {
        if self.stage.get() != ConnectionStage::Http2 {
            self.update_timeouts(|timeouts| timeouts.received(now, bytes));
        }
    }

    /// Makes the task of a stalled connection measure how many bytes its peer takes.
    pub(super) fn measure_stalled(&self, now: Nanos) {
        if self.timeout_tracker.borrow().is_stalled(now) {
            self.outstanding.ask();
            self.wake();
        }
    }

    /// Records that the client has exceeded the budget for control frames of HTTP/2.
    pub(super) fn set_control_flood(&self) {
        self.is_control_flood.set(true);
    }

    pub(super) fn is_control_flood(&self) -> bool {
        self.is_control_flood.get()
    }

    /// Records that the service waits for more of a body. Over HTTP/2 each stream does that for itself.
    pub(super) fn wants_body(&self, now: Nanos) {
        if self.stage.get() == ConnectionStage::Http1 {
            self.update_timeouts(|timeouts| timeouts.wants_body(now));
        }
    }

    /// Records that the service waits no longer for a body.
    pub(super) fn has_body(&self, now: Nanos) {
        if self.stage.get() == ConnectionStage::Http1 {
            self.update_timeouts(|timeouts| timeouts.has_body(now));
        }
    }

    pub(super) fn close_mode(&self) -> CloseMode {
        self.close_mode.get()
    }

    /// Decides about the connection, and wakes its task.
    pub(super) fn set_close_mode(&self, fate: CloseMode) {
        self.close_mode.set(fate);
        self.wake();
    }

    /// Wakes the connection's task.
    pub(super) fn wake(&self) {
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }

    /// Sets the task to wake.
    pub(super) fn set_task(&self, task: &Waker) {
        let mut kept = self.task.borrow_mut();
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(task)) {
            *kept = Some(task.clone());
        }
    }

    /// Makes the next response the last one; nothing more is read before the close.
    pub(super) fn close_after_response(&self) {
        self.closes_after_response.set(true);
    }

    /// Whether the bytes written now are the last ones.
    pub(super) fn is_last_write(&self) -> bool {
        self.closes_after_response.get() && self.timeout_tracker.borrow().is_idle()
    }

    /// Records the start of a request, with a body or without.
    pub(super) fn set_unread_body(&self, unread: bool) {
        self.unread_body.set(unread);
    }

    /// Whether bytes may still come that belong to a request.
    pub(super) fn expects_bytes(&self) -> bool {
        self.unread_body.get()
    }

    /// Has the connection's task check whether the other end is still there, where it would not notice.
    pub(super) fn check_peer(&self) {
        if let Some(task) = self.task.borrow().as_ref().filter(|_| self.expects_bytes()) {
            task.wake_by_ref();
        }
    }

    /// For how long nothing has been in progress, if the connection is open; zero otherwise.
    pub(super) fn idle_time(&self, now: Nanos) -> Nanos {
        let is_open = self.close_mode() == CloseMode::Open;
        if is_open { self.timeout_tracker.borrow().idle_time(now) } else { Nanos::ZERO }
    }

    /// Has the connection's task free memory if it has been idle for a while.
    pub(super) fn rest_if_idle(&self, now: Nanos) {
        let is_idle = self.timeout_tracker.borrow().idle_time(now) >= REST_AFTER;
        if is_idle && self.stage.get() == ConnectionStage::Http1 && self.rest.get() == Rest::No {
            self.rest.set(Rest::Wanted);
            self.wake();
        }
    }

    /// Whether memory is to be freed, and can be: the connection continues, and nothing is in progress.
    pub(super) fn can_rest(&self) -> bool {
        self.rest.get() == Rest::Wanted
            && self.close_mode() == CloseMode::Open
            && self.timeout_tracker.borrow().is_drained()
            && !self.expects_bytes()
    }

    /// Records that the memory was freed.
    pub(super) fn set_resting(&self) {
        self.rest.set(Rest::Resting);
    }

    /// Records that the next bytes are there.
    pub(super) fn set_active(&self) {
        self.rest.set(Rest::No);
    }

    /// Connects the connection to `tunnel` after the current response.
    pub(super) fn set_tunnel(&self, tunnel: Box<dyn Tunnel>) {
        *self.tunnel.borrow_mut() = Some(tunnel);
    }

    pub(super) fn take_tunnel(&self) -> Option<Box<dyn Tunnel>> {
        self.tunnel.take()
    }

    /// Whether the connection is to be connected to a tunnel.
    pub(super) fn has_tunnel(&self) -> bool {
        self.tunnel.borrow().is_some()
    }

    /// Whether the connection is connected to the tunnel already.
    pub(super) fn is_tunnel(&self) -> bool {
        self.timeout_tracker.borrow().has_switched()
    }

    /// Makes the close a reset.
    pub(super) fn set_reset(&self) {
        self.reset.set(true);
    }

    pub(super) fn is_reset(&self) -> bool {
        self.reset.get()
    }

    /// Never ends. A missing response does not keep the server from stopping.
    pub(super) async fn hang<T>(&self) -> T {
        let _given_up = HungRequestGuard(self);
        self.hung_requests.set(self.hung_requests.get() + 1);
        std::future::pending().await
    }

    /// Ends this connection once its peer knows: by GOAWAY, or after the next response, which says so.
    pub(super) fn leave(&self) {
        if self.stage.get() == ConnectionStage::Http2 {
            self.set_close_mode(CloseMode::Drain);
        }
    }

    /// Ends this connection after its pending responses, since the server stops.
    pub(super) fn drain(&self) {
        let has_more = match self.stage.get() {
            ConnectionStage::Opening => false,
            // A request that is on its way already may be sent again elsewhere only once it is told so (GOAWAY).
            ConnectionStage::Http2 => true,
            ConnectionStage::Http1 => self.is_tunnel() || !self.timeout_tracker.borrow().is_drained(),
        };
        let is_drained = !has_more || self.hung_requests.get() > 0;
        self.set_close_mode(if is_drained { CloseMode::Abort } else { CloseMode::Drain });
    }
}

struct HungRequestGuard<'a>(&'a ConnectionState);

impl Drop for HungRequestGuard<'_> {
    fn drop(&mut self) {
        self.0.hung_requests.set(self.0.hung_requests.get() - 1);
    }
}
