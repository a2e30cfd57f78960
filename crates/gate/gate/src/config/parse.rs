//! Parses a whole configuration.

use std::env;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::client_headers::client_certificate_headers;
use super::forwarding_headers::forwarding_headers;
use super::listener::{listen_address, listeners};
use super::problem::{Diagnostic, Diagnostics};
use super::proxies::networks;
use super::read::{DocumentNode, DocumentTable, NamedNode, named_nodes};
use super::route::{ParsedRoute, RouteScope, check_conflicts, route};
use super::{
    Config, PolicyConfig, Proxies, RouteAction, RouteConfig, UpstreamConfig, cluster, include, policy, upstream,
};
use weir_document::{self as document, DocumentFile};
use weir_net::path::PathRule;
use weir_server::MAX_WORKERS;

/// Parses a configuration. Files that it names are relative to `folder`, and are read as well; so are the environment
/// variables that it refers to.
///
/// # Errors
/// All errors in it, in order of position; of a text that is not TOML, the first.
pub fn parse(text: &str, folder: &Path) -> Result<Config, Vec<Diagnostic>> {
    parse_document(DocumentFile { folder: folder.to_owned(), text: text.to_owned(), ..DocumentFile::default() })
}

/// As [`parse`], of the text of a file.
///
/// # Errors
/// As of [`parse`].
pub fn parse_file(text: String, path: &Path) -> Result<Config, Vec<Diagnostic>> {
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    parse_document(DocumentFile { name: String::new(), path: fs::canonicalize(path).unwrap_or_default(), folder, text })
}

fn parse_document(first: DocumentFile) -> Result<Config, Vec<Diagnostic>> {
    let lookup = |name: &str| env::var(name);
    let (config, warnings) = document::parse_with_includes(first, &lookup, &include::find, config)?;
    Ok(Config { warnings, ..config })
}

fn config(root: &DocumentTable<'_>, notes: &Diagnostics<'_>) -> Config {
    // It has been read.
    let _ = root.get("include");
    let listen = root.get("listen").and_then(|node| listen_address(&node));
    let listeners = listeners(root);
    let admin = root.get("admin").and_then(|node| listen_address(&node));
    let workers = root.get("workers").and_then(|node| node.integer(1..=u64::from(MAX_WORKERS))).map(|n| n as usize);
    let path = |key| root.get(key).and_then(|node| builtin_path(&node));
    let (metrics, health) = (path("metrics"), path("health"));
    let pages = Config { admin: admin.clone(), metrics: metrics.clone(), health: health.clone(), ..Config::default() };
    let pages = pages.builtin_paths();
    let own = root.get("health").or_else(|| root.get("metrics"));
    if let Some(node) = own.filter(|_| !pages.metrics.is_empty() && pages.metrics == pages.health) {
        node.error(format!("metrics and health are both {:?}", pages.metrics), "give each a path of its own");
    }
    let trusted_proxies = root.get("trusted_proxies").map(|node| networks(&node)).unwrap_or_default();
    let certificate_headers =
        root.get("client_certificate_headers").and_then(|node| Some(client_certificate_headers(&node.table()?)));
    let forwarding = root.get("forwarding_headers").and_then(|node| Some(forwarding_headers(&node.table()?)));
    let path_rule = path_rule(root);

    let upstreams = root.get("upstreams");
    let of_upstreams = named_nodes(upstreams.as_ref());
    let of_policies = named_nodes(root.get("policies").as_ref());
    let upstreams: Vec<UpstreamConfig> = of_upstreams.iter().filter_map(upstream::upstream).collect();
    let policies: Vec<(&str, Option<PolicyConfig>)> = of_policies.iter().map(|it| (it.key, policy_named(it))).collect();
    let names = RouteScope {
        upstreams: of_upstreams.iter().map(|it| it.key).collect(),
        policies,
        listeners: listeners.iter().map(|it| it.name.as_str()).collect(),
        path_rule,
        has_culprits: upstreams.iter().any(|it| it.culprits.is_some()),
    };

    let routes = root.get("routes");
    let nodes = match &routes {
        Some(node) if node.is_table() => {
            node.expected("list of routes", "write its head as [[routes]]");
            Vec::new()
        }
        routes => routes.as_ref().and_then(DocumentNode::list).unwrap_or_default(),
    };
    if routes.is_none_or(|node| node.value().as_array().is_some_and(|list| list.is_empty())) {
        root.error("no route", r#"write [[routes]] with match = { path = "/{*rest}" }"#);
    }
    let routes: Vec<_> = nodes.iter().filter_map(|node| route(node, &names)).collect();
    let is_local = |it: &ParsedRoute<'_>| it.route.action != RouteAction::Forward;
    if of_upstreams.is_empty() && (routes.is_empty() || routes.len() < nodes.len() || !routes.iter().all(is_local)) {
        root.error("no upstream", r#"write [upstreams.NAME] with urls = ["http://HOST:PORT"]"#);
    }
    let cluster = root.get("cluster");
    let distributed_limits = cluster.as_ref().and_then(cluster::distributed_limits);
    root.check_unknown_keys();
    check_conflicts(&routes, &names.listeners, notes);
    if let Some(headers) = &certificate_headers {
        headers.check_routes(&routes, notes);
    }
    for it in &routes {
        if it.route.hosts.is_empty() && [&pages.metrics, &pages.health].contains(&&it.route.path) {
            it.path.warn("path of the gateway's own metrics or health", "give metrics or health another path");
        }
    }
    // A route with an error may be the one that uses an upstream or policy.
    if routes.len() == nodes.len() {
        warn_unused_upstreams(&of_upstreams, &routes, notes);
        let is_shared = |route: &RouteConfig| {
            let policy = &route.policy.policy;
            route.rate.is_some() || policy.allows_extra_attempts() && policy.budget.is_some()
        };
        if let Some(node) = cluster.filter(|_| !routes.iter().any(|parsed| is_shared(&parsed.route))) {
            node.warn("no route has a rate limit or a budget to share", "leave it out");
        }
        warn_unused_policies(&of_policies, &routes, notes);
    }
    Config {
        listen,
        listeners,
        admin,
        workers,
        metrics,
        health,
        trusted_proxies: Arc::new(Proxies::new(trusted_proxies)),
        client_certificate_headers: Arc::new(certificate_headers.unwrap_or_default()),
        forwarding_headers: Arc::new(forwarding.unwrap_or_default()),
        path_rule,
        upstreams,
        routes: routes.into_iter().map(|it| it.route).collect(),
        distributed_limits,
        warnings: Vec::new(),
    }
}

/// `merge_slashes`, `ambiguous_paths` and `path_parameters`.
fn path_rule(root: &DocumentTable<'_>) -> PathRule {
    let mut rule = PathRule::default();
    if let Some(merge) = root.get("merge_slashes").and_then(|node| node.boolean()) {
        rule.merge_slashes = merge;
    }
    if let Some(node) = root.get("ambiguous_paths") {
        rule.pass_ambiguous = node.choice(&[("reject", false), ("pass", true)]).unwrap_or_default();
    }
    if let Some(node) = root.get("path_parameters") {
        rule.pass_parameters = node.choice(&[("reject", false), ("pass", true)]).unwrap_or_default();
    }
    rule
}

fn warn_unused_upstreams(upstreams: &[NamedNode<'_>], routes: &[ParsedRoute<'_>], notes: &Diagnostics<'_>) {
    let uses = |route: &RouteConfig, name: &str| {
        route.upstreams.iter().any(|upstream| upstream.name == name)
            || route.mirror.as_ref().is_some_and(|mirror| mirror.upstream == name)
    };
    for upstream in upstreams.iter().filter(|it| !routes.iter().any(|parsed| uses(&parsed.route, it.key))) {
        notes.warning(upstream.start, &upstream.node.path, "no route uses this upstream", "leave it out");
    }
}

fn warn_unused_policies(policies: &[NamedNode<'_>], routes: &[ParsedRoute<'_>], notes: &Diagnostics<'_>) {
    for policy in policies.iter().filter(|it| !routes.iter().any(|parsed| parsed.policy.as_deref() == Some(it.key))) {
        notes.warning(policy.start, &policy.node.path, "no route uses this policy", "leave it out");
    }
}

fn policy_named(it: &NamedNode<'_>) -> Option<PolicyConfig> {
    if it.key == policy::DEFAULT_POLICY {
        let what = "\"default\" is the policy of routes without one";
        it.node.diagnostics().error(it.start, &it.node.path, what, "choose another name, and name it in the routes");
    }
    policy::policy(&it.node, it.key)
}

/// A path of the gateway's own, or "" for none.
fn builtin_path(node: &DocumentNode<'_>) -> Option<String> {
    let text = node.string()?;
    if !text.is_empty() && (!text.starts_with('/') || !super::pattern::is_path(text)) {
        node.expected("path", r#"write it as "/path", or "" for none"#);
    }
    Some(text.to_owned())
}
