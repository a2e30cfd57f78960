//! Parses names and values of headers.

use http::{HeaderName, HeaderValue};

use super::read::DocumentNode;
use super::units::KNOWN_DEADLINE_HEADERS;
use weir_base::connection_fields::CONNECTION_FIELDS;
use weir_retry::deadline::DeadlineFormat;

/// Parses `{ name = "value" }`.
pub(super) fn pairs(node: &DocumentNode<'_>) -> Vec<(HeaderName, HeaderValue)> {
    let Some(table) = node.table() else { return Vec::new() };
    let mut pairs = Vec::new();
    for member in table.members() {
        let name = HeaderName::from_bytes(member.key.as_bytes()).ok();
        if name.is_none() {
            node.diagnostics().error(member.start, &member.node.path, "invalid header name", r#"write it as "x-name""#);
        }
        let value = member.node.string().and_then(|text| value(&member.node, text));
        pairs.extend(name.zip(value));
    }
    pairs
}

/// Parses the value of a header.
pub(super) fn value(node: &DocumentNode<'_>, text: &str) -> Option<HeaderValue> {
    let value = HeaderValue::from_str(text).ok().filter(|_| text.trim() == text);
    if value.is_none() {
        node.expected("header value", "write one line without spaces around it");
    }
    value
}

/// Parses `["name"]`.
pub(super) fn names(node: &DocumentNode<'_>) -> Vec<HeaderName> {
    let list = node.list().unwrap_or_default();
    list.iter().filter_map(|node| name(node, node.string()?)).collect()
}

pub(super) fn name(node: &DocumentNode<'_>, text: &str) -> Option<HeaderName> {
    let name = HeaderName::from_bytes(text.as_bytes()).ok();
    if name.is_none() {
        node.expected("header name", r#"write it as "x-name""#);
    }
    name
}

/// Reports headers that the gateway itself writes.
pub(super) fn check_reserved<'n>(node: &DocumentNode<'_>, names: impl Iterator<Item = &'n HeaderName>, request: bool) {
    for name in names {
        if CONNECTION_FIELDS.contains(&name.as_str()) {
            node.error(format!("\"{name}\" belongs to the connection"), "leave it out: the gateway writes it");
        } else if request && name == "host" {
            node.error("\"host\" has a key of its own", "write rewrite.host");
        }
    }
}

/// The default deadline headers: `grpc-timeout` and Envoy's.
pub(super) fn default_deadlines() -> Vec<(HeaderName, DeadlineFormat)> {
    let known = |(name, format): &(&'static str, DeadlineFormat)| (HeaderName::from_static(name), *format);
    KNOWN_DEADLINE_HEADERS.iter().take(2).map(known).collect()
}

/// Parses `["grpc-timeout", { name = "x-budget", format = "ms" }]`.
pub(super) fn deadlines(node: &DocumentNode<'_>) -> Vec<(HeaderName, DeadlineFormat)> {
    let mut all: Vec<(HeaderName, DeadlineFormat)> = Vec::new();
    for node in node.list().unwrap_or_default() {
        let Some(read) = deadline(&node) else { continue };
        if all.iter().any(|(name, _)| *name == read.0) {
            node.error(format!("duplicate \"{}\"", read.0), "leave one out");
        }
        all.push(read);
    }
    all
}

fn deadline(node: &DocumentNode<'_>) -> Option<(HeaderName, DeadlineFormat)> {
    const DEADLINE_FORMATS: [(&str, DeadlineFormat); 3] =
        [("ms", DeadlineFormat::Millis), ("s", DeadlineFormat::Seconds), ("grpc", DeadlineFormat::Grpc)];
    if !node.is_table() {
        let name = name(node, node.string()?)?;
        let known = KNOWN_DEADLINE_HEADERS.iter().find(|(known, _)| name == *known);
        if known.is_none() {
            let remedy = format!("write it as {{ name = \"{name}\", format = \"ms\" }}, or \"s\", or \"grpc\"");
            node.error(format!("\"{name}\" has no built-in format"), remedy);
        }
        return Some((name, known?.1));
    }
    let table = node.table()?;
    let (of, format) = (table.get("name"), table.get("format"));
    table.check_unknown_keys();
    if of.is_none() || format.is_none() {
        table.error("name or format missing", r#"write it as { name = "x-budget", format = "ms" }"#);
    }
    let of = of.and_then(|node| name(&node, node.string()?));
    let format = format.and_then(|node| node.choice(&DEADLINE_FORMATS));
    Some((of?, format?))
}
