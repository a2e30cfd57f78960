//! Prometheus metrics of the gateway. They are read from plans and upstreams when they are scraped, so that a reload of
//! the configuration needs no bookkeeping.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::config_cell::ConfigCell;
use super::distributed_limits::{DistributedLimits, State as Cluster};
use super::gate_route::GateRoute;
use weir_call::LatencyBuckets;
use weir_machine::lock::lock;
use weir_resilience::admission::Slots;
use weir_resilience::upstream::circuit_breaker::State;

/// Collector over the current configuration.
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

/// A histogram of latencies, as a metric.
struct EncodedLatencies(LatencyBuckets);

impl EncodeMetric for EncodedLatencies {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_histogram::<NoLabelSet>(self.0.sum_s, self.0.count(), &self.0.buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// Calls of a route by outcome, over all its upstreams.
pub(super) fn sum_outcomes(route: &GateRoute) -> [(&'static str, u64); 5] {
    let mut sums = route.plan().counts.outcomes();
    for side in &route.sides[1..] {
        for (sum, (_, count)) in sums.iter_mut().zip(side.plan.counts.outcomes()) {
            sum.1 += count;
        }
    }
    sums
}

/// Latencies of a route's calls, over all its upstreams.
pub(super) fn sum_latencies(route: &GateRoute) -> LatencyBuckets {
    let mut sum = route.plan().counts.latencies.read();
    route.sides[1..].iter().for_each(|side| sum.add(&side.plan.counts.latencies.read()));
    sum
}

impl Collector for GateMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let runtime = self.config_cell.get();
        let e = &mut encoder;
        let counter = |labels: MetricLabels, value: u64| (labels, ConstCounter::new(value));
        let gauge = |labels: MetricLabels, value: f64| (labels, ConstGauge::new(value));

        let calls = runtime.routes.iter().flat_map(|route| {
            let label = move |outcome: &str| vec![("route", route.name.clone()), ("outcome", outcome.to_owned())];
            sum_outcomes(route).map(|(outcome, count)| counter(label(outcome), count))
        });
        encode_family(e, MetricType::Counter, "gate_calls", "Calls by outcome", calls)?;
        let route = |name: &str| vec![("route", name.to_owned())];
        let latencies = runtime.routes.iter().map(|one| (route(&one.name), EncodedLatencies(sum_latencies(one))));
        let help = "From a call's beginning to the head of its response, or its failure";
        encode_family(e, MetricType::Histogram, "gate_call_seconds", help, latencies)?;
        let sides = runtime.routes.iter().flat_map(|one| one.sides.iter().map(move |side| (one, side)));
        let rejections = sides.flat_map(|(one, side)| {
            let seen = side.plan.counts.rejections().filter(|(_, _, n)| *n > 0);
            seen.map(move |(reason, priority, n)| {
                let names = [("route", one.name.as_str()), ("upstream", &side.upstream), ("reason", reason.name())];
                let labels = names.into_iter().chain([("priority", priority.name())]);
                counter(labels.map(|(label, value)| (label, value.to_owned())).collect(), n)
            })
        });
        encode_family(e, MetricType::Counter, "gate_rejected", "Rejected calls by reason and priority", rejections)?;
        let skipped = runtime.routes.iter().map(|one| {
            let skipped = one.sides.iter().map(|side| side.plan.counts.budget_exhausted()).sum();
            counter(route(&one.name), skipped)
        });
        let help = "Extra attempts skipped because the budget was spent or no slot was free";
        encode_family(e, MetricType::Counter, "gate_attempts_skipped", help, skipped)?;
        let now = self.config_cell.now();
        let remaining = runtime.routes.iter().filter_map(|one| {
            // Of a route with several upstreams, the least.
            let budgets = one.sides.iter().filter_map(|side| side.plan.budget.as_ref());
            let remaining = budgets.map(|budget| lock(budget).remaining(now)).min()?;
            Some(gauge(route(&one.name), remaining.into()))
        });
        let help = "Extra attempts that the budget allows now";
        encode_family(e, MetricType::Gauge, "gate_retry_budget_remaining", help, remaining)?;
        let local = runtime.local_routes.iter().map(|one| counter(route(&one.name), one.count()));
        let help = "Requests on routes that the gateway answers itself";
        encode_family(e, MetricType::Counter, "gate_local_responses", help, local)?;
        let mirrored = runtime.routes.iter().filter_map(|one| Some((one, one.mirror.as_ref()?)));
        let mirrored = mirrored.flat_map(|(one, mirror)| {
            let label = |outcome: &str| vec![("route", one.name.clone()), ("outcome", outcome.to_owned())];
            mirror.outcomes().map(|(outcome, count)| counter(label(outcome), count))
        });
        encode_family(e, MetricType::Counter, "gate_mirrored", "Copies of requests by outcome", mirrored)?;
        let cluster = self.distributed_limits.as_ref().map(|sharing| (sharing.config.name.as_str(), sharing.state()));
        let named = |name: &str| vec![("cluster", name.to_owned())];
        let of_cluster = |value: fn(&Cluster) -> f64| cluster.map(|(name, state)| gauge(named(name), value(&state)));
        let help = "Fraction of each limit that this gateway has by default, 0 to 1";
        encode_family(e, MetricType::Gauge, "gate_cluster_fraction", help, of_cluster(|state| state.fraction))?;
        let gates = of_cluster(|state| state.gates.into());
        let help = "Gateways, as Redis counts them; 0 if it has never responded";
        encode_family(e, MetricType::Gauge, "gate_cluster_gates", help, gates)?;
        let allocations = of_cluster(|state| state.own_allocations as f64);
        let help = "Callers and budgets with an allocation of their own";
        encode_family(e, MetricType::Gauge, "gate_cluster_allocations", help, allocations)?;
        let disconnected = of_cluster(|state| f64::from(u8::from(state.is_disconnected)));
        let help = "1 while Redis has not responded for a lease";
        encode_family(e, MetricType::Gauge, "gate_cluster_disconnected", help, disconnected)?;
        let renewals = cluster.into_iter().flat_map(|(name, state)| state.renewals.map(|of| (name, of)));
        let renewals = renewals.map(|(name, (outcome, n))| {
            counter(vec![("cluster", name.to_owned()), ("outcome", outcome.to_owned())], n)
        });
        encode_family(e, MetricType::Counter, "gate_cluster_renewals", "Lease renewals by outcome", renewals)?;

        let label = |upstream: &str, name: &'static str, value: &str| {
            vec![("upstream", upstream.to_owned()), (name, value.to_owned())]
        };
        let of = |name: &str| vec![("upstream", name.to_owned())];
        let all = &runtime.upstreams;
        let sent = all.iter().flat_map(|(name, one)| {
            one.upstream.counts.sent().map(|(reason, n)| counter(label(name, "reason", reason), n))
        });
        encode_family(e, MetricType::Counter, "gate_attempts", "Attempts by reason", sent)?;
        let ended = all.iter().flat_map(|(name, one)| {
            one.upstream.counts.outcomes().map(|(outcome, n)| counter(label(name, "outcome", outcome), n))
        });
        encode_family(e, MetricType::Counter, "gate_attempts_ended", "Attempts by outcome", ended)?;
        let hedges = all.iter().flat_map(|(name, one)| {
            one.upstream.counts.hedges().map(|(outcome, n)| counter(label(name, "outcome", outcome), n))
        });
        encode_family(e, MetricType::Counter, "gate_hedges", "Hedges of ended calls by outcome", hedges)?;
        let latencies =
            all.iter().map(|(name, one)| (of(name), EncodedLatencies(one.upstream.counts.latencies.read())));
        let help = "From an attempt's beginning to its success or failure; without cancelled ones";
        encode_family(e, MetricType::Histogram, "gate_attempt_seconds", help, latencies)?;
        let failures = all.iter().flat_map(|(name, one)| {
            let seen = one.upstream.counts.failures().filter(|(_, n)| *n > 0);
            seen.map(move |(kind, n)| counter(label(name, "kind", kind), n))
        });
        encode_family(e, MetricType::Counter, "gate_attempts_failed", "Failed attempts by kind", failures)?;
        let in_flight = all.iter().map(|(name, one)| gauge(of(name), one.upstream.counts.in_flight() as f64));
        let help = "Attempts in flight, until the last byte of their responses";
        encode_family(e, MetricType::Gauge, "gate_attempts_in_flight", help, in_flight)?;
        let permits = || {
            let of_upstreams = all.iter().map(|(name, one)| (of(name), one.upstream.permits()));
            let of_routes = runtime.routes.iter().map(|one| (route(&one.name), one.plan().permits.as_ref()));
            of_upstreams.chain(of_routes).filter_map(|(labels, pool)| Some((labels, pool?)))
        };
        let slots =
            |value: fn(&Slots) -> u32| permits().map(move |(labels, it)| gauge(labels, value(it.slots()).into()));
        encode_family(e, MetricType::Gauge, "gate_concurrency_limit", "Concurrency limit", slots(Slots::limit))?;
        encode_family(e, MetricType::Gauge, "gate_in_flight", "Occupied slots", slots(Slots::in_flight))?;
        encode_family(e, MetricType::Gauge, "gate_queue_length", "Calls that wait for a slot", slots(Slots::waiting))?;
        // A number of priorities: 1.5 is all of low and half of normal.
        let threshold = permits().map(|(labels, it)| gauge(labels, f64::from(it.slots().shed_threshold()) / 256.0));
        let help = "Shedding threshold: calls with a priority below it are rejected, 0 (low) to 3 (critical)";
        encode_family(e, MetricType::Gauge, "gate_shed_threshold", help, threshold)?;
        let waited = permits().map(|(labels, it)| (labels, ConstCounter::new(it.waited_s())));
        let help = "Total time that calls have waited for a slot";
        encode_family(e, MetricType::Counter, "gate_queue_wait_seconds", help, waited)?;
        let gradient = permits().filter_map(|(labels, it)| Some(gauge(labels, it.gradient()?)));
        let help = "Unloaded service time divided by recent service time, 0 to 1";
        encode_family(e, MetricType::Gauge, "gate_concurrency_limit_gradient", help, gradient)?;
        let culprits = all.iter().filter_map(|(name, one)| Some((of(name), one.culprits.as_ref()?.culprits())));
        let culprits: Vec<_> = culprits.collect();
        let found = culprits.iter().map(|(labels, found)| gauge(labels.clone(), found.len() as f64));
        let help = "Routes and callers that crowd out all others, and are limited for it";
        encode_family(e, MetricType::Gauge, "gate_culprits", help, found)?;
        let slots = culprits
            .iter()
            .map(|(labels, found)| gauge(labels.clone(), found.iter().map(|culprit| f64::from(culprit.limit)).sum()));
        encode_family(e, MetricType::Gauge, "gate_culprit_slots", "Slots that culprits may hold together", slots)?;
        let open = all.iter().filter_map(|(name, one)| {
            let state = match one.upstream.breaker_state(now)? {
                State::Closed => 0.0,
                State::HalfOpen => 0.5,
                State::Open => 1.0,
            };
            Some(gauge(of(name), state))
        });
        let help = "1 while the circuit is open, 0.5 while it is half-open";
        encode_family(e, MetricType::Gauge, "gate_breaker_open", help, open)?;
        let throttled =
            all.iter().filter_map(|(name, one)| Some(gauge(of(name), one.upstream.throttled_fraction(now)?)));
        let help = "Fraction of calls not sent because of 429 and 503 responses";
        encode_family(e, MetricType::Gauge, "gate_throttled_fraction", help, throttled)?;
        let panicking = all
            .iter()
            .filter(|(_, one)| one.health_check.is_some())
            .map(|(name, one)| gauge(of(name), f64::from(u8::from(one.upstream.is_panicking()))));
        let help = "1 while so few hosts pass their health checks that all get attempts";
        encode_family(e, MetricType::Gauge, "gate_panic", help, panicking)?;
        let ejected = all.iter().flat_map(|(name, one)| {
            one.upstream
                .hosts(now)
                .into_iter()
                .map(move |host| gauge(label(name, "host", host.origin.name()), f64::from(u8::from(host.is_ejected))))
        });
        encode_family(e, MetricType::Gauge, "gate_host_ejected", "1 while a host is ejected", ejected)
    }
}
