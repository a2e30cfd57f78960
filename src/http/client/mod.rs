//! Requests to upstreams, many at a time, on one event loop: connections are kept and used again, and a request that
//! is dropped is over at once.
//!
//! An HTTP/1.1 connection is a plain value. Whoever waits for its answer drives it: there is no task per connection
//! and no channel, so an exchange is one write and one read, and to drop the future closes the connection. HTTP/2 is
//! hyper's, with a task per connection.
//!
//! - [`Client`]: one per event loop; [`Origin`]: where requests go; [`Outgoing`] to [`Incoming`]
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

use self::answer::Heads;
pub use self::error::SendError;
pub use self::incoming::Incoming;
pub use self::origin::{Origin, Protocol, Reach};
pub use self::pool::Counts;
use self::pool::{Found, Lease, count};
use self::request::Upload;
pub use self::request::{OutBody, Outgoing, Streamed};
use self::shared::Shared;
use self::socket::Socket;
pub use self::upgraded::Upgraded;
use crate::decide::Nanos;
use crate::machine::timer::Timer;

/// How a client treats connections.
#[derive(Clone, Debug)]
pub struct Options {
    /// A connection that was idle for so long is closed by the next [`Client::sweep`].
    pub idle_timeout: Nanos,
    /// More idle connections than this to an origin are not kept.
    pub most_idle: usize,
    /// Up to so many bytes of an unwanted body are read to keep its connection.
    pub most_drained: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { idle_timeout: Nanos::from_secs(60), most_idle: 1024, most_drained: 64 * 1024 }
    }
}

/// Sends requests and keeps connections. Lives on one event loop, within a `LocalSet`.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Rc<Shared>,
}

impl Client {
    /// A client without connections.
    pub fn new(timer: Timer, options: Options) -> Self {
        Self { shared: Rc::new(Shared::new(timer, options)) }
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
    pub async fn send(&self, to: &Arc<Origin>, request: Outgoing<'_>) -> Result<Response<Incoming>, SendError> {
        let shared = &self.shared;
        shared.begin();
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
            Found::Lease(lease) => lease,
            Found::Wait(waiting) => waiting.await,
        };
        let lease = self.connected(lease).await?;
        if lease.socket.as_ref().is_some_and(Socket::agreed_on_http2) {
            // It spoke HTTP/1.1 the last time.
            http2::adopt(lease, shared.now()).await?;
            let answer = Box::pin(http2::send(shared, &pool, request)).await?;
            return answer.map_err(|_| SendError::protocol("the service cannot settle on a version of HTTP"));
        }
        let asked = request.asked();
        let upload = Upload::new(to, request, shared.buffer())?;
        let failed = match http1::exchange(shared, lease, Heads::new(asked), upload, None).await {
            Ok(answer) => return Ok(answer),
            Err(failed) => failed,
        };
        let Some(mut upload) = failed.again else { return Err(failed.error) };
        count(&shared.tally, |counts| counts.repeated += 1);
        upload.rewind();
        let lease = match pool.fresh() {
            Found::Lease(lease) => lease,
            Found::Wait(waiting) => waiting.await.fresh(),
        };
        let lease = self.connected(lease).await?;
        // Boxed, for it is seldom.
        let again = Box::pin(http1::exchange(shared, lease, Heads::new(asked), upload, None)).await;
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
        request: Outgoing<'_>,
        mut left: impl FnMut(),
    ) -> Result<Response<Incoming>, SendError> {
        let shared = &self.shared;
        shared.begin();
        request.check_target()?;
        let lease = match shared.pool(to).check_out() {
            Found::Lease(lease) => lease,
            Found::Wait(waiting) => waiting.await,
        };
        let lease = self.connected(lease).await?;
        if lease.socket.as_ref().is_some_and(Socket::agreed_on_http2) {
            return Err(SendError::protocol("the service speaks HTTP/2 where HTTP/1.1 was asked for"));
        }
        let asked = request.asked();
        let upload = Upload::new(to, request, shared.buffer())?;
        let exchange = http1::exchange(shared, lease, Heads::new(asked), upload, Some(&mut left));
        exchange.await.map_err(|failed| failed.error)
    }

    /// Dials, unless there is a connection.
    async fn connected(&self, mut lease: Lease) -> Result<Lease, SendError> {
        if lease.socket.is_none() {
            let origin = Arc::clone(&lease.pool().origin);
            // When many come at once, all that have come are looked at before any is dialled for: their time runs.
            tokio::task::yield_now().await;
            // Boxed, for it is large and seldom.
            let socket = Box::pin(dial::dial(&origin, &self.shared.timer)).await?;
            count(&self.shared.tally, |counts| counts.dialled += 1);
            lease.socket = Some(socket);
        }
        Ok(lease)
    }

    /// What it has and has had.
    pub fn counts(&self) -> Counts {
        self.shared.tally.get()
    }

    /// Closes connections that have been idle for too long, that the peer has closed, or whose origin is gone, and ends
    /// requests whose origin has been silent for too long ([`Reach::stall_timeout`]). To be called every now and then; a
    /// connection's idle time counts from the last call before.
    pub fn sweep(&self, now: Nanos) {
        self.shared.sweep(now);
    }
}
