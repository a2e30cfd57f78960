//! Reads what is done when there is too much: limits, breaker and throttle.

use super::UpstreamConfig;
use super::read::{Node, Table};
use crate::call::Places;
use crate::decide::Nanos;
use crate::decide::admit::{LimitTerms, Terms, limit};
use crate::decide::breaker::BreakerRule;
use crate::decide::throttle::ThrottleRule;

/// For those in flight, and those that wait.
const MOST: u64 = 1_000_000;

fn number(node: &Node<'_>, least: u64) -> Option<u32> {
    node.whole(least..=MOST).and_then(|number| u32::try_from(number).ok())
}

/// `max_in_flight` and `queue` of a route; none is no limit.
pub(super) fn of_route(table: &Table<'_>) -> Option<Terms> {
    let (most, queue) = (table.get("max_in_flight"), table.get("queue"));
    let waiting = queue.as_ref().and_then(|node| number(node, 0)).unwrap_or(0);
    let Some(most) = most else {
        check_queue(queue.as_ref(), waiting, "give max_in_flight, too");
        return None;
    };
    Some(Places::fixed(number(&most, 1)? as usize, waiting as usize))
}

fn check_queue(queue: Option<&Node<'_>>, waiting: u32, remedy: &str) {
    if let Some(node) = queue.filter(|_| waiting > 0) {
        node.wrong("nobody waits where there is no limit", remedy);
    }
}

/// `max_in_flight`, `queue` and `limit` of an upstream; none is no limit.
pub(super) fn of_upstream(table: &Table<'_>) -> Option<Terms> {
    let (most, queue, limit) = (table.get("max_in_flight"), table.get("queue"), table.get("limit"));
    let waiting = queue.as_ref().and_then(|node| number(node, 0));
    let adaptive = match &limit {
        Some(node) if !node.is_table() => node.choice(&[("adaptive", true), ("none", false)])?,
        _ => true,
    };
    if !adaptive {
        if let Some(most) = &most {
            most.wrong("there is to be no limit, and here is one", "leave out this, or limit");
        }
        check_queue(queue.as_ref(), waiting.unwrap_or(0), "leave it out");
        return None;
    }
    let details = limit.as_ref().filter(|node| node.is_table()).and_then(Node::table);
    let mut terms = match &most {
        Some(most) => Places::fixed(number(most, 1).unwrap_or(1) as usize, waiting.unwrap_or(0) as usize),
        None => {
            let usual = Terms::default();
            Terms { queue: waiting.unwrap_or(usual.queue), ..usual }
        }
    };
    if let (Some(_), Some(node), None) = (&most, &limit, &details) {
        node.wrong("max_in_flight is a limit that stays as it is", "leave out one of them");
    }
    if let Some(table) = details {
        match &mut terms.limit {
            LimitTerms::Adaptive(options) => bounds(&table, options),
            LimitTerms::Fixed(_) => {
                for node in ["initial", "min", "max"].into_iter().filter_map(|key| table.get(key)) {
                    node.wrong("max_in_flight is a limit that stays as it is", "leave out one of them");
                }
            }
        }
        waits(&table, &mut terms);
        table.close();
    }
    Some(terms)
}

/// What a limit that is found out may be.
fn bounds(table: &Table<'_>, options: &mut limit::Options) {
    let (initial, min, max) = (table.get("initial"), table.get("min"), table.get("max"));
    let said = |node: &Option<Node<'_>>| node.as_ref().and_then(|node| number(node, 1));
    options.min = said(&min).unwrap_or(options.min);
    options.max = said(&max).unwrap_or(options.max);
    if options.min > options.max {
        table.wrong(
            format!("the least limit ({}) is above the most ({})", options.min, options.max),
            "make max as large as min at least",
        );
    }
    match said(&initial) {
        Some(first) if first < options.min || first > options.max => {
            if let Some(node) = initial.filter(|_| options.min <= options.max) {
                node.wrong(
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
fn waits(table: &Table<'_>, terms: &mut Terms) {
    let (patience, haste) = (table.get("patience"), table.get("haste"));
    let time = |node: &Option<Node<'_>>| node.as_ref().and_then(Node::time);
    let usual = Terms::default();
    match (time(&patience), time(&haste)) {
        (None, None) => {}
        (None, Some(_)) if terms.patience == Nanos::NEVER => {
            let what = "with max_in_flight one waits for as long as it takes, unless there is a patience";
            haste.iter().for_each(|node| node.wrong(what, r#"give patience, too, e.g. "1s""#));
        }
        (longest, shortest) => {
            terms.patience = longest.unwrap_or(usual.patience);
            terms.haste = shortest.unwrap_or(usual.haste.min(terms.patience));
            if terms.haste > terms.patience {
                let what = format!("haste ({}) is longer than patience ({})", terms.haste, terms.patience);
                table.wrong(what, "under overload one waits for less: make haste the shorter one");
            }
        }
    }
}

/// `[upstreams.NAME.breaker]`
pub(super) fn breaker(node: &Node<'_>) -> Option<BreakerRule> {
    let table = node.table()?;
    let mut rule = BreakerRule::default();
    let time = |key, usual| table.get(key).and_then(|node| node.time()).unwrap_or(usual);
    rule.window = time("window", rule.window);
    rule.least = table.get("least").and_then(|node| node.whole(1..=MOST)).unwrap_or(rule.least);
    rule.share = table.get("share").and_then(|node| node.number(0.0..=1.0)).unwrap_or(rule.share);
    rule.rest = time("rest", rule.rest);
    rule.longest_rest = time("longest_rest", rule.longest_rest.max(rule.rest));
    rule.probes = table.get("probes").and_then(|node| number(&node, 1)).unwrap_or(rule.probes);
    table.close();
    if let Some((what, remedy)) = rule.fault() {
        table.wrong(what, remedy);
    }
    Some(rule)
}

/// `throttle = "none"`, or `[upstreams.NAME.throttle]`
pub(super) fn throttle(node: &Node<'_>) -> Option<ThrottleRule> {
    if !node.is_table() {
        node.choice(&[("none", ())]);
        return None;
    }
    let table = node.table()?;
    let mut rule = ThrottleRule::default();
    rule.k = table.get("k").and_then(|node| node.number(1.0..=1000.0)).unwrap_or(rule.k);
    rule.window = table.get("window").and_then(|node| node.time()).unwrap_or(rule.window);
    rule.most = table.get("most").and_then(|node| node.number(0.0..=1.0)).unwrap_or(rule.most);
    rule.floor = table.get("floor").and_then(|node| node.whole(0..=MOST)).unwrap_or(rule.floor);
    table.close();
    if let Some((what, remedy)) = rule.fault() {
        table.wrong(what, remedy);
    }
    Some(rule)
}

impl UpstreamConfig {
    /// With so many attempts at once, and so many calls that wait; without a number nothing is refused.
    pub fn protect(&mut self, most: Option<u32>, queue: u32) {
        self.limit = most.map(|most| Places::fixed(most as usize, queue as usize));
        if most.is_none() {
            self.throttle = None;
        }
    }
}
