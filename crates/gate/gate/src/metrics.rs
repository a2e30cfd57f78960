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
use super::runtime::{GateRuntime, UpstreamRuntime};
use weir_base::Nanos;
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
        let (runtime, now) = (self.config_cell.get(), self.config_cell.now());
        encode_routes(&mut encoder, &runtime, now)?;
        let limits = self.distributed_limits.as_ref();
        encode_cluster(&mut encoder, limits.map(|limits| (limits.config.name.as_str(), limits.state())))?;
        encode_attempts(&mut encoder, &runtime.upstreams)?;
        encode_slots(&mut encoder, &runtime)?;
        encode_culprits(&mut encoder, &runtime.upstreams)?;
        encode_conditions(&mut encoder, &runtime.upstreams, now)
    }
}

fn counter(labels: MetricLabels, value: u64) -> (MetricLabels, ConstCounter<u64>) {
    (labels, ConstCounter::new(value))
}

fn gauge(labels: MetricLabels, value: f64) -> (MetricLabels, ConstGauge<f64>) {
    (labels, ConstGauge::new(value))
}

fn route_label(name: &str) -> MetricLabels {
    vec![("route", name.to_owned())]
}

fn upstream_label(name: &str) -> MetricLabels {
    vec![("upstream", name.to_owned())]
}

fn upstream_labels(upstream: &str, name: &'static str, value: &str) -> MetricLabels {
    vec![("upstream", upstream.to_owned()), (name, value.to_owned())]
}

/// Encodes calls, rejections and budgets of routes.
fn encode_routes(encoder: &mut DescriptorEncoder<'_>, runtime: &GateRuntime, now: Nanos) -> fmt::Result {
    let calls = runtime.routes.iter().flat_map(|route| {
        let label = move |outcome: &str| vec![("route", route.name.clone()), ("outcome", outcome.to_owned())];
        sum_outcomes(route).map(|(outcome, count)| counter(label(outcome), count))
    });
    encode_family(encoder, MetricType::Counter, "gate_calls", "Calls by outcome", calls)?;
    let latencies =
        runtime.routes.iter().map(|route| (route_label(&route.name), EncodedLatencies(sum_latencies(route))));
    let help = "From a call's beginning to the head of its response, or its failure";
    encode_family(encoder, MetricType::Histogram, "gate_call_seconds", help, latencies)?;
    let sides = runtime.routes.iter().flat_map(|route| route.sides.iter().map(move |side| (route, side)));
    let rejections = sides.flat_map(|(route, side)| {
        let seen = side.plan.counts.rejections().filter(|(_, _, count)| *count > 0);
        seen.map(move |(reason, priority, count)| {
            let names = [("route", route.name.as_str()), ("upstream", &side.upstream), ("reason", reason.name())];
            let labels = names.into_iter().chain([("priority", priority.name())]);
            counter(labels.map(|(label, value)| (label, value.to_owned())).collect(), count)
        })
    });
    encode_family(encoder, MetricType::Counter, "gate_rejected", "Rejected calls by reason and priority", rejections)?;
    let skipped = runtime.routes.iter().map(|route| {
        let skipped = route.sides.iter().map(|side| side.plan.counts.budget_exhausted()).sum();
        counter(route_label(&route.name), skipped)
    });
    let help = "Extra attempts skipped because the budget was spent or no slot was free";
    encode_family(encoder, MetricType::Counter, "gate_attempts_skipped", help, skipped)?;
    let remaining = runtime.routes.iter().filter_map(|route| {
        // Of a route with several upstreams, the least.
        let budgets = route.sides.iter().filter_map(|side| side.plan.budget.as_ref());
        let remaining = budgets.map(|budget| lock(budget).remaining(now)).min()?;
        Some(gauge(route_label(&route.name), remaining.into()))
    });
    let help = "Extra attempts that the budget allows now";
    encode_family(encoder, MetricType::Gauge, "gate_retry_budget_remaining", help, remaining)?;
    let local = runtime.local_routes.iter().map(|route| counter(route_label(&route.name), route.count()));
    let help = "Requests on routes that the gateway answers itself";
    encode_family(encoder, MetricType::Counter, "gate_local_responses", help, local)?;
    let mirrored = runtime.routes.iter().filter_map(|route| Some((route, route.mirror.as_ref()?)));
    let mirrored = mirrored.flat_map(|(route, mirror)| {
        let label = |outcome: &str| vec![("route", route.name.clone()), ("outcome", outcome.to_owned())];
        mirror.outcomes().map(|(outcome, count)| counter(label(outcome), count))
    });
    encode_family(encoder, MetricType::Counter, "gate_mirrored", "Copies of requests by outcome", mirrored)
}

/// Encodes what a cluster grants this gateway: the cluster's name and its state, of a gateway in one.
fn encode_cluster(encoder: &mut DescriptorEncoder<'_>, cluster: Option<(&str, Cluster)>) -> fmt::Result {
    let label = |name: &str| vec![("cluster", name.to_owned())];
    let of_cluster = |value: fn(&Cluster) -> f64| cluster.map(|(name, state)| gauge(label(name), value(&state)));
    let help = "Fraction of each limit that this gateway has by default, 0 to 1";
    encode_family(encoder, MetricType::Gauge, "gate_cluster_fraction", help, of_cluster(|state| state.fraction))?;
    let gates = of_cluster(|state| state.gates.into());
    let help = "Gateways, as Redis counts them; 0 if it has never responded";
    encode_family(encoder, MetricType::Gauge, "gate_cluster_gates", help, gates)?;
    let allocations = of_cluster(|state| state.own_allocations as f64);
    let help = "Callers and budgets with an allocation of their own";
    encode_family(encoder, MetricType::Gauge, "gate_cluster_allocations", help, allocations)?;
    let disconnected = of_cluster(|state| f64::from(u8::from(state.is_disconnected)));
    let help = "1 while Redis has not responded for a lease";
    encode_family(encoder, MetricType::Gauge, "gate_cluster_disconnected", help, disconnected)?;
    let renewals = cluster.into_iter().flat_map(|(name, state)| state.renewals.map(|renewal| (name, renewal)));
    let renewals = renewals.map(|(name, (outcome, count))| {
        counter(vec![("cluster", name.to_owned()), ("outcome", outcome.to_owned())], count)
    });
    encode_family(encoder, MetricType::Counter, "gate_cluster_renewals", "Lease renewals by outcome", renewals)
}

/// Encodes attempts at upstreams: sent, ended, failed, in flight, and how long they took.
fn encode_attempts(encoder: &mut DescriptorEncoder<'_>, upstreams: &[(String, UpstreamRuntime)]) -> fmt::Result {
    let counts = || upstreams.iter().map(|(name, runtime)| (name, &runtime.upstream.counts));
    let sent = counts().flat_map(|(name, counts)| {
        counts.sent().map(|(reason, count)| counter(upstream_labels(name, "reason", reason), count))
    });
    encode_family(encoder, MetricType::Counter, "gate_attempts", "Attempts by reason", sent)?;
    let ended = counts().flat_map(|(name, counts)| {
        counts.outcomes().map(|(outcome, count)| counter(upstream_labels(name, "outcome", outcome), count))
    });
    encode_family(encoder, MetricType::Counter, "gate_attempts_ended", "Attempts by outcome", ended)?;
    let hedges = counts().flat_map(|(name, counts)| {
        counts.hedges().map(|(outcome, count)| counter(upstream_labels(name, "outcome", outcome), count))
    });
    encode_family(encoder, MetricType::Counter, "gate_hedges", "Hedges of ended calls by outcome", hedges)?;
    let latencies = counts().map(|(name, counts)| (upstream_label(name), EncodedLatencies(counts.latencies.read())));
    let help = "From an attempt's beginning to its success or failure; without cancelled ones";
    encode_family(encoder, MetricType::Histogram, "gate_attempt_seconds", help, latencies)?;
    let failures = counts().flat_map(|(name, counts)| {
        let seen = counts.failures().filter(|(_, count)| *count > 0);
        seen.map(move |(kind, count)| counter(upstream_labels(name, "kind", kind), count))
    });
    encode_family(encoder, MetricType::Counter, "gate_attempts_failed", "Failed attempts by kind", failures)?;
    let in_flight = counts().map(|(name, counts)| gauge(upstream_label(name), counts.in_flight() as f64));
    let help = "Attempts in flight, until the last byte of their responses";
    encode_family(encoder, MetricType::Gauge, "gate_attempts_in_flight", help, in_flight)
}

/// Encodes slots of the concurrency limits, of upstreams and of routes.
fn encode_slots(encoder: &mut DescriptorEncoder<'_>, runtime: &GateRuntime) -> fmt::Result {
    let permits = || {
        let of_upstreams =
            runtime.upstreams.iter().map(|(name, runtime)| (upstream_label(name), runtime.upstream.permits()));
        let of_routes = runtime.routes.iter().map(|route| (route_label(&route.name), route.plan().permits.as_ref()));
        of_upstreams.chain(of_routes).filter_map(|(labels, permits)| Some((labels, permits?)))
    };
    let slots =
        |value: fn(&Slots) -> u32| permits().map(move |(labels, pool)| gauge(labels, value(pool.slots()).into()));
    encode_family(encoder, MetricType::Gauge, "gate_concurrency_limit", "Concurrency limit", slots(Slots::limit))?;
    encode_family(encoder, MetricType::Gauge, "gate_in_flight", "Occupied slots", slots(Slots::in_flight))?;
    let help = "Calls that wait for a slot";
    encode_family(encoder, MetricType::Gauge, "gate_queue_length", help, slots(Slots::waiting))?;
    // A number of priorities: 1.5 is all of low and half of normal.
    let threshold = permits().map(|(labels, pool)| gauge(labels, f64::from(pool.slots().shed_threshold()) / 256.0));
    let help = "Shedding threshold: calls with a priority below it are rejected, 0 (low) to 3 (critical)";
    encode_family(encoder, MetricType::Gauge, "gate_shed_threshold", help, threshold)?;
    let waited = permits().map(|(labels, pool)| (labels, ConstCounter::new(pool.waited_s())));
    let help = "Total time that calls have waited for a slot";
    encode_family(encoder, MetricType::Counter, "gate_queue_wait_seconds", help, waited)?;
    let gradient = permits().filter_map(|(labels, pool)| Some(gauge(labels, pool.gradient()?)));
    let help = "Unloaded service time divided by recent service time, 0 to 1";
    encode_family(encoder, MetricType::Gauge, "gate_concurrency_limit_gradient", help, gradient)
}

/// Encodes culprits of upstreams, and the slots that they may hold.
fn encode_culprits(encoder: &mut DescriptorEncoder<'_>, upstreams: &[(String, UpstreamRuntime)]) -> fmt::Result {
    let culprits = upstreams
        .iter()
        .filter_map(|(name, runtime)| Some((upstream_label(name), runtime.culprits.as_ref()?.culprits())));
    let culprits: Vec<_> = culprits.collect();
    let found = culprits.iter().map(|(labels, found)| gauge(labels.clone(), found.len() as f64));
    let help = "Routes and callers that crowd out all others, and are limited for it";
    encode_family(encoder, MetricType::Gauge, "gate_culprits", help, found)?;
    let slots = culprits
        .iter()
        .map(|(labels, found)| gauge(labels.clone(), found.iter().map(|culprit| f64::from(culprit.limit)).sum()));
    encode_family(encoder, MetricType::Gauge, "gate_culprit_slots", "Slots that culprits may hold together", slots)
}

/// Encodes circuit breakers, throttles, and ejected hosts of upstreams.
fn encode_conditions(
    encoder: &mut DescriptorEncoder<'_>,
    upstreams: &[(String, UpstreamRuntime)],
    now: Nanos,
) -> fmt::Result {
    let open = upstreams.iter().filter_map(|(name, runtime)| {
        let state = match runtime.upstream.breaker_state(now)? {
            State::Closed => 0.0,
            State::HalfOpen => 0.5,
            State::Open => 1.0,
        };
        Some(gauge(upstream_label(name), state))
    });
    let help = "1 while the circuit is open, 0.5 while it is half-open";
    encode_family(encoder, MetricType::Gauge, "gate_breaker_open", help, open)?;
    let throttled = upstreams
        .iter()
        .filter_map(|(name, runtime)| Some(gauge(upstream_label(name), runtime.upstream.throttled_fraction(now)?)));
    let help = "Fraction of calls not sent because of 429 and 503 responses";
    encode_family(encoder, MetricType::Gauge, "gate_throttled_fraction", help, throttled)?;
    let panicking = upstreams
        .iter()
        .filter(|(_, runtime)| runtime.health_check.is_some())
        .map(|(name, runtime)| gauge(upstream_label(name), f64::from(u8::from(runtime.upstream.is_panicking()))));
    let help = "1 while so few hosts pass their health checks that all get attempts";
    encode_family(encoder, MetricType::Gauge, "gate_panic", help, panicking)?;
    let ejected = upstreams.iter().flat_map(|(name, runtime)| {
        let hosts = runtime.upstream.hosts(now).into_iter();
        hosts.map(move |host| {
            let labels = upstream_labels(name, "host", host.origin.name());
            gauge(labels, f64::from(u8::from(host.is_ejected)))
        })
    });
    encode_family(encoder, MetricType::Gauge, "gate_host_ejected", "1 while a host is ejected", ejected)
}
