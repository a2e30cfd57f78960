//! Reads what is done when there is too much: limits, breaker and throttle.

use super::UpstreamConfig;
use super::read::{DocumentNode, DocumentTable};
use crate::call::PermitPool;
use crate::decide::Nanos;
use crate::decide::admit::{AdmissionConfig, ConcurrencyLimitConfig, limit};
use crate::decide::breaker::BreakerRule;
use crate::decide::throttle::ThrottleRule;

/// For those in flight, and those that wait.
const MAX_CALLS: u64 = 1_000_000;

fn bounded_number(node: &DocumentNode<'_>, least: u64) -> Option<u32> {
    node.integer(least..=MAX_CALLS).and_then(|number| u32::try_from(number).ok())
}

/// `max_in_flight` and `queue` of a route; none is no limit.
pub(super) fn route_admission(table: &DocumentTable<'_>) -> Option<AdmissionConfig> {
    let (most, queue) = (table.get("max_in_flight"), table.get("queue"));
    let waiting = queue.as_ref().and_then(|node| bounded_number(node, 0)).unwrap_or(0);
    let Some(most) = most else {
        check_queue(queue.as_ref(), waiting, "give max_in_flight, too");
        return None;
    };
    Some(PermitPool::fixed(bounded_number(&most, 1)? as usize, waiting as usize))
}

fn check_queue(queue: Option<&DocumentNode<'_>>, waiting: u32, remedy: &str) {
    if let Some(node) = queue.filter(|_| waiting > 0) {
        node.error("nobody waits where there is no limit", remedy);
    }
}

/// `max_in_flight`, `queue` and `limit` of an upstream; none is no limit.
pub(super) fn upstream_admission(table: &DocumentTable<'_>) -> Option<AdmissionConfig> {
    let (most, queue, limit) = (table.get("max_in_flight"), table.get("queue"), table.get("limit"));
    let waiting = queue.as_ref().and_then(|node| bounded_number(node, 0));
    let adaptive = match &limit {
        Some(node) if !node.is_table() => node.choice(&[("adaptive", true), ("none", false)])?,
        _ => true,
    };
    if !adaptive {
        if let Some(most) = &most {
            most.error("there is to be no limit, and here is one", "leave out this, or limit");
        }
        check_queue(queue.as_ref(), waiting.unwrap_or(0), "leave it out");
        return None;
    }
    let details = limit.as_ref().filter(|node| node.is_table()).and_then(DocumentNode::table);
    let mut terms = match &most {
        Some(most) => PermitPool::fixed(bounded_number(most, 1).unwrap_or(1) as usize, waiting.unwrap_or(0) as usize),
        None => {
            let usual = AdmissionConfig::default();
            AdmissionConfig { max_queued: waiting.unwrap_or(usual.max_queued), ..usual }
        }
    };
    if let (Some(_), Some(node), None) = (&most, &limit, &details) {
        node.error("max_in_flight is a limit that stays as it is", "leave out one of them");
    }
    if let Some(table) = details {
        match &mut terms.limit {
            ConcurrencyLimitConfig::Adaptive(options) => adaptive_bounds(&table, options),
            ConcurrencyLimitConfig::Fixed(_) => {
                for node in ["initial", "min", "max"].into_iter().filter_map(|key| table.get(key)) {
                    node.error("max_in_flight is a limit that stays as it is", "leave out one of them");
                }
            }
        }
        queue_waits(&table, &mut terms);
        table.check_unknown_keys();
    }
    Some(terms)
}

/// What a limit that is found out may be.
fn adaptive_bounds(table: &DocumentTable<'_>, options: &mut limit::Options) {
    let (initial, min, max) = (table.get("initial"), table.get("min"), table.get("max"));
    let said = |node: &Option<DocumentNode<'_>>| node.as_ref().and_then(|node| bounded_number(node, 1));
    options.min = said(&min).unwrap_or(options.min);
    options.max = said(&max).unwrap_or(options.max);
    if options.min > options.max {
        table.error(
            format!("the least limit ({}) is above the most ({})", options.min, options.max),
            "make max as large as min at least",
        );
    }
    match said(&initial) {
        Some(first) if first < options.min || first > options.max => {
            if let Some(node) = initial.filter(|_| options.min <= options.max) {
                node.error(
                    format!("the first limit ({first}) is not between {} and {}", options.min, options.max),
                    "make it lie between min and max, or leave it out",
                );
            }
        }
        Some(first) => options.initial = first,
        None => {}
    }
}

/// How long one may wait for a place.
fn queue_waits(table: &DocumentTable<'_>, terms: &mut AdmissionConfig) {
    let (patience, haste) = (table.get("patience"), table.get("haste"));
    let time = |node: &Option<DocumentNode<'_>>| node.as_ref().and_then(DocumentNode::time);
    let usual = AdmissionConfig::default();
    match (time(&patience), time(&haste)) {
        (None, None) => {}
        (None, Some(_)) if terms.max_queue_wait == Nanos::NEVER => {
            let what = "with max_in_flight one waits for as long as it takes, unless there is a patience";
            haste.iter().for_each(|node| node.error(what, r#"give patience, too, e.g. "1s""#));
        }
        (longest, shortest) => {
            terms.max_queue_wait = longest.unwrap_or(usual.max_queue_wait);
            terms.overload_queue_wait = shortest.unwrap_or(usual.overload_queue_wait.min(terms.max_queue_wait));
            if terms.overload_queue_wait > terms.max_queue_wait {
                let what =
                    format!("haste ({}) is longer than patience ({})", terms.overload_queue_wait, terms.max_queue_wait);
                table.error(what, "under overload one waits for less: make haste the shorter one");
            }
        }
    }
}

/// `[upstreams.NAME.breaker]`
pub(super) fn breaker(node: &DocumentNode<'_>) -> Option<BreakerRule> {
    let table = node.table()?;
    let mut rule = BreakerRule::default();
    let time = |key, usual| table.get(key).and_then(|node| node.time()).unwrap_or(usual);
    rule.window = time("window", rule.window);
    rule.min_calls = table.get("least").and_then(|node| node.integer(1..=MAX_CALLS)).unwrap_or(rule.min_calls);
    rule.failure_fraction = table.get("share").and_then(|node| node.number(0.0..=1.0)).unwrap_or(rule.failure_fraction);
    rule.open_time = time("rest", rule.open_time);
    rule.max_open_time = time("longest_rest", rule.max_open_time.max(rule.open_time));
    rule.probes = table.get("probes").and_then(|node| bounded_number(&node, 1)).unwrap_or(rule.probes);
    table.check_unknown_keys();
    if let Some((what, remedy)) = rule.validation_error() {
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
    rule.max_fraction = table.get("most").and_then(|node| node.number(0.0..=1.0)).unwrap_or(rule.max_fraction);
    rule.min_requests = table.get("floor").and_then(|node| node.integer(0..=MAX_CALLS)).unwrap_or(rule.min_requests);
    table.check_unknown_keys();
    if let Some((what, remedy)) = rule.validation_error() {
        table.error(what, remedy);
    }
    Some(rule)
}

impl UpstreamConfig {
    /// With so many attempts at once, and so many calls that wait; without a number nothing is refused.
    pub fn set_limit(&mut self, most: Option<u32>, queue: u32) {
        self.admission = most.map(|most| PermitPool::fixed(most as usize, queue as usize));
        if most.is_none() {
            self.throttle = None;
        }
    }
}
