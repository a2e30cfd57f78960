//! Requests to upstreams, many at a time, on one event loop: connections are kept and used again, and a request that
//! is dropped is over at once.
//!
//! An HTTP/1.1 connection is a plain value. Whoever waits for its answer drives it: there is no task per connection
//! and no channel, so an exchange is one write and one read, and to drop the future closes the connection. HTTP/2 is
//! hyper's, with a task per connection.
//!
//! - [`Client`]: one per event loop; [`Origin`]: where requests go; [`OutgoingRequest`] to [`IncomingBody`]
//! - `pool`: the connections to an origin; `dial`: a new one; `socket`: its bytes, `outstanding`: those not yet taken; `stall`: how long it may be silent
//! - `request`, [`answer`], `http1`: an exchange over HTTP/1.1; `http2`: the same over HTTP/2

pub mod answer;
mod dial;
mod error;
mod http1;
mod http2;
mod incoming;
mod origin;
mod outstanding;
mod pool;
mod request;
mod shared;
mod socket;
mod stall;
mod upgraded;

use std::rc::Rc;
use std::sync::Arc;

use http::Response;

use self::answer::HeadParser;
pub use self::error::SendError;
pub use self::incoming::IncomingBody;
pub use self::origin::{ConnectOptions, Origin, Protocol};
pub use self::pool::ClientCounts;
use self::pool::{Checkout, PooledConnection, update_counts};
use self::request::RequestWriter;
pub use self::request::{BodyStream, OutgoingBody, OutgoingRequest};
use self::shared::ClientState;
use self::socket::ClientSocket;
pub use self::upgraded::UpgradedConnection;
use crate::decide::Nanos;
use crate::machine::timer::Timer;

/// How a client treats connections.
#[derive(Clone, Debug)]
pub struct Options {
    /// A connection that was idle for so long is closed by the next [`Client::sweep`].
    pub idle_timeout: Nanos,
    /// More idle connections than this to an origin are not kept.
    pub max_idle: usize,
    /// Up to so many bytes of an unwanted body are read to keep its connection.
    pub max_drained_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { idle_timeout: Nanos::from_secs(60), max_idle: 1024, max_drained_bytes: 64 * 1024 }
    }
}

/// Sends requests and keeps connections. Lives on one event loop, within a `LocalSet`.
#[derive(Clone, Debug)]
pub struct Client {
    state: Rc<ClientState>,
}

impl Client {
    /// A client without connections.
    pub fn new(timer: Timer, options: Options) -> Self {
        Self { state: Rc::new(ClientState::new(timer, options)) }
    }

    /// Sends a request and waits for the head of its answer. To drop the future ends it at once: a connection that
    /// has no answer yet is closed. A connection that was kept and turns out to have been closed before it took anything of
    /// the request is replaced by a new one; nothing that the other end may have taken is ever sent twice.
    ///
    /// # Errors
    /// Why there is no answer.
    ///
    /// # Panics
    /// Outside of a `LocalSet`.
    pub async fn send(
        &self,
        to: &Arc<Origin>,
        request: OutgoingRequest<'_>,
    ) -> Result<Response<IncomingBody>, SendError> {
        let shared = &self.state;
        shared.start_drains();
        request.check_target()?;
        let pool = shared.pool(to);
        let mut request = request;
        if pool.may_speak_http2() {
            // Boxed, so that requests over HTTP/1.1 do not carry its state.
            match Box::pin(http2::send(shared, &pool, request)).await? {
                Ok(answer) => return Ok(answer),
                Err(unsent) => request = unsent,
            }
        }
        let lease = match pool.check_out() {
            Checkout::Connection(lease) => lease,
            Checkout::Wait(waiting) => waiting.await,
        };
        let lease = self.ensure_connected(lease).await?;
        if lease.socket.as_ref().is_some_and(ClientSocket::negotiated_http2) {
            // It spoke HTTP/1.1 the last time.
            http2::adopt(lease, shared.last_sweep()).await?;
            let answer = Box::pin(http2::send(shared, &pool, request)).await?;
            return answer.map_err(|_| SendError::protocol("the service cannot settle on a version of HTTP"));
        }
        let asked = request.response_context();
        let upload = RequestWriter::new(to, request, shared.buffer())?;
        let failed = match http1::exchange(shared, lease, HeadParser::new(asked), upload, None).await {
            Ok(answer) => return Ok(answer),
            Err(failed) => failed,
        };
        let Some(mut upload) = failed.resend else { return Err(failed.error) };
        update_counts(&shared.counts, |counts| counts.resent += 1);
        upload.rewind();
        let lease = match pool.check_out_new() {
            Checkout::Connection(lease) => lease,
            Checkout::Wait(waiting) => waiting.await.without_socket(),
        };
        let lease = self.ensure_connected(lease).await?;
        // Boxed, for it is seldom.
        let again = Box::pin(http1::exchange(shared, lease, HeadParser::new(asked), upload, None)).await;
        again.map_err(|failed| failed.error)
    }

    /// Sends a request once, over HTTP/1.1, and calls `left` when its last byte has gone to the system. Unlike
    /// [`Self::send`] it never sends again what a connection that had died may have taken: who counts what a service
    /// gets has to know of each.
    ///
    /// # Errors
    /// Why there is no answer.
    ///
    /// # Panics
    /// Outside of a `LocalSet`.
    pub async fn send_once(
        &self,
        to: &Arc<Origin>,
        request: OutgoingRequest<'_>,
        mut left: impl FnMut(),
    ) -> Result<Response<IncomingBody>, SendError> {
        let shared = &self.state;
        shared.start_drains();
        request.check_target()?;
        let lease = match shared.pool(to).check_out() {
            Checkout::Connection(lease) => lease,
            Checkout::Wait(waiting) => waiting.await,
        };
        let lease = self.ensure_connected(lease).await?;
        if lease.socket.as_ref().is_some_and(ClientSocket::negotiated_http2) {
            return Err(SendError::protocol("the service speaks HTTP/2 where HTTP/1.1 was asked for"));
        }
        let asked = request.response_context();
        let upload = RequestWriter::new(to, request, shared.buffer())?;
        let exchange = http1::exchange(shared, lease, HeadParser::new(asked), upload, Some(&mut left));
        exchange.await.map_err(|failed| failed.error)
    }

    /// Dials, unless there is a connection.
    async fn ensure_connected(&self, mut lease: PooledConnection) -> Result<PooledConnection, SendError> {
        if lease.socket.is_none() {
            let origin = Arc::clone(&lease.pool().origin);
            // When many come at once, all that have come are looked at before any is dialled for: their time runs.
            tokio::task::yield_now().await;
            // Boxed, for it is large and seldom.
            let socket = Box::pin(dial::connect_origin(&origin, &self.state.timer)).await?;
            update_counts(&self.state.counts, |counts| counts.connected += 1);
            lease.socket = Some(socket);
        }
        Ok(lease)
    }

    /// What it has and has had.
    pub fn counts(&self) -> ClientCounts {
        self.state.counts.get()
    }

    /// Closes connections that have been idle for too long, that the peer has closed, or whose origin is gone, and ends
    /// requests whose origin has been silent for too long ([`ConnectOptions::stall_timeout`]). To be called every now and then; a
    /// connection's idle time counts from the last call before.
    pub fn sweep(&self, now: Nanos) {
        self.state.sweep(now);
    }
}
