//! Parses overload protection: concurrency limits, queues, breaker and throttle.

use super::UpstreamConfig;
use super::read::{DocumentNode, DocumentTable};
use weir_base::Nanos;
use weir_base::fault::Fault;
use weir_call::PermitPool;
use weir_resilience::admission::{AdmissionConfig, ConcurrencyLimitConfig, adaptive_limit};
use weir_resilience::upstream::circuit_breaker::BreakerRule;
use weir_resilience::upstream::client_throttle::ThrottleRule;

/// Maximum of calls in flight, of queued calls and of samples.
const MAX_CALLS: u64 = 1_000_000;

fn bounded_number(node: &DocumentNode<'_>, min: u64) -> Option<u32> {
    node.integer(min..=MAX_CALLS).and_then(|number| u32::try_from(number).ok())
}

/// `max_in_flight` and `max_queue` of a route; None for no limit.
pub(super) fn route_admission(table: &DocumentTable<'_>) -> Option<AdmissionConfig> {
    let (max_in_flight, queue) = (table.get("max_in_flight"), table.get("max_queue"));
    let max_queue = queue.as_ref().and_then(|node| bounded_number(node, 0)).unwrap_or(0);
    let Some(max_in_flight) = max_in_flight else {
        check_queue(queue.as_ref(), max_queue, "give max_in_flight, too");
        return None;
    };
    Some(PermitPool::fixed(bounded_number(&max_in_flight, 1)? as usize, max_queue as usize))
}

fn check_queue(queue: Option<&DocumentNode<'_>>, max_queue: u32, remedy: &str) {
    if let Some(node) = queue.filter(|_| max_queue > 0) {
        node.error("no call is queued without a limit", remedy);
    }
}

/// `max_in_flight`, `max_queue` and `concurrency_limit` of an upstream; None for no limit.
pub(super) fn upstream_admission(table: &DocumentTable<'_>) -> Option<AdmissionConfig> {
    let max_in_flight = table.get("max_in_flight");
    let (queue, limit) = (table.get("max_queue"), table.get("concurrency_limit"));
    let max_queue = queue.as_ref().and_then(|node| bounded_number(node, 0));
    let adaptive = match &limit {
        Some(node) if !node.is_table() => node.choice(&[("adaptive", true), ("none", false)])?,
        _ => true,
    };
    if !adaptive {
        if let Some(node) = &max_in_flight {
            node.error("concurrency_limit is none, and this is a limit", "leave out this, or concurrency_limit");
        }
        check_queue(queue.as_ref(), max_queue.unwrap_or(0), "leave it out");
        return None;
    }
    let details = limit.as_ref().filter(|node| node.is_table()).and_then(DocumentNode::table);
    let mut admission = match &max_in_flight {
        Some(node) => PermitPool::fixed(bounded_number(node, 1).unwrap_or(1) as usize, max_queue.unwrap_or(0) as usize),
        None => {
            let default = AdmissionConfig::default();
            AdmissionConfig { max_queued: max_queue.unwrap_or(default.max_queued), ..default }
        }
    };
    if let (Some(_), Some(node), None) = (&max_in_flight, &limit, &details) {
        node.error("max_in_flight is a fixed limit", "leave out one of them");
    }
    if let Some(table) = details {
        match &mut admission.limit {
            ConcurrencyLimitConfig::Adaptive(options) => adaptive_bounds(&table, options),
            ConcurrencyLimitConfig::Fixed(_) => {
                for node in ["initial", "min", "max"].into_iter().filter_map(|key| table.get(key)) {
                    node.error("max_in_flight is a fixed limit", "leave out one of them");
                }
            }
        }
        queue_waits(&table, &mut admission);
        table.check_unknown_keys();
    }
    Some(admission)
}

/// `initial`, `min` and `max` of an adaptive limit.
fn adaptive_bounds(table: &DocumentTable<'_>, options: &mut adaptive_limit::Options) {
    let (initial, min, max) = (table.get("initial"), table.get("min"), table.get("max"));
    let number = |node: &Option<DocumentNode<'_>>| node.as_ref().and_then(|node| bounded_number(node, 1));
    options.min = number(&min).unwrap_or(options.min);
    options.max = number(&max).unwrap_or(options.max);
    if options.min > options.max {
        table.error(format!("min ({}) is above max ({})", options.min, options.max), "write a max of at least min");
    }
    match number(&initial) {
        Some(first) if first < options.min || first > options.max => {
            if let Some(node) = initial.filter(|_| options.min <= options.max) {
                node.error(
                    format!("initial ({first}) is not between {} and {}", options.min, options.max),
                    "write one between min and max, or leave it out",
                );
            }
        }
        Some(first) => options.initial = first,
        None => {}
    }
}

/// `max_queue_wait` and `max_queue_wait_overloaded`: maximum waits for a slot.
fn queue_waits(table: &DocumentTable<'_>, admission: &mut AdmissionConfig) {
    let (usual, overloaded) = (table.get("max_queue_wait"), table.get("max_queue_wait_overloaded"));
    let time = |node: &Option<DocumentNode<'_>>| node.as_ref().and_then(DocumentNode::time);
    let default = AdmissionConfig::default();
    match (time(&usual), time(&overloaded)) {
        (None, None) => {}
        (None, Some(_)) if admission.max_queue_wait == Nanos::NEVER => {
            let what = "with max_in_flight calls wait up to their deadlines, unless there is a max_queue_wait";
            overloaded.iter().for_each(|node| node.error(what, r#"give max_queue_wait, too, e.g. "1s""#));
        }
        (longest, shortest) => {
            let max = longest.unwrap_or(default.max_queue_wait);
            let overloaded = shortest.unwrap_or(default.overload_queue_wait.min(max));
            (admission.max_queue_wait, admission.overload_queue_wait) = (max, overloaded);
            if overloaded > max {
                let what = format!("max_queue_wait_overloaded ({overloaded}) is longer than max_queue_wait ({max})");
                table.error(what, "write a shorter max_queue_wait_overloaded");
            }
        }
    }
}

/// `[upstreams.NAME.breaker]`
pub(super) fn breaker(node: &DocumentNode<'_>) -> Option<BreakerRule> {
    let table = node.table()?;
    let mut rule = BreakerRule::default();
    let time = |key, default| table.get(key).and_then(|node| node.time()).unwrap_or(default);
    rule.window = time("window", rule.window);
    rule.min_calls = table.get("min_samples").and_then(|node| node.integer(1..=MAX_CALLS)).unwrap_or(rule.min_calls);
    let threshold = table.get("failure_threshold").and_then(|node| node.number(0.0..=1.0));
    rule.failure_fraction = threshold.unwrap_or(rule.failure_fraction);
    rule.open_time = time("open_time", rule.open_time);
    rule.max_open_time = time("max_open_time", rule.max_open_time.max(rule.open_time));
    rule.probes = table.get("probes").and_then(|node| bounded_number(&node, 1)).unwrap_or(rule.probes);
    table.check_unknown_keys();
    if let Some(Fault { what, remedy }) = rule.validation_error() {
        table.error(what, remedy);
    }
    Some(rule)
}

/// `throttle = "none"`, or `[upstreams.NAME.throttle]`
pub(super) fn throttle(node: &DocumentNode<'_>) -> Option<ThrottleRule> {
    if !node.is_table() {
        node.choice(&[("none", ())]);
        return None;
    }
    let table = node.table()?;
    let mut rule = ThrottleRule::default();
    rule.k = table.get("k").and_then(|node| node.number(1.0..=1000.0)).unwrap_or(rule.k);
    rule.window = table.get("window").and_then(|node| node.time()).unwrap_or(rule.window);
    rule.max_fraction = table.get("max_throttled").and_then(|node| node.number(0.0..=1.0)).unwrap_or(rule.max_fraction);
    let min_samples = table.get("min_samples").and_then(|node| node.integer(0..=MAX_CALLS));
    rule.min_requests = min_samples.unwrap_or(rule.min_requests);
    table.check_unknown_keys();
    if let Some(Fault { what, remedy }) = rule.validation_error() {
        table.error(what, remedy);
    }
    Some(rule)
}

impl UpstreamConfig {
    /// Sets a fixed concurrency limit with a queue. None disables overload protection, the throttle included.
    pub fn set_limit(&mut self, max_in_flight: Option<u32>, max_queue: u32) {
        self.admission = max_in_flight.map(|limit| PermitPool::fixed(limit as usize, max_queue as usize));
        if max_in_flight.is_none() {
            self.throttle = None;
        }
    }
}
