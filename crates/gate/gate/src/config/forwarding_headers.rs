//! Parses `forwarding_headers`: exceptions from the list of headers that only trusted proxies may send.

use http::HeaderName;

use super::headers;
use super::read::{DocumentNode, DocumentTable};
use crate::forwarding_names::{has_same_spelling, is_forwarding_header};

/// Exceptions from the headers with a caller's address, host or path that are removed unless a trusted proxy sends them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardingHeaders {
    /// Headers that are passed on from all callers.
    pub keep: Vec<HeaderName>,
    /// Further headers that are removed.
    pub remove: Vec<HeaderName>,
}

/// Parses `{ keep = ["cf-connecting-ip"], remove = ["x-own-ip"] }`.
pub(super) fn forwarding_headers(table: &DocumentTable<'_>) -> ForwardingHeaders {
    let (keep, remove) = (table.get("keep"), table.get("remove"));
    table.check_unknown_keys();
    ForwardingHeaders {
        keep: keep.map(|node| names(&node, kept_problem)).unwrap_or_default(),
        remove: remove.map(|node| names(&node, removed_problem)).unwrap_or_default(),
    }
}

fn names(node: &DocumentNode<'_>, problem: fn(&str) -> Option<(&'static str, &'static str)>) -> Vec<HeaderName> {
    let mut names = Vec::new();
    for node in node.list().unwrap_or_default() {
        let Some(name) = node.string().and_then(|text| headers::name(&node, text)) else { continue };
        headers::check_reserved(&node, std::iter::once(&name), false);
        if let Some((what, remedy)) = problem(name.as_str()) {
            node.error(format!("\"{name}\" {what}"), remedy);
        }
        names.push(name);
    }
    names
}

fn kept_problem(name: &str) -> Option<(&'static str, &'static str)> {
    const WRITTEN: [&str; 3] = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];
    if WRITTEN.into_iter().any(|known| has_same_spelling(name, known)) {
        return Some(("is written by the gateway", "list the proxies that set it in trusted_proxies"));
    }
    (!is_forwarding_header(name)).then_some(("is passed on anyway", "leave it out"))
}

fn removed_problem(name: &str) -> Option<(&'static str, &'static str)> {
    const NEEDED: [&str; 3] = ["host", "content-type", "authorization"];
    if NEEDED.into_iter().any(|known| has_same_spelling(name, known)) {
        return Some(("is not a forwarding header", "leave it out"));
    }
    is_forwarding_header(name).then_some(("is removed anyway", "leave it out"))
}
