//! Routes that match the same requests as others, and routes that never match.

use http::Method;

use super::{RouteEntry, Routes};
use crate::config::RouteConfig;

/// Conflict between two routes, by their indexes in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RouteConflict {
    /// Both match the same requests; of this method, or of all.
    Duplicate { route: usize, earlier: usize, method: Option<Method> },
    /// The route never matches: others come first for all its requests, this one for the last of them.
    Unreachable { route: usize, covered_by: usize },
}

/// Conflicts of routes on these listeners: a route is a duplicate if it is one on any of its listeners, and unreachable
/// if it is on all of them.
pub(crate) fn conflicts_of_listeners(routes: &[RouteConfig], listeners: &[&str]) -> Vec<RouteConflict> {
    if routes.iter().all(|route| route.listeners.is_empty()) {
        return conflicts(routes);
    }
    let mut duplicates = vec![None; routes.len()];
    let mut unreachable: Vec<Option<RouteConflict>> = vec![None; routes.len()];
    let mut reachable = vec![false; routes.len()];
    for listener in listeners {
        let is_here =
            |route: &RouteConfig| route.listeners.is_empty() || route.listeners.iter().any(|it| it == listener);
        let here: Vec<usize> = (0..routes.len()).filter(|index| is_here(&routes[*index])).collect();
        let of_here: Vec<RouteConfig> = here.iter().map(|index| routes[*index].clone()).collect();
        let mut unreachable_here = Vec::new();
        for conflict in conflicts(&of_here) {
            match conflict {
                RouteConflict::Duplicate { route, earlier, method } => {
                    let (route, earlier) = (here[route], here[earlier]);
                    duplicates[route].get_or_insert(RouteConflict::Duplicate { route, earlier, method });
                }
                RouteConflict::Unreachable { route, covered_by } => {
                    let (route, covered_by) = (here[route], here[covered_by]);
                    unreachable_here.push(route);
                    unreachable[route].get_or_insert(RouteConflict::Unreachable { route, covered_by });
                }
            }
        }
        for route in here.into_iter().filter(|route| !unreachable_here.contains(route)) {
            reachable[route] = true;
        }
    }
    let of = |route: usize| {
        let is_unreachable = !reachable[route];
        duplicates[route].clone().or_else(|| unreachable[route].clone().filter(|_| is_unreachable))
    };
    (0..routes.len()).filter_map(of).collect()
}

/// Conflicts of routes, by the route that is to be changed. Expressions are compared by their texts alone.
pub(super) fn conflicts(routes: &[RouteConfig]) -> Vec<RouteConflict> {
    // A path with an error is reported where it is parsed.
    let Ok(table) = Routes::new(routes) else { return Vec::new() };
    let mut duplicates: Vec<Option<(usize, Option<Method>)>> = vec![None; routes.len()];
    // Per route: whether a host and path was seen at which it can match, and the route that covers it elsewhere.
    let mut reachable = vec![false; routes.len()];
    let mut covered_by = vec![None; routes.len()];
    let hosts = table.exact.values().chain(table.suffixes.iter().map(|(_, routes)| routes)).chain([&table.any]);
    for entries in hosts.flat_map(|routes| routes.values()) {
        for (at, entry) in entries.iter().enumerate() {
            let before = &entries[..at];
            if let Some((other, method)) = before.iter().find_map(|other| Some((other, entry.duplicates(other)?))) {
                let (route, earlier) = (entry.index.max(other.index), entry.index.min(other.index));
                duplicates[route].get_or_insert((earlier, method));
                reachable[entry.index] = true;
            }
            match entry.covering(before) {
                Some(covering) => covered_by[entry.index] = Some(covering),
                None => reachable[entry.index] = true,
            }
        }
    }
    let duplicate = |route: usize| {
        let (earlier, method) = duplicates[route].clone()?;
        Some(RouteConflict::Duplicate { route, earlier, method })
    };
    let unreachable = |route: usize| {
        let covered_by = covered_by[route].filter(|_| !reachable[route])?;
        Some(RouteConflict::Unreachable { route, covered_by })
    };
    (0..routes.len()).filter_map(|route| duplicate(route).or_else(|| unreachable(route))).collect()
}

impl RouteEntry {
    /// The method that both routes of a host and path match under the same conditions; None of a method is all.
    fn duplicates(&self, other: &Self) -> Option<Option<Method>> {
        if self.conditions.len() != other.conditions.len()
            || !self.conditions.iter().all(|condition| other.conditions.contains(condition))
        {
            return None;
        }
        if self.methods.is_empty() && other.methods.is_empty() {
            return Some(None);
        }
        self.methods.iter().find(|method| other.methods.contains(method)).cloned().map(Some)
    }

    /// The last of the routes before this one, of the same host and path, that together match all that it matches.
    fn covering(&self, before: &[Self]) -> Option<usize> {
        let is_weaker = |other: &&Self| {
            let is_implied = |wanted| self.conditions.iter().any(|condition| condition.implies(wanted));
            other.conditions.iter().all(is_implied)
        };
        let mut left: Vec<&Method> = self.methods.iter().collect();
        for other in before.iter().filter(is_weaker) {
            left.retain(|method| !other.methods.is_empty() && !other.methods.contains(method));
            if left.is_empty() && (!self.methods.is_empty() || other.methods.is_empty()) {
                return Some(other.index);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_conflict_only_on_listeners_that_both_have() {
        let route = |listeners: &[&str]| RouteConfig {
            listeners: listeners.iter().map(|name| (*name).to_owned()).collect(),
            ..RouteConfig::forward_all("upstream", "/a")
        };
        let found = |routes: &[RouteConfig]| conflicts_of_listeners(routes, &["a", "b", "c"]);
        assert_eq!(found(&[route(&["a"]), route(&["b", "c"])]), []);
        let duplicate = |route, earlier| RouteConflict::Duplicate { route, earlier, method: None };
        assert_eq!(found(&[route(&["a"]), route(&["b"]), route(&["b", "a"])]), [duplicate(2, 0)]);
        assert_eq!(found(&[route(&["a"]), route(&[])]), [duplicate(1, 0)]);
        assert_eq!(found(&[route(&[]), route(&[])]), [duplicate(1, 0)]);
    }
}
