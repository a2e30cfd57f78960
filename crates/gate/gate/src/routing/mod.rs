//! Routing: of the routes whose conditions a request meets, the most specific one.
//!
//! In this order: the host (a name before a wildcard, a longer wildcard before a shorter one, any host last); the path,
//! segment by segment (fixed text, a pattern, a capture, the rest); a route that names its methods before one for all;
//! the number of conditions on headers, cookies and query; the order in the file. A route that does not match leaves
//! the request to the next one in this order. So a condition is never the end of a search, and where a request goes does
//! not depend on the routes that are not for it.

mod captures;
mod condition;
mod conflict;
mod path_tree;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

use http::{HeaderMap, Method};

use self::captures::CaptureValues;
pub(crate) use self::captures::Captures;
pub(crate) use self::condition::cookies;
pub(crate) use self::conflict::{RouteConflict, conflicts_of_listeners};
use self::path_tree::PathTree;
use super::config::{Condition, HostMatch, RouteConfig, path_captures};

/// Table of all routes.
#[derive(Clone, Debug, Default)]
pub(super) struct Routes {
    /// Routes of one host, by its name.
    exact: HashMap<String, HostRoutes>,
    /// Routes of hosts that end with a suffix, the longest first.
    suffixes: Vec<(String, HostRoutes)>,
    any: HostRoutes,
}

/// Routes of a host by path; those of a path are in order of precedence.
type HostRoutes = PathTree<Vec<RouteEntry>>;

/// One route of a host and a path.
#[derive(Clone, Debug)]
struct RouteEntry {
    index: usize,
    methods: Vec<Method>,
    conditions: Vec<Condition>,
    /// Names of the route's captures, in order.
    names: Vec<String>,
}

/// Parts of a request that routes are matched by.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestFacts<'a> {
    pub(super) method: &'a Method,
    /// The host that the request is for, possibly with a port.
    pub(super) host: Option<&'a str>,
    /// The path in normal form.
    pub(super) path: &'a str,
    pub(super) query: Option<&'a str>,
    pub(super) headers: &'a HeaderMap,
}

/// Result of routing a request.
#[derive(Debug)]
pub(super) enum RouteMatch<'a> {
    /// A route, by its index in the configuration.
    Route {
        index: usize,
        captures: Captures<'a>,
    },
    /// Routes would match but for the method; these are allowed.
    MethodNotAllowed {
        allow: String,
    },
    NotFound,
}

impl Routes {
    /// The table of routes.
    ///
    /// # Errors
    /// A path is invalid; in one line.
    pub(super) fn new(routes: &[RouteConfig]) -> Result<Self, String> {
        let mut table = Self::default();
        for (index, route) in routes.iter().enumerate() {
            let RouteConfig { path, methods, hosts, conditions, .. } = route;
            let invalid = |what: String| format!("route {path}: {what}");
            let names = path_captures(path).map_err(|fault| invalid(fault.what))?;
            let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            let entry =
                || RouteEntry { index, methods: methods.clone(), conditions: conditions.clone(), names: names.clone() };
            if hosts.is_empty() {
                insert(&mut table.any, path, entry()).map_err(invalid)?;
            }
            for host in hosts {
                insert(table.of_host(host), path, entry()).map_err(invalid)?;
            }
        }
        Ok(table)
    }

    fn of_host(&mut self, host: &HostMatch) -> &mut HostRoutes {
        match host {
            HostMatch::Exact(name) => self.exact.entry(name.clone()).or_default(),
            HostMatch::Suffix(suffix) => {
                let at = match self.suffixes.iter().position(|(known, _)| known == suffix) {
                    Some(at) => at,
                    None => {
                        let at = self.suffixes.partition_point(|(known, _)| known.len() >= suffix.len());
                        self.suffixes.insert(at, (suffix.clone(), HostRoutes::default()));
                        at
                    }
                };
                &mut self.suffixes[at].1
            }
        }
    }

    /// The route of a request.
    pub(super) fn find<'a>(&'a self, request: &RequestFacts<'a>) -> RouteMatch<'a> {
        let mut is_method_missed = false;
        let mut accept = |entries: &'a Vec<RouteEntry>, values: &CaptureValues<'a>| {
            let entry = entries.iter().find(|entry| {
                let has_method = entry.methods.is_empty() || entry.methods.contains(request.method);
                let is_match = (has_method || !is_method_missed) && entry.meets_conditions(request);
                is_method_missed |= is_match && !has_method;
                is_match && has_method
            })?;
            Some((entry.index, Captures { names: &entry.names, values: values.clone() }))
        };
        let name = request.host.filter(|_| self.has_hosts()).map(host_name);
        let mut groups = self.host_groups(name.as_deref());
        if let Some((index, captures)) = groups.find_map(|routes| routes.find(request.path, &mut accept)) {
            return RouteMatch::Route { index, captures };
        }
        if is_method_missed {
            return RouteMatch::MethodNotAllowed { allow: self.allowed_methods(request) };
        }
        RouteMatch::NotFound
    }

    /// Whether any route is for some hosts only.
    fn has_hosts(&self) -> bool {
        !(self.exact.is_empty() && self.suffixes.is_empty())
    }

    /// Routes by host, for the most specific host first.
    fn host_groups<'a>(&'a self, name: Option<&str>) -> impl Iterator<Item = &'a HostRoutes> {
        let exact = name.filter(|_| !self.exact.is_empty()).and_then(|name| self.exact.get(name));
        let is_match = move |suffix: &str| name.is_some_and(|name| name.len() > suffix.len() && name.ends_with(suffix));
        let suffixes = self.suffixes.iter().filter(move |(suffix, _)| is_match(suffix)).map(|(_, routes)| routes);
        exact.into_iter().chain(suffixes).chain([&self.any])
    }

    /// Methods of the routes that would match but for the method.
    fn allowed_methods(&self, request: &RequestFacts<'_>) -> String {
        let mut allowed: Vec<Method> = Vec::new();
        let name = request.host.map(host_name);
        for routes in self.host_groups(name.as_deref()) {
            let mut collect = |entries: &Vec<RouteEntry>, _: &CaptureValues<'_>| -> Option<()> {
                let matching = entries.iter().filter(|entry| entry.meets_conditions(request));
                allowed.extend(matching.flat_map(|entry| entry.methods.iter().cloned()));
                None
            };
            routes.find(request.path, &mut collect);
        }
        let mut allowed: Vec<&str> = allowed.iter().map(Method::as_str).collect();
        allowed.sort_unstable();
        allowed.dedup();
        allowed.join(", ")
    }
}

impl RouteEntry {
    fn meets_conditions(&self, request: &RequestFacts<'_>) -> bool {
        self.conditions.iter().all(|condition| condition.holds(request.headers, request.query))
    }

    /// Precedence among the routes of one host and path; the lowest first.
    fn precedence(&self) -> (bool, Reverse<usize>, usize) {
        (self.methods.is_empty(), Reverse(self.conditions.len()), self.index)
    }
}

fn insert(routes: &mut HostRoutes, path: &str, entry: RouteEntry) -> Result<(), String> {
    let entries = routes.entry(path)?;
    let at = entries.partition_point(|known| known.precedence() < entry.precedence());
    entries.insert(at, entry);
    Ok(())
}

/// The name in a Host header's value: in lower case, without the port and the root's dot.
fn host_name(host: &str) -> Cow<'_, str> {
    let name = match host.rfind(':') {
        // Colons in the brackets of an IPv6 address are not before a port.
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) { name.to_ascii_lowercase().into() } else { name.into() }
}
