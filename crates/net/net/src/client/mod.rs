//! HTTP client for upstreams on one event loop, with connection pools; dropping a request cancels it at once.
//!
//! An HTTP/1.1 connection is a plain value, polled by the caller of the request: there is no task per connection and no
//! channel, so an exchange is one write and one read, and dropping the future closes the connection. HTTP/2 is hyper's,
//! with a task per connection.
//!
//! - [`Client`]: one per event loop; [`Origin`]: the upstream; [`OutgoingRequest`] to [`IncomingBody`]
//! - `pool`: the connections to an origin; `connect`: a new one; `pending`: addresses that it waits for; `socket`: its
//!   bytes; `progress_timeout`: its progress timeout
//! - `proxy_header`: the PROXY protocol before a connection's first byte
//! - `request`, `upload_error`, [`response`], `http1`: an exchange over HTTP/1.1, with `begun_exchange` for one that is
//!   polled without a future, with `framing_headers`, `passed_response` for fields that nothing reads, `body_reader` for its body, and `body_drain` for
//!   the unwanted rest of one; `http2`: the same over HTTP/2
//! - [`PostTarget`]: messages that are posted, such as those to a collector
//! - [`buffered_body`]: bodies that are read whole
//! - [`WireOptions`], `step_timer`, [`TimedBody`]: timeouts of an exchange's steps, and heads as they are spelled, for
//!   transports of libraries
//! - `client_state`: what all requests of a client share

mod begun_exchange;
mod body;
mod body_drain;
mod body_reader;
pub mod buffered_body;
mod client_state;
mod connect;
mod error;
mod framing_headers;
mod http1;
mod http2;
mod origin;
mod passed_response;
mod pending;
mod pool;
mod post_target;
mod progress_timeout;
mod proxy_header;
mod read_pool;
mod request;
pub mod response;
mod socket;
mod step_timer;
mod timed_body;
mod upgraded;
mod upload_error;
mod wire_options;

use std::rc::Rc;
use std::sync::Arc;

use http::{HeaderMap, Response};
use tokio::net::TcpStream;

pub use self::begun_exchange::{BegunExchange, CompleteResponse};
pub use self::body::IncomingBody;
use self::client_state::ClientState;
pub use self::error::{FailurePoint, SendError};
use self::http1::ExchangeError;
pub use self::origin::{ConnectOptions, Http2Limits, Origin, Protocol};
pub use self::pending::PendingAddresses;
pub use self::pool::ClientCounts;
use self::pool::{Checkout, PooledConnection, update_counts};
pub use self::post_target::{PostTarget, wait_of};
pub use self::proxy_header::ProxyVersion;
use self::request::RequestWriter;
pub use self::request::{BodyStream, OutgoingBody, OutgoingRequest};
use self::response::HeadParser;
use self::socket::ClientSocket;
pub use self::timed_body::TimedBody;
pub use self::upgraded::UpgradedConnection;
pub use self::wire_options::{ReceivedHead, StepTimeouts, WireOptions};
use weir_base::Nanos;
use weir_machine::timer::Timer;

use crate::wire::PassedFields;

/// Connection options of a client.
#[derive(Clone, Debug)]
pub struct Options {
    /// Idle time after which [`Client::sweep`] closes a connection.
    pub idle_timeout: Nanos,
    /// Maximum idle connections to an origin.
    pub max_idle: usize,
    /// Maximum unwanted rest of a body, in bytes, that is read to reuse its connection.
    pub max_drained_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { idle_timeout: Nanos::from_secs(60), max_idle: 1024, max_drained_bytes: 64 * 1024 }
    }
}

/// HTTP client of one event loop, used within a `LocalSet`.
#[derive(Clone, Debug)]
pub struct Client {
    state: Rc<ClientState>,
}

impl Client {
    /// A client without connections.
    pub fn new(timer: Timer, options: Options) -> Self {
        Self { state: Rc::new(ClientState::new(timer, options)) }
    }

    /// Sends a request and awaits the head of its response. Dropping the future cancels it at once, and closes the
    /// connection if there is no response yet. A reused connection that had been closed before it took any byte of the
    /// request is replaced; nothing that the other end may have taken is sent twice.
    ///
    /// # Errors
    /// The failure, if there is no response.
    ///
    /// # Panics
    /// If called outside of a `LocalSet`.
    pub async fn send(
        &self,
        to: &Arc<Origin>,
        request: OutgoingRequest<'_>,
    ) -> Result<Response<IncomingBody>, SendError> {
        let shared = &self.state;
        shared.start_drains();
        request.check_target()?;
        let pool = shared.pool(to);
        let connect_timeout = request.wire.timeouts.connect;
        let mut request = request;
        if pool.may_speak_http2() {
            match http2::send(shared, &pool, request).await? {
                Ok(response) => return Ok(response),
                Err(unsent) => request = unsent,
            }
        }
        let connection = match pool.check_out() {
            Checkout::Connection(connection) => connection,
            Checkout::Wait(waiting) => waiting.await,
        };
        let connection = self.ensure_connected(connection, connect_timeout).await?;
        if connection.socket.as_ref().is_some_and(ClientSocket::negotiated_http2) {
            // The origin spoke HTTP/1.1 the last time.
            http2::adopt(connection, shared.last_sweep()).await?;
            let response = http2::send(shared, &pool, request).await?;
            return response.map_err(|_| SendError::protocol("the service cannot settle on a version of HTTP"));
        }
        let head_parser = shared.head_parser(&request);
        let upload = RequestWriter::new(to, request, shared.buffer())?;
        let failed = match http1::exchange(shared, connection, head_parser, upload, None).await {
            Ok(response) => return Ok(response),
            Err(failed) => failed,
        };
        // Boxed, since this is rare.
        Box::pin(self.send_again(to, failed, connect_timeout)).await
    }

    /// Begins a request over an idle connection of HTTP/1.1; None if there is no such connection, or a request that
    /// needs more. Nothing is sent before the first poll.
    ///
    /// # Panics
    /// If called outside of a `LocalSet`.
    pub fn begin(&self, to: &Arc<Origin>, request: OutgoingRequest<'_>) -> Option<BegunExchange> {
        let shared = &self.state;
        shared.start_drains();
        request.check_target().ok()?;
        let pool = shared.pool(to);
        if pool.may_speak_http2() || request.upgrade {
            return None;
        }
        let connection = pool.check_out_idle()?;
        let (connect_timeout, head_parser) = (request.wire.timeouts.connect, shared.head_parser(&request));
        let upload = RequestWriter::new(to, request, shared.buffer()).ok()?;
        Some(BegunExchange::new(http1::exchange(shared, connection, head_parser, upload, None), connect_timeout))
    }

    /// Goes on with a request that was begun, as [`Self::send`] does.
    ///
    /// # Errors
    /// The failure, if there is no response.
    pub async fn complete(&self, to: &Arc<Origin>, begun: BegunExchange) -> Result<Response<IncomingBody>, SendError> {
        let connect_timeout = begun.connect_timeout;
        match begun.response().await {
            Ok(response) => Ok(response),
            Err(failed) => self.send_again(to, failed, connect_timeout).await,
        }
    }

    /// Sends a request whose reused connection had been closed over a new one, if nothing was taken of it.
    async fn send_again(
        &self,
        to: &Arc<Origin>,
        failed: ExchangeError,
        connect_timeout: Nanos,
    ) -> Result<Response<IncomingBody>, SendError> {
        let Some((mut upload, head_parser)) = failed.resend else { return Err(failed.error) };
        update_counts(&self.state.counts, |counts| counts.resent += 1);
        upload.rewind();
        let connection = match self.state.pool(to).check_out_new() {
            Checkout::Connection(connection) => connection,
            Checkout::Wait(waiting) => waiting.await.without_socket(),
        };
        let connection = self.ensure_connected(connection, connect_timeout).await?;
        let again = http1::exchange(&self.state, connection, head_parser, upload, None).await;
        again.map_err(|failed| failed.error)
    }

    /// Sends a request once, over HTTP/1.1, and calls `on_sent` when its last byte is written. Unlike [`Self::send`] it
    /// never sends again after a failure of a reused connection, so that the caller counts each request that a service
    /// may get.
    ///
    /// # Errors
    /// The failure, if there is no response.
    ///
    /// # Panics
    /// If called outside of a `LocalSet`.
    pub async fn send_once(
        &self,
        to: &Arc<Origin>,
        request: OutgoingRequest<'_>,
        mut on_sent: impl FnMut(),
    ) -> Result<Response<IncomingBody>, SendError> {
        let shared = &self.state;
        shared.start_drains();
        request.check_target()?;
        let connection = match shared.pool(to).check_out() {
            Checkout::Connection(connection) => connection,
            Checkout::Wait(waiting) => waiting.await,
        };
        let connection = self.ensure_connected(connection, request.wire.timeouts.connect).await?;
        if connection.socket.as_ref().is_some_and(ClientSocket::negotiated_http2) {
            return Err(SendError::protocol("the service speaks HTTP/2 where HTTP/1.1 was asked for"));
        }
        let head_parser = HeadParser::new(request.response_context()).asking_for(request.protocol());
        let upload = RequestWriter::new(to, request, shared.buffer())?;
        let exchange = http1::exchange(shared, connection, head_parser, upload, Some(&mut on_sent));
        exchange.await.map_err(|failed| failed.error)
    }

    /// Connects, unless there is a connection.
    async fn ensure_connected(
        &self,
        mut connection: PooledConnection,
        timeout: Nanos,
    ) -> Result<PooledConnection, SendError> {
        if connection.socket.is_none() {
            let origin = Arc::clone(&connection.pool().origin);
            // Of a burst of requests, all are queued before any of them connects, since their time runs.
            tokio::task::yield_now().await;
            let socket = connect::connect_origin(&origin, &self.state.timer, timeout).await?;
            update_counts(&self.state.counts, |counts| counts.connected += 1);
            connection.socket = Some(socket);
            connection.connected = self.state.last_sweep();
        }
        Ok(connection)
    }

    /// Connects to an origin, TLS included, and closes the connection.
    ///
    /// # Errors
    /// The failure, if there is no connection.
    pub async fn probe(&self, to: &Origin) -> Result<(), SendError> {
        connect::connect_origin(to, &self.state.timer, Nanos::NEVER).await.map(drop)
    }

    /// Connects to a host, whose addresses are attempted in turn, for bytes that are not the client's requests.
    ///
    /// # Errors
    /// If the name has no address, or none of them accepts a connection.
    pub async fn connect_host(&self, host: &str, port: u16) -> Result<TcpStream, SendError> {
        connect::connect_host(host, port, &self.state.timer).await
    }

    /// Takes the headers of a request that has ended, whose memory the next response's may use.
    pub fn recycle_headers(&self, headers: HeaderMap) {
        self.state.recycle_headers(headers);
    }

    /// Takes the fields of a request that nothing has read, whose memory the next response's may use.
    pub fn recycle_passed_fields(&self, passed: PassedFields) {
        self.state.recycle_passed_fields(passed);
    }

    /// Counts of connections and requests.
    pub fn counts(&self) -> ClientCounts {
        self.state.counts.get()
    }

    /// Closes connections that are idle for too long, closed by the peer or without an origin, and ends requests that
    /// exceed their progress timeout ([`ConnectOptions::stall_timeout`]). Called periodically; idle times count from
    /// the last call before.
    pub fn sweep(&self, now: Nanos) {
        self.state.sweep(now);
    }
}
