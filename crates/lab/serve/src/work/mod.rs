//! `weir serve work`: an unreliable upstream.
//!
//! `GET /api/work` responds with `{"time": N}` after N ms, or fails, by seeded random numbers ([`WorkRng`]) or as its
//! query asks for ([`ResponseOverrides`]). With slots, the delay is service time, and a request waits for a slot first.
//! Other paths ([`WorkPath`]) respond alike, to every method, without a look at their query: they are those of a service
//! that this one stands for.

mod counts;
mod decision;
mod ending;
mod options;
mod overrides;
mod path;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use http::{Method, Request, StatusCode};
use prometheus_client::registry::Registry;

use self::counts::{Kind, WorkCounters};
pub use self::decision::{WorkDecision, WorkRng};
pub use self::ending::{Payload, ResponseEnding};
pub use self::options::{Options, WorkOverflow};
pub use self::overrides::ResponseOverrides;
pub use self::path::WorkPath;
use super::responses::{CONTENT_TYPE_JSON, bad_request, method_not_allowed, not_found, response};
use weir_base::Nanos;
use weir_machine::lock::lock;
use weir_server::{self as server, RequestBody, RequestContext, ServiceReply, StaticBody};
use weir_workload::station::{Station, StationOutcome};

/// Service with `/api/work` and `/stats`.
#[derive(Debug)]
pub struct Service {
    rng: WorkRng,
    path: Option<WorkPath>,
    body: Option<String>,
    station: Option<Mutex<Station>>,
    /// Number of the next request, over all event loops.
    number: AtomicU64,
    counts: WorkCounters,
    page: Arc<StaticBody>,
}

/// Decision on a request.
struct WorkTask {
    kind: Kind,
    service_time: Nanos,
    ending: ResponseEnding,
}

impl Service {
    /// Service with these options.
    ///
    /// # Errors
    /// No file for the static body.
    pub fn new(options: Options) -> io::Result<Self> {
        Ok(Self {
            station: options.station().map(Mutex::new),
            path: options.path,
            body: options.body,
            rng: WorkRng::new(options.delay, options.slow_delay, options.mix, options.phases, options.seed),
            number: AtomicU64::new(0),
            counts: WorkCounters::new(),
            page: Arc::new(StaticBody::new(vec![b'x'; 1 << 20])?),
        })
    }

    async fn respond(&self, script: Option<ResponseOverrides>, context: &RequestContext) -> ServiceReply {
        let now = context.now();
        let _in_flight = self.counts.enter();
        let WorkTask { kind, service_time, ending } = self.task(script, now);
        match ending {
            ResponseEnding::Response(status, payload) => {
                let done = match self.arrive(now, service_time) {
                    StationOutcome::Done { done, .. } => done,
                    StationOutcome::Rejected { retry_after } => {
                        self.counts.add(Kind::RateLimited);
                        return ending::rate_limited_response(retry_after).into();
                    }
                };
                self.counts.add(kind);
                context.sleep_until(done).await;
                payload.response(status, done - now, &self.page).into()
            }
            ResponseEnding::Reset => {
                self.counts.add(kind);
                context.sleep_until(now + service_time).await;
                ServiceReply::Reset
            }
            ResponseEnding::Hang => {
                self.counts.add(kind);
                context.hang().await
            }
        }
    }

    fn task(&self, script: Option<ResponseOverrides>, now: Nanos) -> WorkTask {
        let k = self.number.fetch_add(1, Ordering::Relaxed);
        let Some(ResponseOverrides { delay, ending }) = script else {
            let WorkDecision { behaviour, service_time } = self.rng.at(k, now);
            let ending = match (behaviour.into(), &self.body) {
                (ResponseEnding::Response(StatusCode::OK, Payload::Standard), Some(text)) => {
                    ResponseEnding::Response(StatusCode::OK, Payload::Text(text.clone()))
                }
                (ending, _) => ending,
            };
            return WorkTask { kind: Kind::Drawn(behaviour), service_time, ending };
        };
        let default_delay = || if ending == ResponseEnding::Reset { Nanos::ZERO } else { self.rng.delay(k) };
        WorkTask { kind: Kind::Overridden, service_time: delay.unwrap_or_else(default_delay), ending }
    }

    /// Outcome of work with this service time.
    fn arrive(&self, now: Nanos, service_time: Nanos) -> StationOutcome {
        match &self.station {
            Some(station) => lock(station).arrive(now, service_time),
            None => StationOutcome::Done { start: now, done: now + service_time },
        }
    }

    /// Body of `GET /stats`.
    fn stats(&self, now: Nanos) -> String {
        let mut all = self.counts.json();
        if let Some(station) = &self.station {
            let in_system = lock(station).in_system(now);
            all.insert("in_system".to_owned(), in_system.into());
        }
        all.insert("phase".to_owned(), self.rng.phase(now).name().into());
        serde_json::Value::from(all).to_string()
    }
}

impl server::StatelessService for Service {
    fn static_body(&self) -> Option<Arc<StaticBody>> {
        Some(Arc::clone(&self.page))
    }

    fn register_metrics(&self, registry: &mut Registry) {
        self.counts.register(registry);
    }

    async fn handle(&self, request: Request<RequestBody>, context: &RequestContext) -> ServiceReply {
        let path = request.uri().path();
        match path {
            "/api/work" | "/stats" if request.method() != Method::GET => method_not_allowed("GET").into(),
            "/stats" => response(StatusCode::OK, CONTENT_TYPE_JSON, self.stats(context.now())).into(),
            "/api/work" => match ResponseOverrides::read(request.uri().query()) {
                Ok(script) => self.respond(script, context).await,
                Err(reason) => bad_request(reason).into(),
            },
            _ if self.path.as_ref().is_some_and(|own| own.has(path)) => self.respond(None, context).await,
            _ => not_found().into(),
        }
    }
}
