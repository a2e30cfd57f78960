//! Parses a route's `rewrite`.

use http::HeaderValue;
use http::uri::Authority;

use super::read::{DocumentNode, DocumentTable};
use super::{HostRule, QueryRule, Rewrite, headers, pattern};
use weir_base::fault::Fault;
use weir_net::path::{PathRule, is_normal_template};

pub(super) fn rewrite(table: &DocumentTable<'_>, captures: &[&str], paths: PathRule) -> Rewrite {
    let mut read = Rewrite::default();
    if let Some(node) = table.get("path") {
        read.path = path(&node, captures, paths);
    }
    if let Some(node) = table.get("query") {
        read.query = query(&node, captures).unwrap_or_default();
    }
    if let Some(node) = table.get("host") {
        read.host = host(&node).unwrap_or_default();
    }
    let pairs = |key, request| {
        let Some(node) = table.get(key) else { return Vec::new() };
        let pairs = headers::pairs(&node);
        headers::check_reserved(&node, pairs.iter().map(|(name, _)| name), request);
        pairs
    };
    (read.set, read.response_set) = (pairs("set", true), pairs("response_set", false));
    (read.add, read.response_add) = (pairs("add", true), pairs("response_add", false));
    let names = |key, request| {
        let Some(node) = table.get(key) else { return Vec::new() };
        let names = headers::names(&node);
        headers::check_reserved(&node, names.iter(), request);
        names
    };
    (read.remove, read.response_remove) = (names("remove", true), names("response_remove", false));
    table.check_unknown_keys();
    read
}

pub(super) fn path(node: &DocumentNode<'_>, captures: &[&str], paths: PathRule) -> Option<String> {
    let text = node.string()?;
    if !text.starts_with('/') || !pattern::is_path(text) {
        node.expected("path", r#"write it as "/v2/{rest}""#);
    } else if let Err(Fault { what, remedy }) = pattern::check_template(text, captures) {
        node.error(format!("{} {what}", node.display()), remedy);
    } else if !is_normal_template(text, paths) {
        let what = format!("{} is not in normal form", node.display());
        node.error(what, "write no \"//\", no dot segments, letters and digits unescaped, and escapes in capitals");
    }
    Some(text.to_owned())
}

pub(super) fn query(node: &DocumentNode<'_>, captures: &[&str]) -> Option<QueryRule> {
    let text = node.string()?;
    match text {
        "keep" => return Some(QueryRule::Keep),
        "drop" => return Some(QueryRule::Drop),
        _ => {}
    }
    if !text.contains('=') || text.starts_with('?') || !pattern::is_target(text) {
        node.expected("query", r#"write "keep", "drop", or one such as "a={rest}&b=1""#);
    } else if let Err(Fault { what, remedy }) = pattern::check_template(text, captures) {
        node.error(format!("{} {what}", node.display()), remedy);
    }
    Some(QueryRule::Set(text.to_owned()))
}

fn host(node: &DocumentNode<'_>) -> Option<HostRule> {
    let text = node.string()?;
    match text {
        "keep" => return Some(HostRule::Keep),
        "upstream" => return Some(HostRule::Upstream),
        _ => {}
    }
    let value = HeaderValue::from_str(text).ok().filter(|_| is_authority(text));
    if value.is_none() {
        node.expected("host", r#"write "keep", "upstream", or a name such as "example.org""#);
    }
    value.map(HostRule::Set)
}

/// Whether the text is a host, with a port or without.
pub(super) fn is_authority(text: &str) -> bool {
    let Ok(authority) = text.parse::<Authority>() else { return false };
    // The http crate reads "host:" and "host:99999" as hosts without a port.
    let port = text.strip_prefix(authority.host());
    let port_ok = port == Some("") || authority.port_u16().is_some();
    !authority.host().is_empty() && !text.contains('@') && port_ok
}
