//! Parses `[[routes]]`.

use http::Method;

use super::caller::{CallerConfig, caller_config};
use super::problem::{Diagnostics, suggestion};
use super::read::{DocumentNode, DocumentTable};
use super::rewrite::{is_authority, rewrite};
use super::upstream::unknown;
use super::{PolicyConfig, ResponseRule, Rewrite, RouteConfig, pattern, policy, protection, response};
use weir_decide::call::policy::RetryableMethodClass;
use weir_http::path::PathRule;

/// The names that routes may refer to.
#[derive(Debug)]
pub(super) struct RouteScope<'n> {
    pub(super) upstreams: Vec<&'n str>,
    pub(super) policies: Vec<(&'n str, Option<PolicyConfig>)>,
    pub(super) listeners: Vec<&'n str>,
    /// Rules of the normal form of paths.
    pub(super) path_rule: PathRule,
}

/// A route, and its references for checks across routes.
#[derive(Debug)]
pub(super) struct ParsedRoute<'a> {
    pub(super) route: RouteConfig,
    /// Position of its path.
    pub(super) path: DocumentNode<'a>,
    /// Name of its policy, unless it is written in the route.
    pub(super) policy: Option<String>,
}

pub(super) fn route<'a>(node: &DocumentNode<'a>, names: &RouteScope<'_>) -> Option<ParsedRoute<'a>> {
    let table = node.table()?;
    let matched = route_match(&table, names.path_rule);
    let text = matched.as_ref().map(|it| it.path.value().as_str().unwrap_or_default()).unwrap_or_default();
    let captures = pattern::captures(text).unwrap_or_default();
    let upstream = upstream(&table, names);
    let (policy, named) = route_policy(&table, names);
    let part = |key| table.get(key).and_then(|node| node.table());
    let rewrite = part("rewrite").map_or_else(Rewrite::default, |table| rewrite(&table, &captures));
    let deadline_from = part("deadline_from").and_then(|table| response::deadline_from(&table, &captures));
    let response = part("response").map_or_else(ResponseRule::default, |table| response::response_rule(&table));
    let limit = protection::route_admission(&table);
    let listeners = table.get("listeners").map(|node| listener_names(&node, &names.listeners)).unwrap_or_default();
    let CallerConfig { priority, caller, rate } = caller_config(&table, &captures);
    table.check_unknown_keys();
    let RouteMatchConfig { path, methods, host } = matched?;
    let policy = policy?;
    check_retryable(&table, &policy, &methods);
    let route = RouteConfig {
        path: text.to_owned(),
        methods,
        host,
        listeners,
        upstream: upstream.unwrap_or_default(),
        policy,
        admission: limit,
        priority,
        caller,
        rate,
        rewrite,
        deadline_from,
        response,
    };
    Some(ParsedRoute { route, path, policy: named })
}

struct RouteMatchConfig<'a> {
    path: DocumentNode<'a>,
    methods: Vec<Method>,
    host: Option<String>,
}

fn route_match<'a>(table: &DocumentTable<'a>, paths: PathRule) -> Option<RouteMatchConfig<'a>> {
    let Some(node) = table.get("match") else {
        table.error("match missing", r#"write match = { path = "/{*rest}" }"#);
        return None;
    };
    let table = node.table()?;
    let methods = table.get("methods").map(|node| methods(&node)).unwrap_or_default();
    let host = table.get("host").and_then(|node| host(&node));
    let path = table.get("path");
    table.check_unknown_keys();
    let Some(path) = path else {
        table.error("path missing", r#"write path = "/{*rest}""#);
        return None;
    };
    if let Err((what, remedy)) = pattern::captures(path.string()?) {
        path.error(what, remedy);
        return None;
    }
    let text = path.string()?;
    if !pattern::is_normal(text, paths) {
        let what = format!("{text:?} is not in normal form, and matches no request");
        path.error(what, "write no \"//\", no dot segments, letters and digits unescaped, and escapes in capitals");
    }
    Some(RouteMatchConfig { path, methods, host })
}

fn methods(node: &DocumentNode<'_>) -> Vec<Method> {
    let list = node.list();
    if list.as_ref().is_some_and(Vec::is_empty) {
        node.error("empty list", r#"write it as ["GET"], or leave it out for all"#);
    }
    let mut methods = Vec::new();
    for node in list.unwrap_or_default() {
        let Some(text) = node.string() else { continue };
        // Methods are case-sensitive (RFC 9110, 9.1); "get" is a mistake.
        let upper = !text.bytes().any(|b| b.is_ascii_lowercase());
        match Method::from_bytes(text.as_bytes()) {
            Ok(Method::CONNECT) => node.error("\"CONNECT\" is not supported", "leave it out"),
            Ok(method) if upper && !methods.contains(&method) => methods.push(method),
            Ok(_) if upper => node.error(format!("duplicate {text:?}"), "leave one out"),
            _ => node.expected("method", r#"write it as "GET""#),
        }
    }
    methods
}

fn host(node: &DocumentNode<'_>) -> Option<String> {
    let text = node.string()?;
    let port = text.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    if port || !is_authority(text) {
        node.expected("host", r#"write a name such as "example.org", without a port"#);
    }
    // The root's dot is not part of the name.
    Some(text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase())
}

fn upstream(table: &DocumentTable<'_>, names: &RouteScope<'_>) -> Option<String> {
    let Some(node) = table.get("upstream") else {
        match names.upstreams.as_slice() {
            [] => {}
            [only] => return Some((*only).to_owned()),
            all => table.error("upstream missing", super::problem::one_of(all)),
        }
        return None;
    };
    let name = node.string()?;
    if !names.upstreams.contains(&name) {
        unknown(&node, "upstream", "upstreams", name, &names.upstreams);
    }
    Some(name.to_owned())
}

impl RouteConfig {
    /// Name in metrics and logs: methods, host, path and listeners.
    pub fn name(&self) -> String {
        let methods: Vec<&str> = self.methods.iter().map(Method::as_str).collect();
        // Routes of several listeners may have the same path.
        let listeners: String = self.listeners.iter().map(|name| format!("@{name}")).collect();
        let parts = [&methods.join(","), self.host.as_deref().unwrap_or_default(), &self.path, &listeners];
        parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" ")
    }
}

/// Parses `["public", "internal"]`.
fn listener_names(node: &DocumentNode<'_>, known: &[&str]) -> Vec<String> {
    let list = node.list();
    if list.as_ref().is_some_and(Vec::is_empty) {
        node.error("empty list", "leave it out for all listeners");
    }
    let mut names = Vec::new();
    for node in list.unwrap_or_default() {
        let Some(name) = node.string() else { continue };
        if !known.contains(&name) {
            let remedy = if known.is_empty() {
                "write [[listeners]] with this name".to_owned()
            } else {
                suggestion(name, known)
            };
            node.error(format!("unknown listener {}", node.display()), remedy);
        }
        names.push(name.to_owned());
    }
    names
}

/// A route's policy, and its name unless it is written in the route.
fn route_policy(table: &DocumentTable<'_>, names: &RouteScope<'_>) -> (Option<PolicyConfig>, Option<String>) {
    let Some(node) = table.get("policy") else { return (Some(PolicyConfig::new(policy::DEFAULT_POLICY)), None) };
    if node.is_table() {
        return (policy::policy(&node, &node.path), None);
    }
    if !node.is_string() {
        node.expected("policy", "write the name of one, or a table");
        return (None, None);
    }
    let name = node.string().unwrap_or_default();
    if let Some((_, policy)) = names.policies.iter().find(|(known, _)| *known == name) {
        return (policy.clone(), Some(name.to_owned()));
    }
    let known: Vec<&str> = names.policies.iter().map(|(name, _)| *name).collect();
    unknown(&node, "policy", "policies", name, &known);
    (None, None)
}

/// Warns if the policy has extra attempts and no method of the route may be sent twice.
fn check_retryable(table: &DocumentTable<'_>, policy: &PolicyConfig, methods: &[Method]) {
    let repeat = policy.policy.retryable_methods;
    let any = methods.is_empty() || methods.iter().any(|method| policy::is_retryable(repeat, method));
    if policy.policy.allows_extra_attempts() && !any {
        let methods: Vec<&str> = methods.iter().map(Method::as_str).collect();
        let what = format!("policy with hedge stages or retries, but {} is sent once only", methods.join(", "));
        let idempotent = methods.iter().any(|method| matches!(*method, "PUT" | "DELETE"));
        let enough = if idempotent && repeat == RetryableMethodClass::Safe { "idempotent" } else { "all" };
        table.warn(what, format!("if repeats do no harm upstream, write retry_methods = \"{enough}\" in the policy"));
    }
}

/// Reports routes that match the same requests.
pub(super) fn check_duplicates(routes: &[ParsedRoute<'_>], notes: &Diagnostics<'_>) {
    let mut seen: std::collections::HashMap<(String, &Option<String>), Vec<usize>> = std::collections::HashMap::new();
    for (index, ParsedRoute { route, path, .. }) in routes.iter().enumerate() {
        let same = seen.entry((pattern::shape(&route.path), &route.host)).or_default();
        for earlier in same.iter().map(|earlier| &routes[*earlier]) {
            let (theirs, ours) = (&earlier.route.listeners, &route.listeners);
            if !theirs.is_empty() && !ours.is_empty() && !theirs.iter().any(|name| ours.contains(name)) {
                continue;
            }
            let both = earlier.route.methods.iter().find(|method| route.methods.contains(method));
            if both.is_some() || route.methods.is_empty() && earlier.route.methods.is_empty() {
                let what = match both {
                    Some(method) => format!("{method} {} has a route already", route.path),
                    None => format!("{} has a route already", route.path),
                };
                let (line, _) = notes.position(earlier.path.start());
                path.error(what, format!("see line {line}; make them differ in path, methods or host"));
                break;
            }
        }
        same.push(index);
    }
}
