//! What the gate counts, for Prometheus. It is read from the plans and upstreams when somebody asks, so that a reload
//! of the configuration needs no metrics of its own.

use std::fmt;
use std::sync::{Arc, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::current::ConfigCell;
use super::sharing::{DistributedLimits, State as Shared};
use crate::decide::admit::Slots;
use crate::decide::breaker::State;

/// Tells Prometheus of the setup of the moment.
#[derive(Debug)]
pub(super) struct GateMetrics {
    pub(super) config_cell: Arc<ConfigCell>,
    pub(super) distributed_limits: Option<Arc<DistributedLimits>>,
}

type MetricLabels = Vec<(&'static str, String)>;

/// Encodes one metric with all its labels.
fn encode_family<M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    kind: MetricType,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (MetricLabels, M)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
    for (labels, value) in values {
        value.encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

impl Collector for GateMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let setup = self.config_cell.get();
        let e = &mut encoder;
        let counter = |labels: MetricLabels, value: u64| (labels, ConstCounter::new(value));
        let gauge = |labels: MetricLabels, value: f64| (labels, ConstGauge::new(value));

        let calls = setup.routes.iter().flat_map(|route| {
            let label = move |end: &str| vec![("route", route.name.clone()), ("end", end.to_owned())];
            route.plan.counts.outcomes().map(|(end, count)| counter(label(end), count))
        });
        encode_family(e, MetricType::Counter, "gate_calls", "Calls by how they ended", calls)?;
        let route = |name: &str| vec![("route", name.to_owned())];
        let refusals = setup.routes.iter().flat_map(|one| {
            let seen = one.plan.counts.rejections().filter(|(_, _, n)| *n > 0);
            seen.map(move |(why, priority, n)| {
                let names = [("route", one.name.as_str()), ("upstream", &one.upstream), ("why", why.name())];
                let labels = names.into_iter().chain([("priority", priority.name())]);
                counter(labels.map(|(label, value)| (label, value.to_owned())).collect(), n)
            })
        });
        encode_family(e, MetricType::Counter, "gate_refused", "Calls that were not taken, by why", refusals)?;
        let refused = setup.routes.iter().map(|one| counter(route(&one.name), one.plan.counts.budget_exhausted()));
        encode_family(e, MetricType::Counter, "gate_suppressed", "Extra attempts without budget or place", refused)?;
        let now = self.config_cell.now();
        let left = setup.routes.iter().filter_map(|one| {
            let left = one.plan.budget.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).remaining(now);
            Some(gauge(route(&one.name), left.into()))
        });
        encode_family(e, MetricType::Gauge, "gate_budget_left", "Extra attempts that the budget allows now", left)?;
        let shared = self.distributed_limits.as_ref().map(|sharing| (sharing.config.name.as_str(), sharing.state()));
        let named = |name: &str| vec![("share", name.to_owned())];
        let of_share = |value: fn(&Shared) -> f64| shared.map(|(name, shared)| gauge(named(name), value(&shared)));
        let help = "What is ours of limits that several gates share, where nothing else is said";
        encode_family(e, MetricType::Gauge, "gate_share", help, of_share(|shared| shared.fraction))?;
        encode_family(
            e,
            MetricType::Gauge,
            "gate_share_gates",
            "Gates that share",
            of_share(|shared| shared.gates.into()),
        )?;
        let claims = of_share(|shared| shared.own_allocations as f64);
        encode_family(
            e,
            MetricType::Gauge,
            "gate_share_claims",
            "Callers and budgets with shares of their own",
            claims,
        )?;
        let away = of_share(|shared| f64::from(u8::from(shared.is_disconnected)));
        encode_family(
            e,
            MetricType::Gauge,
            "gate_share_away",
            "1 while the server that says shares does not answer",
            away,
        )?;
        let renewals = shared.into_iter().flat_map(|(name, shared)| shared.renewals.map(|of| (name, of)));
        let renewals =
            renewals.map(|(name, (end, n))| counter(vec![("share", name.to_owned()), ("end", end.to_owned())], n));
        encode_family(
            e,
            MetricType::Counter,
            "gate_share_renewals",
            "Questions to that server, by their end",
            renewals,
        )?;

        let label = |upstream: &str, name: &'static str, value: &str| {
            vec![("upstream", upstream.to_owned()), (name, value.to_owned())]
        };
        let of = |name: &str| vec![("upstream", name.to_owned())];
        let all = &setup.upstreams;
        let sent = all
            .iter()
            .flat_map(|(name, one)| one.upstream.counts.sent().map(|(why, n)| counter(label(name, "why", why), n)));
        encode_family(e, MetricType::Counter, "gate_attempts", "Attempts by why they were sent", sent)?;
        let ends = all
            .iter()
            .flat_map(|(name, one)| one.upstream.counts.outcomes().map(|(end, n)| counter(label(name, "end", end), n)));
        encode_family(e, MetricType::Counter, "gate_attempts_ended", "Attempts by what became of them", ends)?;
        let failures = all.iter().flat_map(|(name, one)| {
            let seen = one.upstream.counts.failures().filter(|(_, n)| *n > 0);
            seen.map(move |(kind, n)| counter(label(name, "kind", kind), n))
        });
        encode_family(e, MetricType::Counter, "gate_attempts_failed", "Attempts that failed, by kind", failures)?;
        let in_flight = all.iter().map(|(name, one)| gauge(of(name), one.upstream.counts.in_flight() as f64));
        encode_family(e, MetricType::Gauge, "gate_attempts_in_flight", "Attempts now", in_flight)?;
        let places = || {
            let of_upstreams = all.iter().map(|(name, one)| (of(name), one.upstream.permits()));
            let of_routes = setup.routes.iter().map(|one| (route(&one.name), one.plan.permits.as_ref()));
            of_upstreams.chain(of_routes).filter_map(|(labels, places)| Some((labels, places?)))
        };
        let room = |value: fn(&Slots) -> u32| places().map(move |(labels, it)| gauge(labels, value(it.slots()).into()));
        encode_family(e, MetricType::Gauge, "gate_limit", "How many there may be at once", room(Slots::limit))?;
        encode_family(e, MetricType::Gauge, "gate_in_flight", "How many there are of those", room(Slots::in_flight))?;
        encode_family(e, MetricType::Gauge, "gate_queue_length", "How many wait for a place", room(Slots::waiting))?;
        // As a number of priorities: at 1.5 all low ones are refused, and half of the normal ones.
        let bar = places().map(|(labels, it)| gauge(labels, f64::from(it.slots().shed_threshold()) / 256.0));
        encode_family(
            e,
            MetricType::Gauge,
            "gate_priority_bar",
            "Below which priority calls are refused at once",
            bar,
        )?;
        let waited = places().map(|(labels, it)| (labels, ConstCounter::new(it.waited_s())));
        encode_family(
            e,
            MetricType::Counter,
            "gate_queue_wait_seconds",
            "How long calls have waited for a place",
            waited,
        )?;
        let gradient = places().filter_map(|(labels, it)| Some(gauge(labels, it.gradient()?)));
        let help = "How much less time an answer takes unhindered than of late";
        encode_family(e, MetricType::Gauge, "gate_limit_gradient", help, gradient)?;
        let broken = all.iter().filter_map(|(name, one)| {
            let state = match one.upstream.breaker_state(now)? {
                State::Closed => 0.0,
                State::HalfOpen => 0.5,
                State::Open => 1.0,
            };
            Some(gauge(of(name), state))
        });
        encode_family(
            e,
            MetricType::Gauge,
            "gate_breaker_open",
            "1 while all calls are refused, 0.5 but for probes",
            broken,
        )?;
        let shares = all.iter().filter_map(|(name, one)| Some(gauge(of(name), one.upstream.throttled_fraction(now)?)));
        encode_family(e, MetricType::Gauge, "gate_throttled_share", "The share of calls that is not sent", shares)?;
        let out = all.iter().flat_map(|(name, one)| {
            let hosts = one.upstream.hosts().iter().zip(one.upstream.ejected_hosts(now));
            hosts.map(move |(host, out)| gauge(label(name, "host", host.origin.name()), f64::from(u8::from(out))))
        });
        encode_family(e, MetricType::Gauge, "gate_host_out", "1 while a host gets no attempts for its failures", out)
    }
}
