//! Parses routes that the gateway answers itself: `respond` and `redirect`.

use http::HeaderValue;
use http::header::HeaderName;

use super::read::{DocumentNode, DocumentTable};
use super::rewrite::{self, is_authority};
use super::{LocalResponse, QueryRule, headers, response};
use weir_net::path::PathRule;

/// Handling of a route's requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RouteAction {
    /// Calls to an upstream.
    #[default]
    Forward,
    /// A fixed response for all.
    Respond(FixedReply),
    /// A redirect.
    Redirect(RedirectRule),
}

/// A fixed response with headers.
#[derive(Clone, Debug, PartialEq)]
pub struct FixedReply {
    /// Status, type and body.
    pub response: LocalResponse,
    /// Further headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// A redirect to another place. What it does not name is the request's.
#[derive(Clone, Debug, PartialEq)]
pub struct RedirectRule {
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
    /// Scheme; None for the request's.
    pub scheme: Option<String>,
    /// Host, possibly with a port; None for the request's.
    pub host: Option<String>,
    /// Path, with `{name}` for captures; None for the request's.
    pub path: Option<String>,
    /// Query.
    pub query: QueryRule,
}

/// Keys of a route that are about its upstream request.
const FORWARD_KEYS: [&str; 15] = [
    "upstream",
    "policy",
    "rewrite",
    "deadline_from",
    "response",
    "max_in_flight",
    "max_queue",
    "priority",
    "priority_from",
    "caller",
    "rate_limit",
    "max_body",
    "sticky",
    "mirror",
    "upgrades",
];

/// Parses `respond` and `redirect`. Keys that would have no effect are errors.
pub(super) fn action(table: &DocumentTable<'_>, captures: &[&str], paths: PathRule) -> RouteAction {
    let (respond, redirect) = (table.get("respond"), table.get("redirect"));
    let (key, action) = match (&respond, &redirect) {
        (None, None) => return RouteAction::Forward,
        (Some(node), None) => ("respond", RouteAction::Respond(fixed_response(node))),
        (None, Some(node)) => ("redirect", RouteAction::Redirect(redirect_rule(node, captures, paths))),
        (Some(_), Some(node)) => {
            node.error("respond and redirect exclude each other", "leave one out");
            return RouteAction::Forward;
        }
    };
    for node in FORWARD_KEYS.into_iter().filter_map(|key| table.get(key)) {
        node.error(format!("the route has {key}, and sends nothing upstream"), format!("leave out this, or {key}"));
    }
    action
}

/// Parses `{ status = 200, content_type = "text/plain", body = "ok\n", headers = { ... } }`.
fn fixed_response(node: &DocumentNode<'_>) -> FixedReply {
    let mut own = Vec::new();
    let response = response::local_response_with(node, 200, "", |table| {
        let Some(node) = table.get("headers") else { return };
        own = headers::pairs(&node);
        headers::check_reserved(&node, own.iter().map(|(name, _)| name), false);
        if own.iter().any(|(name, _)| name == http::header::CONTENT_TYPE) {
            node.error("\"content-type\" has a key of its own", "write content_type");
        }
    });
    FixedReply { response, headers: own }
}

/// Parses `{ status = 308, scheme = "https", host = "example.org", path = "/new/{rest}", query = "drop" }`.
fn redirect_rule(node: &DocumentNode<'_>, captures: &[&str], paths: PathRule) -> RedirectRule {
    const REDIRECT_STATUSES: [u16; 5] = [301, 302, 303, 307, 308];
    let mut rule = RedirectRule { status: 307, scheme: None, host: None, path: None, query: QueryRule::Keep };
    let Some(table) = node.table() else { return rule };
    let (scheme, host, path) = (table.get("scheme"), table.get("host"), table.get("path"));
    let (query, status) = (table.get("query"), table.get("status"));
    table.check_unknown_keys();
    if scheme.is_none() && host.is_none() && path.is_none() {
        table.error("a redirect to the request's own URL", r#"give scheme, host or path, e.g. path = "/new/{rest}""#);
    }
    if let Some(node) = status
        && let Some(status) = node.integer(300..=399)
    {
        match REDIRECT_STATUSES.into_iter().find(|known| u64::from(*known) == status) {
            Some(status) => rule.status = status,
            None => node.expected("status of a redirect", "write 301, 302, 303, 307 or 308"),
        }
    }
    rule.scheme = scheme.and_then(|node| node.choice(&[("http", "http"), ("https", "https")])).map(str::to_owned);
    rule.host = host.and_then(|node| {
        let text = node.string()?;
        if !is_authority(text) {
            node.expected("host", r#"write a name such as "example.org" or "example.org:8443""#);
        }
        Some(text.to_owned())
    });
    rule.path = path.and_then(|node| rewrite::path(&node, captures, paths));
    rule.query = query.and_then(|node| rewrite::query(&node, captures)).unwrap_or_default();
    rule
}
