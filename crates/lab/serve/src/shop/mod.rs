//! `weir serve shop`: a shop whose protocol has rules, for users that log in, read, buy and log out.
//!
//! The rules are [`rules`]. A request is delayed first, by seeded random
//! numbers; then the shop decides, or the request fails without reaching it. `GET /stats` has the counts of all that
//! came, so that a client can compare its own.

mod counts;
mod endpoint;
mod options;
mod parse;
mod reply;
pub mod rules;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, StatusCode};
use prometheus_client::registry::Registry;
use serde_json::{Map, Value, json};

use self::counts::{ShopCollector, ShopCounters, ShopRequestEnd};
use self::endpoint::{ShopEndpoint, ShopRoute, item_id};
pub use self::options::Options;
use self::parse::{AddForm, LoginForm};
use self::reply::{ReplyFaults, error_response, outcome_response};
use super::responses::{CONTENT_TYPE_JSON, method_not_allowed, not_found, response};
use crate::shop::rules::catalog::Catalog;
use crate::shop::rules::store::{Shop, ShopOutcome, ShopRequest};
use crate::shop::rules::violation::ProtocolViolation;
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_machine::lock::lock;
use weir_server::{self as server, RequestBody, RequestContext, ServiceReply};
use weir_workload::mix::Behaviour;

/// Service with the shop and `/stats`.
#[derive(Debug)]
pub struct Service {
    options: Options,
    shop: Mutex<Shop>,
    counters: Arc<ShopCounters>,
    /// Number of the next request, over all event loops; indexes the random draws.
    number: AtomicU64,
    rngs: ShopRngs,
}

/// Streams of random numbers, one per choice.
#[derive(Debug)]
struct ShopRngs {
    mix: SeededRng,
    delay: SeededRng,
    slow_delay: SeededRng,
    wrong_price: SeededRng,
    close: SeededRng,
}

/// Maximum body, in bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;

impl Service {
    /// Service with these options.
    pub fn new(options: Options) -> Self {
        let seed = options.rules.seed;
        let [mix, delay, slow_delay, wrong_price, close] = [41, 42, 43, 44, 45].map(|salt| SeededRng::new(seed, salt));
        Self {
            shop: Mutex::new(Shop::new(options.rules, Catalog::new(options.items, seed))),
            counters: Arc::default(),
            number: AtomicU64::new(0),
            rngs: ShopRngs { mix, delay, slow_delay, wrong_price, close },
            options,
        }
    }

    async fn respond(
        &self,
        endpoint: ShopEndpoint,
        request: Request<RequestBody>,
        context: &RequestContext,
    ) -> ServiceReply {
        let pending = self.counters.enter(endpoint);
        let k = self.number.fetch_add(1, Ordering::Relaxed);
        let (head, body) = request.into_parts();
        let body = context.read_body(body, MAX_BODY_BYTES).await.ok();
        let behaviour = self.options.mix.at(&self.rngs.mix, k);
        context.sleep_until(context.began() + self.delay(behaviour, k)).await;
        let faults = self.faults(endpoint, behaviour, k);
        let reply = match behaviour {
            Behaviour::Reset => {
                pending.end(ShopRequestEnd::Reset);
                return ServiceReply::Reset;
            }
            Behaviour::Hang => return context.hang().await,
            Behaviour::Error | Behaviour::Slow => error_response(StatusCode::INTERNAL_SERVER_ERROR, faults),
            Behaviour::Limited => error_response(StatusCode::TOO_MANY_REQUESTS, faults),
            Behaviour::Good | Behaviour::Garbage => {
                let (outcome, pages) = self.decide(endpoint, &head, body.as_ref());
                outcome_response(endpoint, &outcome, pages, faults)
            }
        };
        let status = reply.status();
        let has_wrong_body =
            status.is_success() && (faults.is_garbage && status != StatusCode::NO_CONTENT || faults.has_wrong_price);
        let service_time = context.now() - context.began();
        pending.end(ShopRequestEnd::Response { status: status.as_u16(), has_wrong_body, service_time });
        reply.into()
    }

    fn delay(&self, behaviour: Behaviour, k: u64) -> Nanos {
        match behaviour {
            Behaviour::Reset => Nanos::ZERO,
            Behaviour::Slow => self.options.slow_delay.at(&self.rngs.slow_delay, k),
            _ => self.options.delay.at(&self.rngs.delay, k),
        }
    }

    fn faults(&self, endpoint: ShopEndpoint, behaviour: Behaviour, k: u64) -> ReplyFaults {
        let is_drawn = |rng: &SeededRng, fraction: f64| rng.unit_at(k) <= fraction;
        ReplyFaults {
            is_garbage: behaviour == Behaviour::Garbage,
            has_wrong_price: endpoint == ShopEndpoint::Item
                && is_drawn(&self.rngs.wrong_price, self.options.wrong_price),
            redirects_login: self.options.redirects_login,
            closes: is_drawn(&self.rngs.close, self.options.close),
            uses_gzip: self.options.uses_gzip,
        }
    }

    /// Outcome of a request, and the number of pages of the list.
    fn decide(&self, endpoint: ShopEndpoint, head: &Parts, body: Option<&Bytes>) -> (ShopOutcome, u32) {
        let body = body.map(|body| &body[..]);
        let mut shop = lock(&self.shop);
        let pages = shop.catalog().pages();
        let login = (endpoint == ShopEndpoint::Login).then(|| LoginForm::read(&head.headers, body?)).flatten();
        let request = match endpoint {
            ShopEndpoint::Visit => Some(ShopRequest::Visit),
            ShopEndpoint::Home => Some(ShopRequest::Home),
            ShopEndpoint::Login => {
                login.as_ref().map(|form| ShopRequest::Login { user: &form.user, password: &form.password })
            }
            ShopEndpoint::Items => page(head.uri.query()).map(|page| ShopRequest::Items { page }),
            ShopEndpoint::Item => {
                item_id(head.uri.path()).and_then(|id| id.parse().ok()).map(|id| ShopRequest::Item { id })
            }
            ShopEndpoint::Add => body
                .and_then(|body| AddForm::read(&head.headers, body))
                .map(|form| ShopRequest::Add { id: form.item, quantity: form.quantity }),
            ShopEndpoint::Cart => Some(ShopRequest::Cart),
            ShopEndpoint::Buy => Some(ShopRequest::Buy),
            ShopEndpoint::Logout => Some(ShopRequest::Logout),
        };
        let outcome = match request {
            Some(request) => shop.handle(request, parse::credentials(&head.headers)),
            None => shop.reject(ProtocolViolation::BadRequest),
        };
        (outcome, pages)
    }

    /// Body of `GET /stats`.
    fn stats(&self) -> String {
        let mut json = self.counters.json();
        let shop = lock(&self.shop);
        let totals = shop.totals();
        let mut violations = Map::new();
        let mut sum = 0;
        for kind in ProtocolViolation::ALL {
            let count = shop.violations(kind);
            sum += count;
            if count > 0 {
                violations.insert(kind.name().to_owned(), count.into());
            }
        }
        for (name, count) in [
            ("violations_total", sum),
            ("users", shop.users() as u64),
            ("visitors", totals.visitors),
            ("logins", totals.logins),
            ("logouts", totals.logouts),
            ("iterations", totals.iterations),
            ("orders", totals.orders),
            ("revenue_cents", totals.revenue_cents),
        ] {
            json.insert(name.to_owned(), count.into());
        }
        json.insert("violations".to_owned(), violations.into());
        json.insert("sessions".to_owned(), json!({"open": shop.sessions(), "evicted": totals.evicted}));
        Value::from(json).to_string()
    }
}

/// Page of a query, from 1; 1 without one.
fn page(query: Option<&str>) -> Option<u32> {
    let value = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).find(|(name, _)| name == "page");
    value.map_or(Some(1), |(_, page)| page.parse().ok())
}

impl server::StatelessService for Service {
    async fn handle(&self, request: Request<RequestBody>, context: &RequestContext) -> ServiceReply {
        if request.uri().path() == "/stats" {
            if request.method() != Method::GET {
                return method_not_allowed("GET").into();
            }
            return response(StatusCode::OK, CONTENT_TYPE_JSON, self.stats()).into();
        }
        match ShopRoute::new(request.method(), request.uri().path()) {
            ShopRoute::Endpoint(endpoint) => self.respond(endpoint, request, context).await,
            ShopRoute::WrongMethod(methods) => method_not_allowed(methods).into(),
            ShopRoute::Unknown => not_found().into(),
        }
    }

    fn register_metrics(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(ShopCollector(Arc::clone(&self.counters))));
    }
}
