//! `weir serve sleep`: the same delay twice, blocking a thread of a pool and on the event loop's timer.

use std::io;

use http::{Method, Request, StatusCode};
use prometheus_client::registry::Registry;

use super::pool::{self, PoolHandle, PoolOverflow, ThreadPool};
use super::responses::{CONTENT_TYPE_JSON, bad_request, method_not_allowed, not_found, response};
use crate::number_range::check_number;
use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_server::{self as server, RequestBody, RequestContext, ServiceReply, Timer};

/// Maximum of `?ms=`, in milliseconds.
pub const MAX_SLEEP_MS: u64 = 600_000;

/// Options of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Threads that `/sync-loadtest` blocks; requests queue for them.
    pub threads: usize,
    /// Response delay without `?ms=`.
    pub delay: Nanos,
}

impl Options {
    /// Checks the options.
    ///
    /// # Errors
    /// First invalid option, by its flag, in one line.
    pub fn check(&self) -> Result<(), String> {
        check_number("threads", self.threads, 1..=4096)?;
        if self.delay > Nanos::from_millis(MAX_SLEEP_MS) {
            return Err("invalid --delay: longer than 10m; write e.g. 200ms".to_owned());
        }
        Ok(())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: 40, delay: Nanos::SECOND }
    }
}

/// Service with `/sync-loadtest` and `/async-loadtest`.
#[derive(Debug)]
pub struct Service {
    pool: ThreadPool<BlockingSleep>,
    clock: Clock,
    default_delay: Nanos,
}

/// Delay that blocks a thread of the pool.
#[derive(Debug)]
pub struct BlockingSleep {
    clock: Clock,
    length: Nanos,
}

impl pool::PoolJob for BlockingSleep {
    type Output = ();

    fn run(self) {
        let until = self.clock.now() + self.length;
        while self.clock.now() < until {
            self.clock.sleep_until(until);
        }
    }
}

impl Service {
    /// Service with these options.
    ///
    /// # Errors
    /// A thread that the system cannot start.
    pub fn new(options: Options) -> io::Result<Self> {
        let pool = ThreadPool::new(options.threads, usize::MAX, PoolOverflow::Wait)?;
        Ok(Self { pool, clock: Clock::starting_in(Nanos::ZERO), default_delay: options.delay })
    }

    /// Delay of a request, by the first `ms` of its query; none if that is invalid.
    fn length(&self, query: Option<&str>) -> Option<Nanos> {
        let value = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).find(|(name, _)| name == "ms");
        let Some((_, ms)) = value else { return Some(self.default_delay) };
        let is_whole = !ms.is_empty() && ms.bytes().all(|byte| byte.is_ascii_digit());
        let ms = ms.parse().ok().filter(|ms| is_whole && *ms <= MAX_SLEEP_MS)?;
        Some(Nanos::from_millis(ms))
    }
}

impl server::Service for Service {
    type Local = PoolHandle<BlockingSleep>;

    fn init_thread(&self, _: &Timer) -> io::Result<PoolHandle<BlockingSleep>> {
        Ok(self.pool.handle())
    }

    async fn handle(
        &self,
        pool: &PoolHandle<BlockingSleep>,
        request: Request<RequestBody>,
        context: &RequestContext,
    ) -> ServiceReply {
        let blocks = match request.uri().path() {
            "/sync-loadtest" => true,
            "/async-loadtest" => false,
            _ => return not_found().into(),
        };
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return method_not_allowed("GET, HEAD").into();
        }
        let Some(length) = self.length(request.uri().query()) else {
            return bad_request(format!("ms: a whole number up to {MAX_SLEEP_MS}")).into();
        };
        let body = if blocks {
            // This job cannot panic.
            let _ = pool.submit(BlockingSleep { clock: self.clock, length }).await;
            r#"{"message":"Synchronous Hello World!"}"#
        } else {
            context.sleep(length).await;
            r#"{"message":"Asynchronous Hello World"}"#
        };
        response(StatusCode::OK, CONTENT_TYPE_JSON, body).into()
    }

    fn register_metrics(&self, registry: &mut Registry) {
        self.pool.register_metrics(registry);
    }
}
