//! Changes that a reload would make: two configurations compared by meaning, part by part.

use std::fmt;

use super::{Config, ListenerConfig, PolicyConfig};
use crate::gate_route::route_name;

/// How a part differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartChangeKind {
    /// Only in the new configuration.
    Added,
    /// Only in the old configuration.
    Removed,
    /// In both, with different settings.
    Changed,
}

/// A part that differs, and what a reload does about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    /// How it differs.
    pub kind: PartChangeKind,
    /// The part, such as `upstream backend`.
    pub part: String,
    /// Effect of a reload on the part.
    pub effect: &'static str,
}

/// `~ upstream backend: connections, health and counts start anew`.
impl fmt::Display for ConfigChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.kind {
            PartChangeKind::Added => '+',
            PartChangeKind::Removed => '-',
            PartChangeKind::Changed => '~',
        };
        write!(f, "{sign} {}: {}", self.part, self.effect)
    }
}

const RESTART: &str = "needs a restart";
const NEXT_CALL: &str = "from the next call on";

/// The differences between two configurations, by part. The contents of files that they name are not compared.
pub fn differences(old: &Config, new: &Config) -> Vec<ConfigChange> {
    let mut changes = Vec::new();
    let settings: [(&str, bool, &'static str); 10] = [
        ("listen", old.listen == new.listen, RESTART),
        ("admin", old.admin == new.admin, RESTART),
        ("workers", old.workers == new.workers, RESTART),
        ("metrics", old.builtin_paths().metrics == new.builtin_paths().metrics, RESTART),
        ("health", old.builtin_paths().health == new.builtin_paths().health, RESTART),
        ("cluster", old.distributed_limits == new.distributed_limits, RESTART),
        ("trusted_proxies", old.trusted_proxies == new.trusted_proxies, NEXT_CALL),
        ("client_certificate_headers", old.client_certificate_headers == new.client_certificate_headers, NEXT_CALL),
        ("forwarding_headers", old.forwarding_headers == new.forwarding_headers, NEXT_CALL),
        ("paths (merge_slashes, ambiguous_paths, path_parameters)", old.path_rule == new.path_rule, NEXT_CALL),
    ];
    for (part, is_same, effect) in settings {
        if !is_same {
            changes.push(ConfigChange { kind: PartChangeKind::Changed, part: part.to_owned(), effect });
        }
    }
    compare(
        &mut changes,
        &ComparedParts { kind: "listener", old: &old.listeners, new: &new.listeners },
        |listener| listener.name.clone(),
        |_, pair| match pair {
            Some((old, new)) if can_reload(old, new) => "from the next connection on",
            _ => RESTART,
        },
    );
    compare(
        &mut changes,
        &ComparedParts { kind: "upstream", old: &old.upstreams, new: &new.upstreams },
        |upstream| upstream.name.clone(),
        |kind, _| match kind {
            PartChangeKind::Changed => "connections, health, limits and counts start anew",
            PartChangeKind::Added | PartChangeKind::Removed => NEXT_CALL,
        },
    );
    let (old_policies, new_policies) = (policies(old), policies(new));
    compare(
        &mut changes,
        &ComparedParts { kind: "policy", old: &old_policies, new: &new_policies },
        |policy| policy.name.clone(),
        |_, pair| match pair {
            Some((old, new)) if old.policy.budget != new.policy.budget => {
                "from the next call on; its budget starts anew"
            }
            _ => NEXT_CALL,
        },
    );
    // A policy is compared once, and not with each of its routes.
    let routes = |config: &Config| {
        let mut routes = config.routes.clone();
        for route in &mut routes {
            route.policy = PolicyConfig::new(&route.policy.name);
        }
        routes
    };
    let (old_routes, new_routes) = (routes(old), routes(new));
    let compared = ComparedParts { kind: "route", old: &old_routes, new: &new_routes };
    compare(&mut changes, &compared, route_name, |_, pair| match pair {
        Some((old, new)) if old.admission != new.admission => "from the next call on; its limit starts anew",
        Some((old, new)) if (old.rate, &old.rate_terms, &old.caller) != (new.rate, &new.rate_terms, &new.caller) => {
            "from the next call on; its rate limits start anew"
        }
        _ => NEXT_CALL,
    });
    changes
}

/// Parts of one kind in two configurations.
struct ComparedParts<'a, T> {
    /// Kind of the parts, such as `upstream`.
    kind: &'static str,
    /// Parts before the reload.
    old: &'a [T],
    /// Parts after it.
    new: &'a [T],
}

/// Adds the differences between two lists of named parts, in the order of the new list, removed parts first.
fn compare<T: PartialEq>(
    changes: &mut Vec<ConfigChange>,
    compared: &ComparedParts<'_, T>,
    name: impl Fn(&T) -> String,
    effect: impl Fn(PartChangeKind, Option<(&T, &T)>) -> &'static str,
) {
    let ComparedParts { kind: kind_of_part, old, new } = *compared;
    let mut add = |kind, part: &str, pair| {
        changes.push(ConfigChange { kind, part: format!("{kind_of_part} {part}"), effect: effect(kind, pair) });
    };
    for gone in old.iter().map(&name).filter(|part| !new.iter().any(|kept| name(kept) == *part)) {
        add(PartChangeKind::Removed, &gone, None);
    }
    for next in new {
        let part = name(next);
        match old.iter().find(|before| name(before) == part) {
            None => add(PartChangeKind::Added, &part, None),
            Some(before) if before != next => add(PartChangeKind::Changed, &part, Some((before, next))),
            Some(_) => {}
        }
    }
}

/// Policies of a configuration's routes, each once; those without a name belong to their route.
fn policies(config: &Config) -> Vec<PolicyConfig> {
    let mut policies: Vec<PolicyConfig> = Vec::new();
    for route in &config.routes {
        if !policies.iter().any(|known| known.name == route.policy.name) {
            policies.push(route.policy.clone());
        }
    }
    policies
}

/// Whether a reload applies the change of a listener.
fn can_reload(old: &ListenerConfig, new: &ListenerConfig) -> bool {
    (&old.address, &old.proxy_protocol) == (&new.address, &new.proxy_protocol) && old.tls.is_some() == new.tls.is_some()
}
