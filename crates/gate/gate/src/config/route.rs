//! Parses `[[routes]]`.

use std::borrow::Cow;

use http::Method;

use super::caller::{CallerConfig, caller_config};
use super::condition::conditions;
use super::host_pattern::host_patterns;
use super::key_source::key_source;
use super::problem::{Diagnostics, suggestion};
use super::read::{DocumentNode, DocumentTable};
use super::redirect::action;
use super::request_limit::request_limits;
use super::rewrite::rewrite;
use super::traffic::weighted_upstreams;
use super::upgrade;
use super::upstream::unknown;
use super::{
    Condition, ConditionSource, HostMatch, KeySource, MirrorRule, PolicyConfig, ResponseRule, Rewrite, RouteAction,
    RouteConfig, ValueCondition, WeightedUpstream, pattern, policy, protection, response, traffic,
};
use crate::routing::{RouteConflict, conflicts_of_listeners};
use weir_base::fault::Fault;
use weir_net::path::PathRule;
use weir_retry::policy::RetryableMethodClass;

/// The names that routes may refer to.
#[derive(Debug)]
pub(super) struct RouteScope<'n> {
    pub(super) upstreams: Vec<&'n str>,
    pub(super) policies: Vec<(&'n str, Option<PolicyConfig>)>,
    pub(super) listeners: Vec<&'n str>,
    /// Rules of the normal form of paths.
    pub(super) path_rule: PathRule,
    /// Whether an upstream sheds culprits, so that callers matter.
    pub(super) has_culprits: bool,
}

/// A route, and its references for checks across routes.
#[derive(Debug)]
pub(super) struct ParsedRoute<'a> {
    pub(super) route: RouteConfig,
    /// Position of its path or its gRPC service.
    pub(super) path: DocumentNode<'a>,
    /// Name of its policy, unless it is written in the route.
    pub(super) policy: Option<String>,
}

pub(super) fn route<'a>(node: &DocumentNode<'a>, names: &RouteScope<'_>) -> Option<ParsedRoute<'a>> {
    let table = node.table()?;
    let matched = route_match(&table, names.path_rule);
    let text = matched.as_ref().map(|it| it.pattern.clone()).unwrap_or_default();
    let captures = pattern::captures(&text).unwrap_or_default();
    let action = action(&table, &captures, names.path_rule);
    let is_forward = action == RouteAction::Forward;
    let upstreams = if is_forward { upstreams(&table, names) } else { Vec::new() };
    let (sticky, mirror) = spreading(&table, names, &upstreams);
    let (policy, named) = route_policy(&table, names);
    let part = |key| table.get(key).and_then(|node| node.table());
    let rewrite = part("rewrite").map_or_else(Rewrite::default, |table| rewrite(&table, &captures, names.path_rule));
    let deadline_from = part("deadline_from").and_then(|table| response::deadline_from(&table, &captures));
    let response = part("response").map_or_else(ResponseRule::default, |table| response::response_rule(&table));
    let limit = protection::route_admission(&table);
    let listeners = table.get("listeners").map(|node| listener_names(&node, &names.listeners)).unwrap_or_default();
    let CallerConfig { priority, caller, rate, rate_terms } = caller_config(&table, &captures, names.has_culprits);
    let limits = request_limits(&table);
    let upgrades = table.get("upgrades").map_or_else(upgrade::default_upgrades, |node| upgrade::upgrades(&node));
    table.check_unknown_keys();
    let RouteMatchConfig { node: path, pattern: _, methods, hosts, conditions } = matched?;
    let policy = policy?;
    check_retryable(&table, &policy, &methods);
    let route = RouteConfig {
        path: text,
        methods,
        hosts,
        listeners,
        conditions,
        action,
        limits,
        upstreams,
        sticky,
        mirror,
        policy,
        admission: limit,
        priority,
        caller,
        rate,
        rate_terms,
        upgrades,
        rewrite,
        deadline_from,
        response,
    };
    Some(ParsedRoute { route, path, policy: named })
}

struct RouteMatchConfig<'a> {
    /// The path, or the gRPC service.
    node: DocumentNode<'a>,
    pattern: String,
    methods: Vec<Method>,
    hosts: Vec<HostMatch>,
    conditions: Vec<Condition>,
}

fn route_match<'a>(table: &DocumentTable<'a>, paths: PathRule) -> Option<RouteMatchConfig<'a>> {
    let Some(node) = table.get("match") else {
        table.error("match missing", r#"write match = { path = "/{*rest}" }"#);
        return None;
    };
    let table = node.table()?;
    let methods_node = table.get("methods");
    let mut methods = methods_node.as_ref().map(methods).unwrap_or_default();
    let hosts = table.get("host").map(|node| host_patterns(&node)).unwrap_or_default();
    let mut conditions = conditions(&table);
    let (path, grpc) = (table.get("path"), table.get("grpc"));
    table.check_unknown_keys();
    if let (Some(_), Some(node)) = (&path, &grpc) {
        node.error("path and grpc exclude each other", "leave one out");
        return None;
    }
    if let Some(node) = grpc {
        if let Some(methods) = methods_node {
            methods.error("the method of a gRPC call is POST", "leave it out");
        }
        methods = vec![Method::POST];
        conditions.push(Condition { source: ConditionSource::Grpc, test: ValueCondition::Present });
        let pattern = grpc_path(&node)?;
        return Some(RouteMatchConfig { node, pattern, methods, hosts, conditions });
    }
    let Some(path) = path else {
        table.error("path missing", r#"write path = "/{*rest}""#);
        return None;
    };
    let text = path.string()?;
    if let Err(Fault { what, remedy }) = pattern::captures(text) {
        path.error(what, remedy);
        return None;
    }
    if !paths.passes_parameters() && pattern::has_parameters(text) {
        let what = format!("{text:?} has path parameters, and matches no request");
        path.error(what, r#"capture them, as in "/fixed/{name}", or write path_parameters = "pass" at the top"#);
    } else if !pattern::is_normal(text, paths) {
        let what = format!("{text:?} is not in normal form, and matches no request");
        path.error(what, "write no \"//\", no dot segments, letters and digits unescaped, and escapes in capitals");
    }
    Some(RouteMatchConfig { node: path, pattern: text.to_owned(), methods, hosts, conditions })
}

/// The path of `"package.Service"` or `"package.Service/Method"` (grpc/grpc, doc/PROTOCOL-HTTP2.md, Path).
fn grpc_path(node: &DocumentNode<'_>) -> Option<String> {
    let text = node.string()?;
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_'));
    let (service, method) = match text.split_once('/') {
        Some((service, method)) => (service, Cow::Borrowed(method)),
        None => (text, Cow::Borrowed("{method}")),
    };
    if !is_name(service) || text.contains('/') && !is_name(&method) {
        node.expected("gRPC service", r#"write it as "package.Service" or "package.Service/Method""#);
        return None;
    }
    Some(format!("/{service}/{method}"))
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

fn upstreams(table: &DocumentTable<'_>, names: &RouteScope<'_>) -> Vec<WeightedUpstream> {
    if let Some(node) = table.get("upstream") {
        return weighted_upstreams(&node, &names.upstreams);
    }
    match names.upstreams.as_slice() {
        [] => {}
        [only] => return vec![WeightedUpstream { name: (*only).to_owned(), weight: 1 }],
        all => table.error("upstream missing", super::problem::one_of(all)),
    }
    Vec::new()
}

/// `sticky` and `mirror`.
fn spreading(
    table: &DocumentTable<'_>,
    names: &RouteScope<'_>,
    upstreams: &[WeightedUpstream],
) -> (Option<KeySource>, Option<MirrorRule>) {
    let (sticky_node, mirror_node) = (table.get("sticky"), table.get("mirror"));
    let sticky = sticky_node.as_ref().and_then(|node| key_source(node, true));
    if let Some(node) = sticky_node.filter(|_| upstreams.len() == 1) {
        node.warn("sticky without several upstreams has no effect", "write upstream as a list, or leave it out");
    }
    let mirror = mirror_node.as_ref().and_then(|node| traffic::mirror(node, &names.upstreams));
    if let (Some(node), Some(mirror)) = (mirror_node, &mirror)
        && upstreams.iter().any(|it| it.name == mirror.upstream)
    {
        node.warn("copies go to an upstream that the calls go to as well", "give another upstream");
    }
    (sticky, mirror)
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

/// Reports routes that match the same requests, or none.
pub(super) fn check_conflicts(parsed: &[ParsedRoute<'_>], listeners: &[&str], notes: &Diagnostics<'_>) {
    let routes: Vec<RouteConfig> = parsed.iter().map(|it| it.route.clone()).collect();
    let place = |other: usize, from: usize| notes.place(parsed[other].path.start(), parsed[from].path.start());
    for conflict in conflicts_of_listeners(&routes, listeners) {
        match conflict {
            RouteConflict::Duplicate { route, earlier, method } => {
                let path = &routes[route].path;
                let what = match method {
                    Some(method) => format!("{method} {path} has a route already"),
                    None => format!("{path} has a route already"),
                };
                let remedy =
                    format!("see {}; make them differ in path, methods, host or conditions", place(earlier, route));
                parsed[route].path.error(what, remedy);
            }
            RouteConflict::Unreachable { route, covered_by } => {
                let what = format!("the route can never match: the one of {} comes first", place(covered_by, route));
                parsed[route].path.warn(what, "make it more specific, write it before that one, or leave it out");
            }
        }
    }
}
