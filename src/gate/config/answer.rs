//! Reads what a route answers by itself: deadlines in the target, and answers of the gate's own.

use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Map, Value};
use toml::de::DeValue;

use super::problem::meant;
use super::read::{Node, Table};
use super::{AnswerRule, DeadlineFrom, DeadlinePlace, OwnAnswer, headers};
use crate::decide::Nanos;

/// Of any unit.
const MOST: u64 = 1_000_000_000_000;
const PLAIN: &str = "text/plain; charset=utf-8";

pub(super) fn deadline_from(table: &Table<'_>, captures: &[&str]) -> Option<DeadlineFrom> {
    let (path, query) = (table.get("path"), table.get("query"));
    if path.is_some() == query.is_some() {
        table.wrong("the deadline has one place", r#"write path = "CAPTURE" or query = "PARAMETER""#);
    }
    let path = path.and_then(|node| {
        let name = node.string()?;
        if !captures.contains(&name) {
            let remedy = match captures {
                [] => "write it into the route's path, as {name}".to_owned(),
                _ => meant(name, captures),
            };
            node.wrong(format!("the route's path has no capture {{{name}}}"), remedy);
        }
        Some(DeadlinePlace::Path(name.to_owned()))
    });
    let query = query.and_then(|node| {
        let name = node.string()?;
        if name.is_empty() {
            node.is_no("parameter", r#"write query = "timeout""#);
        }
        Some(DeadlinePlace::Query(name.to_owned()))
    });
    let unit = table.get("unit").and_then(|node| node.choice(&[("ms", Nanos::MILLI), ("s", Nanos::SECOND)]));
    let unit = unit.unwrap_or(Nanos::MILLI);
    let above = table.get("above").and_then(|node| node.whole(0..=MOST)).unwrap_or(0);
    let place = path.or(query);
    let name = match &place {
        Some(DeadlinePlace::Path(name) | DeadlinePlace::Query(name)) => name.as_str(),
        None => "deadline",
    };
    let units = if unit == Nanos::SECOND { "seconds" } else { "milliseconds" };
    let bad = format!("{name} has to be a whole number of {units}\n");
    let low = format!("{name} has to be above {above} {units}\n");
    let own = |key, default: String| match table.get(key) {
        Some(node) => own(&node, 400, &default),
        None => OwnAnswer::plain(400, default),
    };
    let (bad, low) = (own("bad", bad), own("low", low));
    table.close();
    Some(DeadlineFrom { place: place?, unit, above, bad, low })
}

pub(super) fn answer(table: &Table<'_>) -> AnswerRule {
    let merge = table.get("merge").and_then(|node| node.table());
    let members = merge.map(|table| table.members()).unwrap_or_default();
    let merge = members.iter().filter_map(|it| Some((it.key.to_owned(), json(&it.node)?))).collect();
    let late = table.get("late").map(|node| own(&node, 504, "the deadline has come\n"));
    let failed = table.get("failed").map(|node| own(&node, 502, "all attempts have failed\n"));
    let refused = table.get("refused").map(|node| {
        if let Some(status) = node.table().and_then(|table| table.get("status")) {
            status.wrong("a refusal has the status of its reason", "leave it out");
        }
        own(&node, 503, "too much load\n")
    });
    table.close();
    AnswerRule { merge, late, failed, refused }
}

impl OwnAnswer {
    fn plain(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, content_type: HeaderValue::from_static(PLAIN), body: body.into() }
    }
}

/// Reads `{ status = 504, type = "application/json", body = '{}' }`.
fn own(node: &Node<'_>, status: u16, line: &str) -> OwnAnswer {
    let mut read = OwnAnswer::plain(status, line.to_owned());
    let Some(table) = node.table() else { return read };
    if let Some(status) = table.get("status").and_then(|node| node.whole(200..=599)) {
        read.status = u16::try_from(status).unwrap_or(read.status);
    }
    let bodyless = matches!(read.status, 204 | 205 | 304);
    if bodyless {
        read.body = Bytes::new();
    }
    let kind = table.get("type");
    let body = table.get("body");
    table.close();
    if let (Some(kind), None) = (&kind, &body) {
        kind.wrong("the type of which body?", "give body, too");
    }
    if let Some(kind) = kind.and_then(|node| headers::value(&node, node.string()?)) {
        read.content_type = kind;
    }
    if let Some((node, text)) = body.and_then(|node| Some((node.clone(), node.string()?))) {
        if bodyless && !text.is_empty() {
            node.wrong(format!("an answer with status {} has no body", read.status), "leave it out");
        }
        let json = read.content_type.as_bytes().starts_with(b"application/json");
        if json && serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
            node.odd("its type is application/json, and it is no JSON", r#"write it as '{"message":"ERROR"}'"#);
        }
        read.body = Bytes::copy_from_slice(text.as_bytes());
    }
    read
}

/// A TOML value as JSON.
fn json(node: &Node<'_>) -> Option<Value> {
    let value = match node.value() {
        DeValue::String(text) => Some(Value::from(text.as_ref())),
        DeValue::Boolean(yes) => Some(Value::from(*yes)),
        DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(Value::from),
        DeValue::Float(n) => n.as_str().parse().ok().and_then(serde_json::Number::from_f64).map(Value::Number),
        DeValue::Datetime(_) => None,
        DeValue::Array(_) => return node.list()?.iter().map(json).collect::<Option<Vec<_>>>().map(Value::Array),
        DeValue::Table(_) => {
            let members = node.table()?.members();
            let member = |it: &super::read::Named<'_>| Some((it.key.to_owned(), json(&it.node)?));
            return members.iter().map(member).collect::<Option<Map<_, _>>>().map(Value::Object);
        }
    };
    if value.is_none() {
        node.is_no("value of JSON", "write a string, a number, a boolean, a list or a table");
    }
    value
}
