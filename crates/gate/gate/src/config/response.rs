//! Deadlines in the target and custom responses, and their parser.

use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Map, Value};
use toml::de::DeValue;

use super::headers;
use super::path_capture::path_capture;
use super::read::{DocumentNode, DocumentTable};
use weir_base::Nanos;

/// A deadline that callers give in the target.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadlineFrom {
    /// Location of the deadline in the target.
    pub location: DeadlineLocation,
    /// Unit of the number.
    pub unit: Nanos,
    /// Exclusive lower bound, in units.
    pub above: u64,
    /// Response if the deadline is missing or not a whole number.
    pub invalid_response: LocalResponse,
    /// Response if the deadline is not above the bound.
    pub too_low_response: LocalResponse,
}

/// Location of a deadline in the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadlineLocation {
    /// This capture of the path.
    Path(String),
    /// This parameter of the query; the first of its name.
    Query(String),
}

/// Custom responses of a route.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseRule {
    /// Members that are added to the JSON object of a success.
    pub merge: Vec<(String, serde_json::Value)>,
    /// Response when the deadline has passed.
    pub deadline_exceeded: Option<LocalResponse>,
    /// Response when all attempts have failed; None passes the last upstream response on.
    pub failed: Option<LocalResponse>,
    /// Response to a rejected call; its status follows from the reason of the rejection.
    pub rejected: Option<LocalResponse>,
}

/// A response of the gateway's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalResponse {
    /// Status, 200 to 599.
    pub status: u16,
    /// Content-Type.
    pub content_type: HeaderValue,
    /// Body.
    pub body: Bytes,
}

/// Maximum of a lower bound, in any unit.
const MAX_DEADLINE_UNITS: u64 = 1_000_000_000_000;
const TEXT_PLAIN: &str = "text/plain; charset=utf-8";

pub(super) fn deadline_from(table: &DocumentTable<'_>, captures: &[&str]) -> Option<DeadlineFrom> {
    let (path, query) = (table.get("path"), table.get("query"));
    if path.is_some() == query.is_some() {
        table.error("a deadline has one location", r#"write path = "CAPTURE" or query = "PARAMETER""#);
    }
    let path = path.and_then(|node| path_capture(&node, captures)).map(DeadlineLocation::Path);
    let query = query.and_then(|node| {
        let name = node.string()?;
        if name.is_empty() {
            node.expected("parameter", r#"write query = "timeout""#);
        }
        Some(DeadlineLocation::Query(name.to_owned()))
    });
    let unit = table.get("unit").and_then(|node| node.choice(&[("ms", Nanos::MILLI), ("s", Nanos::SECOND)]));
    let unit = unit.unwrap_or(Nanos::MILLI);
    let above = table.get("above").and_then(|node| node.integer(0..=MAX_DEADLINE_UNITS)).unwrap_or(0);
    let location = path.or(query);
    let name = match &location {
        Some(DeadlineLocation::Path(name) | DeadlineLocation::Query(name)) => name.as_str(),
        None => "deadline",
    };
    let units = if unit == Nanos::SECOND { "seconds" } else { "milliseconds" };
    let invalid = format!("{name} must be a whole number of {units}\n");
    let too_low = format!("{name} must be above {above} {units}\n");
    let response = |key, default: String| match table.get(key) {
        Some(node) => local_response(&node, 400, &default),
        None => LocalResponse::text(400, default),
    };
    let (invalid_response, too_low_response) = (response("invalid", invalid), response("too_low", too_low));
    table.check_unknown_keys();
    Some(DeadlineFrom { location: location?, unit, above, invalid_response, too_low_response })
}

pub(super) fn response_rule(table: &DocumentTable<'_>) -> ResponseRule {
    let merge = table.get("merge").and_then(|node| node.table());
    let members = merge.map(|table| table.members()).unwrap_or_default();
    let merge = members.iter().filter_map(|it| Some((it.key.to_owned(), json_value(&it.node)?))).collect();
    let deadline_exceeded = table.get("deadline_exceeded");
    let deadline_exceeded = deadline_exceeded.map(|node| local_response(&node, 504, "the deadline has passed\n"));
    let failed = table.get("failed").map(|node| local_response(&node, 502, "all attempts failed\n"));
    let rejected = table.get("rejected").map(|node| {
        if let Some(status) = node.table().and_then(|table| table.get("status")) {
            status.error("the status of a rejection follows from its reason", "leave it out");
        }
        local_response(&node, 503, "rejected\n")
    });
    table.check_unknown_keys();
    ResponseRule { merge, deadline_exceeded, failed, rejected }
}

impl LocalResponse {
    fn text(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, content_type: HeaderValue::from_static(TEXT_PLAIN), body: body.into() }
    }
}

/// Parses `{ status = 504, content_type = "application/json", body = '{}' }`.
fn local_response(node: &DocumentNode<'_>, status: u16, line: &str) -> LocalResponse {
    local_response_with(node, status, line, |_| {})
}

/// Parses a local response with further keys, which `more` parses.
pub(super) fn local_response_with(
    node: &DocumentNode<'_>,
    status: u16,
    line: &str,
    more: impl FnOnce(&DocumentTable<'_>),
) -> LocalResponse {
    let mut read = LocalResponse::text(status, line.to_owned());
    let Some(table) = node.table() else { return read };
    if let Some(status) = table.get("status").and_then(|node| node.integer(200..=599)) {
        read.status = u16::try_from(status).unwrap_or(read.status);
    }
    let bodyless = matches!(read.status, 204 | 205 | 304);
    if bodyless {
        read.body = Bytes::new();
    }
    let content_type = table.get("content_type");
    let body = table.get("body");
    more(&table);
    table.check_unknown_keys();
    if let (Some(node), None) = (&content_type, &body) {
        node.error("content_type without a body", "give body, too");
    }
    if let Some(value) = content_type.and_then(|node| headers::value(&node, node.string()?)) {
        read.content_type = value;
    }
    if let Some((node, text)) = body.and_then(|node| Some((node.clone(), node.string()?))) {
        if bodyless && !text.is_empty() {
            node.error(format!("a response with status {} has no body", read.status), "leave it out");
        }
        let json = read.content_type.as_bytes().starts_with(b"application/json");
        if json && serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
            node.warn("content_type is application/json, and this is not JSON", r#"write it as '{"message":"ERROR"}'"#);
        }
        read.body = Bytes::copy_from_slice(text.as_bytes());
    }
    read
}

/// A TOML value as JSON.
fn json_value(node: &DocumentNode<'_>) -> Option<Value> {
    let value = match node.value() {
        DeValue::String(text) => Some(Value::from(text.as_ref())),
        DeValue::Boolean(yes) => Some(Value::from(*yes)),
        DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(Value::from),
        DeValue::Float(n) => n.as_str().parse().ok().and_then(serde_json::Number::from_f64).map(Value::Number),
        DeValue::Datetime(_) => None,
        DeValue::Array(_) => return node.list()?.iter().map(json_value).collect::<Option<Vec<_>>>().map(Value::Array),
        DeValue::Table(_) => {
            let members = node.table()?.members();
            let member = |it: &super::read::NamedNode<'_>| Some((it.key.to_owned(), json_value(&it.node)?));
            return members.iter().map(member).collect::<Option<Map<_, _>>>().map(Value::Object);
        }
    };
    if value.is_none() {
        node.expected("JSON value", "write a string, a number, a boolean, a list or a table");
    }
    value
}
