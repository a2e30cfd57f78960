//! `weir serve work`: an upstream that takes its time and fails now and then.
//!
//! `GET /api/work` answers `{"time": N}` after N ms, if all goes well. What does not go well is a matter of seeded dice
//! ([`WorkDice`]), or of what the request asks for ([`ResponseOverrides`]). With a capacity, a request's delay is what it needs of a
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

use self::counts::{Kind, WorkCounters};
pub use self::end::{Payload, ResponseEnding};
pub use self::rolls::{WorkDecision, WorkDice};
pub use self::script::ResponseOverrides;
use super::answers::{CONTENT_TYPE_JSON, bad_request, method_not_allowed, not_found, response};
use crate::decide::Nanos;
use crate::decide::station::{Station, StationOutcome};
use crate::server::{self, RequestContext, ServiceReply, StaticBody, Timer};

/// The service.
#[derive(Debug)]
pub struct Service {
    dice: WorkDice,
    station: Option<Mutex<Station>>,
    /// The next request's number, on whichever event loop it comes in.
    number: AtomicU64,
    counts: WorkCounters,
    page: Arc<StaticBody>,
}

/// What is to be done for a request.
struct WorkTask {
    kind: Kind,
    service_time: Nanos,
    ending: ResponseEnding,
}

impl Service {
    /// A service with these dice, and with a capacity or without.
    ///
    /// # Errors
    /// When the system has no file for us.
    pub fn new(rolls: WorkDice, station: Option<Station>) -> io::Result<Self> {
        Ok(Self {
            dice: rolls,
            station: station.map(Mutex::new),
            number: AtomicU64::new(0),
            counts: WorkCounters::new(),
            page: Arc::new(StaticBody::new(vec![b'x'; 1 << 20])?),
        })
    }

    async fn respond(&self, query: Option<&str>, turn: &RequestContext) -> ServiceReply {
        let now = turn.now();
        let script = match ResponseOverrides::read(query) {
            Ok(script) => script,
            Err(why) => return bad_request(why).into(),
        };
        let _visit = self.counts.enter();
        let WorkTask { kind, service_time: takes, ending: end } = self.task(script, now);
        match end {
            ResponseEnding::Response(status, payload) => {
                let done = match self.arrive(now, takes) {
                    StationOutcome::Done { done, .. } => done,
                    StationOutcome::Rejected { retry_after } => {
                        self.counts.add(Kind::RateLimited);
                        return end::rate_limited_response(retry_after).into();
                    }
                };
                self.counts.add(kind);
                turn.sleep_until(done).await;
                payload.response(status, done - now, &self.page).into()
            }
            ResponseEnding::Reset => {
                self.counts.add(kind);
                turn.sleep_until(now + takes).await;
                ServiceReply::Reset
            }
            ResponseEnding::Hang => {
                self.counts.add(kind);
                turn.hang().await
            }
        }
    }

    fn task(&self, script: Option<ResponseOverrides>, now: Nanos) -> WorkTask {
        let k = self.number.fetch_add(1, Ordering::Relaxed);
        let Some(ResponseOverrides { delay, ending: end }) = script else {
            let WorkDecision { behaviour, service_time: takes } = self.dice.at(k, now);
            return WorkTask { kind: Kind::Drawn(behaviour), service_time: takes, ending: behaviour.into() };
        };
        let usual = || if end == ResponseEnding::Reset { Nanos::ZERO } else { self.dice.delay(k) };
        WorkTask { kind: Kind::Overridden, service_time: delay.unwrap_or_else(usual), ending: end }
    }

    /// What becomes of work that takes `takes`.
    fn arrive(&self, now: Nanos, takes: Nanos) -> StationOutcome {
        match &self.station {
            Some(station) => station.lock().unwrap_or_else(PoisonError::into_inner).arrive(now, takes),
            None => StationOutcome::Done { start: now, done: now + takes },
        }
    }

    /// What has been done so far, as JSON.
    fn stats(&self, now: Nanos) -> String {
        let mut all = self.counts.json();
        if let Some(station) = &self.station {
            let in_system = station.lock().unwrap_or_else(PoisonError::into_inner).in_system(now);
            all.insert("in_system".to_owned(), in_system.into());
        }
        all.insert("phase".to_owned(), self.dice.phase(now).name().into());
        serde_json::Value::from(all).to_string()
    }
}

impl server::Service for Service {
    type Local = ();

    fn init_thread(&self, _: &Timer) -> io::Result<()> {
        Ok(())
    }

    fn static_body(&self) -> Option<Arc<StaticBody>> {
        Some(Arc::clone(&self.page))
    }

    fn register_metrics(&self, registry: &mut Registry) {
        self.counts.register(registry);
    }

    async fn handle(&self, (): &(), request: Request<Incoming>, turn: &RequestContext) -> ServiceReply {
        let path = request.uri().path();
        if !matches!(path, "/api/work" | "/stats") {
            return not_found().into();
        }
        if request.method() != Method::GET {
            return method_not_allowed("GET").into();
        }
        match path {
            "/stats" => response(StatusCode::OK, CONTENT_TYPE_JSON, self.stats(turn.now())).into(),
            _ => self.respond(request.uri().query(), turn).await,
        }
    }
}
