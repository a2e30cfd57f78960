//! Parses `shed_culprits` of an upstream.

use super::read::DocumentNode;
use weir_base::fault::Fault;
use weir_resilience::culprits::CulpritRule;

/// Maximum number of callers in the table, by route; a pass over them takes some milliseconds.
const MAX_CALLERS: u64 = 65_536;

/// Parses `{}`, or `{ window = "5s", min_time = 0.2, min_ratio = 10, max_callers = 4096 }`.
pub(super) fn culprits(node: &DocumentNode<'_>, has_limit: bool) -> Option<CulpritRule> {
    let table = node.table()?;
    let mut rule = CulpritRule::default();
    rule.window = table.get("window").and_then(|node| node.time()).unwrap_or(rule.window);
    rule.min_time = table.get("min_time").and_then(|node| node.number(0.0..=1.0)).unwrap_or(rule.min_time);
    rule.min_ratio = table.get("min_ratio").and_then(|node| node.number(2.0..=1e6)).unwrap_or(rule.min_ratio);
    let callers = table.get("max_callers").and_then(|node| node.integer(1..=MAX_CALLERS));
    rule.entries = callers.map_or(rule.entries, |number| number as usize);
    table.check_unknown_keys();
    if let Some(Fault { what, remedy }) = rule.fault() {
        table.error(what, remedy);
    }
    if !has_limit {
        node.error("concurrency_limit is none: there are no slots to hold", "leave out this, or concurrency_limit");
    }
    Some(rule)
}
