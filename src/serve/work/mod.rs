//! `weir serve work`: an upstream that takes its time and fails now and then.
//!
//! `GET /api/work` answers `{"time": N}` after N ms, if all goes well. What does not go well is a matter of seeded dice
//! ([`Rolls`]), or of what the request asks for ([`Script`]). With a capacity, a request's delay is what it needs of a
//! server's time, and it waits for its turn first.

mod counts;
mod end;
mod rolls;
mod script;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use prometheus_client::registry::Registry;

use self::counts::{Counts, Kind};
pub use self::end::{End, Payload};
pub use self::rolls::{Roll, Rolls};
pub use self::script::Script;
use super::answers::{JSON, answer, bad_request, not_allowed, not_found};
use crate::decide::Nanos;
use crate::decide::station::{Station, Verdict};
use crate::server::{self, Page, Reply, Timer, Turn};

/// The service.
#[derive(Debug)]
pub struct Service {
    rolls: Rolls,
    station: Option<Mutex<Station>>,
    /// The next request's number, on whichever event loop it comes in.
    number: AtomicU64,
    counts: Counts,
    page: Arc<Page>,
}

/// What is to be done for a request.
struct Task {
    kind: Kind,
    takes: Nanos,
    end: End,
}

impl Service {
    /// A service with these dice, and with a capacity or without.
    ///
    /// # Errors
    /// When the system has no file for us.
    pub fn new(rolls: Rolls, station: Option<Station>) -> io::Result<Self> {
        Ok(Self {
            rolls,
            station: station.map(Mutex::new),
            number: AtomicU64::new(0),
            counts: Counts::new(),
            page: Arc::new(Page::new(vec![b'x'; 1 << 20])?),
        })
    }

    async fn work(&self, query: Option<&str>, turn: &Turn) -> Reply {
        let now = turn.now();
        let script = match Script::read(query) {
            Ok(script) => script,
            Err(why) => return bad_request(why).into(),
        };
        let _visit = self.counts.enter();
        let Task { kind, takes, end } = self.task(script, now);
        match end {
            End::Answer(status, payload) => {
                let done = match self.arrive(now, takes) {
                    Verdict::Done { done, .. } => done,
                    Verdict::Refused { retry_after } => {
                        self.counts.add(Kind::Refused);
                        return end::refused(retry_after).into();
                    }
                };
                self.counts.add(kind);
                turn.sleep_until(done).await;
                payload.with(status, done - now, &self.page).into()
            }
            End::Reset => {
                self.counts.add(kind);
                turn.sleep_until(now + takes).await;
                Reply::Reset
            }
            End::Hang => {
                self.counts.add(kind);
                turn.never().await
            }
        }
    }

    fn task(&self, script: Option<Script>, now: Nanos) -> Task {
        let k = self.number.fetch_add(1, Ordering::Relaxed);
        let Some(Script { delay, end }) = script else {
            let Roll { behaviour, takes } = self.rolls.at(k, now);
            return Task { kind: Kind::Rolled(behaviour), takes, end: behaviour.into() };
        };
        let usual = || if end == End::Reset { Nanos::ZERO } else { self.rolls.delay(k) };
        Task { kind: Kind::Scripted, takes: delay.unwrap_or_else(usual), end }
    }

    /// What becomes of work that takes `takes`.
    fn arrive(&self, now: Nanos, takes: Nanos) -> Verdict {
        match &self.station {
            Some(station) => station.lock().unwrap_or_else(PoisonError::into_inner).arrive(now, takes),
            None => Verdict::Done { start: now, done: now + takes },
        }
    }

    /// What has been done so far, as JSON.
    fn stats(&self, now: Nanos) -> String {
        let mut all = self.counts.json();
        if let Some(station) = &self.station {
            let in_system = station.lock().unwrap_or_else(PoisonError::into_inner).in_system(now);
            all.insert("in_system".to_owned(), in_system.into());
        }
        all.insert("phase".to_owned(), self.rolls.phase(now).name().into());
        serde_json::Value::from(all).to_string()
    }
}

impl server::Service for Service {
    type Local = ();

    fn settle(&self, _: &Timer) -> io::Result<()> {
        Ok(())
    }

    fn page(&self) -> Option<Arc<Page>> {
        Some(Arc::clone(&self.page))
    }

    fn count(&self, registry: &mut Registry) {
        self.counts.register(registry);
    }

    async fn answer(&self, (): &(), request: Request<Incoming>, turn: &Turn) -> Reply {
        let path = request.uri().path();
        if !matches!(path, "/api/work" | "/stats") {
            return not_found().into();
        }
        if request.method() != Method::GET {
            return not_allowed("GET").into();
        }
        match path {
            "/stats" => answer(StatusCode::OK, JSON, self.stats(turn.now())).into(),
            _ => self.work(request.uri().query(), turn).await,
        }
    }
}
