//! Counters of the service. Each request counts once, when its outcome is decided.

use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use serde_json::{Map, Value};

use weir_workload::mix::Behaviour;

/// Counter that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Behaviour drawn from the mix.
    Drawn(Behaviour),
    /// Scripted request: the query names the response.
    Overridden,
    /// Rejection because of a full queue.
    RateLimited,
}

/// Counters by kind, and the number of requests in flight.
#[derive(Debug)]
pub(super) struct WorkCounters {
    family: Family<[(&'static str, &'static str); 1], Counter>,
    drawn: [Counter; 7],
    overridden: Counter,
    rate_limited: Counter,
    in_flight: AtomicU64,
}

impl WorkCounters {
    pub(super) fn new() -> Self {
        let family = Family::<[(&'static str, &'static str); 1], Counter>::default();
        let of = |name| family.get_or_create(&[("behaviour", name)]).clone();
        Self {
            drawn: Behaviour::ALL.map(|behaviour| of(behaviour.name())),
            overridden: of("scripted"),
            rate_limited: of("rejected"),
            in_flight: AtomicU64::new(0),
            family,
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("work_requests", "Requests by behaviour", self.family.clone());
    }

    pub(super) fn add(&self, kind: Kind) {
        match kind {
            Kind::Drawn(behaviour) => self.drawn[behaviour as usize].inc(),
            Kind::Overridden => self.overridden.inc(),
            Kind::RateLimited => self.rate_limited.inc(),
        };
    }

    /// Counts a request as in flight until the guard is dropped.
    pub(super) fn enter(&self) -> InFlightGuard<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlightGuard(self)
    }

    /// Counters as JSON; `requests` is the sum of all others.
    pub(super) fn json(&self) -> Map<String, Value> {
        let mut by_behaviour = Map::new();
        for behaviour in Behaviour::ALL {
            by_behaviour.insert(behaviour.name().to_owned(), self.drawn[behaviour as usize].get().into());
        }
        let (scripted, rejected) = (self.overridden.get(), self.rate_limited.get());
        let drawn: u64 = self.drawn.iter().map(Counter::get).sum();
        let mut all = Map::new();
        all.insert("requests".to_owned(), (drawn + scripted + rejected).into());
        all.insert("behaviour".to_owned(), by_behaviour.into());
        all.insert("scripted".to_owned(), scripted.into());
        all.insert("rejected".to_owned(), rejected.into());
        all.insert("in_flight".to_owned(), self.in_flight.load(Ordering::Relaxed).into());
        all
    }
}

/// Guard of a request in flight; see [`WorkCounters::enter`].
#[derive(Debug)]
pub(super) struct InFlightGuard<'a>(&'a WorkCounters);

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
