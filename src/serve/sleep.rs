//! `weir serve sleep`: the same wait in two ways, on a thread of a pool and without a thread.

use std::io;

use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use prometheus_client::registry::Registry;

use super::answers::{JSON, answer, bad_request, not_allowed, not_found};
use super::pool::{self, Desk, Overflow, Pool};
use crate::decide::Nanos;
use crate::machine::clock::Clock;
use crate::server::{self, Reply, Timer, Turn};

/// The longest wait that a request may ask for.
pub const MOST_MS: u64 = 600_000;

/// The service.
#[derive(Debug)]
pub struct Service {
    pool: Pool<Nap>,
    clock: Clock,
    ms: u64,
}

/// A wait that blocks its thread.
#[derive(Debug)]
pub struct Nap {
    clock: Clock,
    length: Nanos,
}

impl pool::Job for Nap {
    type Answer = ();

    fn run(self) {
        let until = self.clock.now() + self.length;
        while self.clock.now() < until {
            self.clock.sleep_until(until);
        }
    }
}

impl Service {
    /// A service with a pool of `threads` for those who block one; each request waits `ms` unless it asks for another
    /// time.
    ///
    /// # Errors
    /// When the system has not so many threads for us.
    pub fn new(threads: usize, ms: u64) -> io::Result<Self> {
        let pool = Pool::new(threads, usize::MAX, Overflow::Wait)?;
        Ok(Self { pool, clock: Clock::starting_in(Nanos::ZERO), ms })
    }

    /// How long a request asks to wait; the first `ms` counts.
    fn length(&self, query: Option<&str>) -> Option<Nanos> {
        let asked = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).find(|(name, _)| name == "ms");
        let Some((_, ms)) = asked else { return Some(Nanos::from_millis(self.ms)) };
        let is_whole = !ms.is_empty() && ms.bytes().all(|byte| byte.is_ascii_digit());
        let ms = ms.parse().ok().filter(|ms| is_whole && *ms <= MOST_MS)?;
        Some(Nanos::from_millis(ms))
    }
}

impl server::Service for Service {
    type Local = Desk<Nap>;

    fn settle(&self, _: &Timer) -> io::Result<Desk<Nap>> {
        Ok(self.pool.desk())
    }

    async fn answer(&self, desk: &Desk<Nap>, request: Request<Incoming>, turn: &Turn) -> Reply {
        let blocks = match request.uri().path() {
            "/sync-loadtest" => true,
            "/async-loadtest" => false,
            _ => return not_found().into(),
        };
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return not_allowed("GET, HEAD").into();
        }
        let Some(length) = self.length(request.uri().query()) else {
            return bad_request(format!("ms: a whole number up to {MOST_MS}")).into();
        };
        let body = if blocks {
            // A wait cannot panic.
            let _ = desk.ask(Nap { clock: self.clock, length }).await;
            r#"{"message":"Synchronous Hello World!"}"#
        } else {
            turn.sleep(length).await;
            r#"{"message":"Asynchronous Hello World"}"#
        };
        answer(StatusCode::OK, JSON, body).into()
    }

    fn count(&self, registry: &mut Registry) {
        self.pool.count(registry);
    }
}
