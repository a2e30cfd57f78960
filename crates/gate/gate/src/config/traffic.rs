//! Parses how a route's calls are spread: weighted upstreams and mirroring.

use super::policy;
use super::read::DocumentNode;
use super::upstream::unknown;
use weir_base::Nanos;
use weir_retry::policy::BudgetRule;

/// An upstream of a route, and its part of the route's calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightedUpstream {
    /// Name of the upstream.
    pub name: String,
    /// Weight, 0 to 1000000; the fraction is the weight divided by the sum of all.
    pub weight: u32,
}

/// Copies of a route's requests to a second upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct MirrorRule {
    /// Name of the upstream that gets the copies.
    pub upstream: String,
    /// Fraction of calls that are copied, in (0, 1].
    pub fraction: f64,
    /// Timeout of a copy.
    pub deadline: Nanos,
    /// Maximum copies in flight, over all event loops.
    pub max_in_flight: usize,
    /// Maximum body of a copied request, in bytes.
    pub max_body_bytes: usize,
    /// Budget of copies; None for no limit beside the fraction.
    pub budget: Option<BudgetRule>,
}

/// Maximum weight of an upstream.
const MAX_WEIGHT: u64 = 1_000_000;
/// Maximum upstreams of a route.
const MAX_ROUTE_UPSTREAMS: usize = 16;
/// Parses `"name"` or `[{ name = "a", weight = 95 }, { name = "b", weight = 5 }]`.
pub(super) fn weighted_upstreams(node: &DocumentNode<'_>, known: &[&str]) -> Vec<WeightedUpstream> {
    if !node.value().is_array() {
        let name = node.string().map(|name| upstream_name(node, name, known));
        return name.into_iter().map(|name| WeightedUpstream { name, weight: 1 }).collect();
    }
    let list = node.list().unwrap_or_default();
    if list.is_empty() || list.len() > MAX_ROUTE_UPSTREAMS {
        let what =
            if list.is_empty() { "empty list".to_owned() } else { format!("{} upstreams are too many", list.len()) };
        let remedy = format!(r#"write 1 to {MAX_ROUTE_UPSTREAMS}, as {{ name = "a", weight = 95 }}"#);
        node.error(what, remedy);
    }
    let mut all: Vec<WeightedUpstream> = Vec::new();
    for node in &list {
        let Some(table) = node.table() else { continue };
        let (name, weight) = (table.get("name"), table.get("weight"));
        table.check_unknown_keys();
        let (Some(name), Some(weight)) = (name, weight) else {
            table.error("name or weight missing", r#"write it as { name = "a", weight = 95 }"#);
            continue;
        };
        let (Some(text), Some(weight)) = (name.string(), weight.integer(0..=MAX_WEIGHT)) else { continue };
        if all.iter().any(|it| it.name == text) {
            name.error(format!("duplicate {text:?}"), "add its weights");
        }
        all.push(WeightedUpstream { name: upstream_name(&name, text, known), weight: weight as u32 });
    }
    if all.len() == list.len() && !all.is_empty() && all.iter().all(|it| it.weight == 0) {
        node.error("all weights are 0", "give one of them a weight above 0");
    }
    all
}

fn upstream_name(node: &DocumentNode<'_>, name: &str, known: &[&str]) -> String {
    if !known.contains(&name) {
        unknown(node, "upstream", "upstreams", name, known);
    }
    name.to_owned()
}

/// Parses `{ upstream = "shadow", fraction = 0.1 }`.
pub(super) fn mirror(node: &DocumentNode<'_>, known: &[&str]) -> Option<MirrorRule> {
    let table = node.table()?;
    let (upstream, fraction) = (table.get("upstream"), table.get("fraction"));
    let deadline = table.get("deadline").and_then(|node| node.time()).unwrap_or(Nanos::from_secs(10));
    let max_in_flight = table.get("max_in_flight").and_then(|node| node.integer(1..=MAX_WEIGHT)).unwrap_or(100);
    let max_body = table.get("max_body").and_then(|node| node.size(0..=1 << 30)).unwrap_or(64 << 10);
    let budget = table.get("budget").and_then(|node| policy::budget(&node));
    table.check_unknown_keys();
    let Some(upstream) = upstream else {
        table.error("upstream missing", r#"write it as { upstream = "NAME", fraction = 0.1 }"#);
        return None;
    };
    let fraction = fraction.map_or(Some(1.0), |node| {
        let fraction = node.number(0.0..=1.0)?;
        if fraction == 0.0 {
            node.error("a fraction of 0 copies nothing", "leave out mirror");
        }
        Some(fraction)
    });
    Some(MirrorRule {
        upstream: upstream_name(&upstream, upstream.string()?, known),
        fraction: fraction?,
        deadline,
        max_in_flight: max_in_flight as usize,
        max_body_bytes: max_body,
        budget,
    })
}
