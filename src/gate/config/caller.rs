//! Reads who calls on a route, how much each may, and how much a call matters.

use super::headers;
use super::problem::meant;
use super::read::{Node, Table};
use super::{CallerFrom, PriorityRule, words};
use crate::decide::admit::Priority;
use crate::decide::callers::CallerRule;

/// What a route says of its callers.
#[derive(Debug)]
pub(super) struct Callers {
    pub(super) priority: PriorityRule,
    pub(super) caller: Option<CallerFrom>,
    pub(super) rate: Option<CallerRule>,
}

pub(super) fn callers(table: &Table<'_>, captures: &[&str]) -> Callers {
    let (said, from) = (table.get("priority"), table.get("priority_from"));
    let mut priority = PriorityRule::default();
    if let Some(level) = said.as_ref().and_then(level) {
        priority.otherwise = level;
    }
    if let Some(of) = from.as_ref().and_then(Node::table) {
        priority = claimed(&of);
    }
    if let (Some(node), Some(_)) = (&said, &from) {
        node.wrong("priority_from says it, too", "leave it out, and write otherwise in priority_from");
    }
    let (who, rate) = (table.get("caller"), table.get("rate"));
    let caller = who.as_ref().and_then(|node| caller(node, captures));
    let read = rate.as_ref().and_then(self::rate);
    if let (None, Some(node)) = (&who, &rate) {
        node.wrong(
            "whose rate is it?",
            r#"give caller, too: "address", { header = "x-api-key" } or { path = "NAME" }"#,
        );
    }
    if let (Some(node), None, None) = (&who, &rate, &from) {
        node.odd("nothing is done with it", "give rate or priority_from, too");
    }
    Callers { priority, caller, rate: read }
}

fn level(node: &Node<'_>) -> Option<Priority> {
    node.choice(&Priority::ALL.map(|priority| (priority.name(), priority)))
}

/// Reads `{ header = "x-priority", values = { gold = "critical" }, otherwise = "normal" }`.
fn claimed(table: &Table<'_>) -> PriorityRule {
    let mut rule = PriorityRule::default();
    match table.get("header") {
        Some(node) => rule.header = node.string().and_then(|text| headers::name(&node, text)),
        None => table.wrong("it has no header", r#"write header = "x-priority""#),
    }
    rule.values = match table.get("values").and_then(|node| node.table()) {
        Some(values) => {
            let named = values.members();
            if named.is_empty() {
                values.wrong("there is no value in it", r#"write it as { gold = "critical" }, or leave it out"#);
            }
            named.iter().filter_map(|it| Some((it.key.to_owned(), level(&it.node)?))).collect()
        }
        // The priorities' own names.
        None => Priority::ALL.iter().map(|priority| (priority.name().to_owned(), *priority)).collect(),
    };
    if let Some(level) = table.get("otherwise").as_ref().and_then(level) {
        rule.otherwise = level;
    }
    table.close();
    rule
}

/// Reads `"address"`, `{ header = "x-api-key" }` or `{ path = "tenant" }`.
fn caller(node: &Node<'_>, captures: &[&str]) -> Option<CallerFrom> {
    if !node.is_table() {
        return node.choice(&[("address", ())]).map(|()| CallerFrom::Address);
    }
    let table = node.table()?;
    let (header, path) = (table.get("header"), table.get("path"));
    table.close();
    if header.is_some() == path.is_some() {
        table.wrong("a caller is known by one thing", r#"write header = "x-api-key", or path = "CAPTURE""#);
        return None;
    }
    if let Some(node) = header {
        return headers::name(&node, node.string()?).map(CallerFrom::Header);
    }
    let node = path?;
    let name = node.string()?;
    if !captures.contains(&name) {
        let remedy = match captures {
            [] => "write it into the route's path, as {name}".to_owned(),
            _ => meant(name, captures),
        };
        node.wrong(format!("the route's path has no capture {{{name}}}"), remedy);
    }
    Some(CallerFrom::Path(name.to_owned()))
}

/// Reads `"100/1s"`, or `{ limit = "100/1s", burst = 200, callers = 65536 }`.
fn rate(node: &Node<'_>) -> Option<CallerRule> {
    const REMEDY: &str = r#"write it as "100/1s": so many calls in such a time"#;
    let read = |node: &Node<'_>| {
        let read = node.value().as_str().and_then(words::rate).map(|(limit, per)| CallerRule::new(limit, per));
        if read.is_none() {
            node.is_no("rate", REMEDY);
        }
        read
    };
    let rule = if node.is_table() {
        let table = node.table()?;
        let limit = table.get("limit");
        if limit.is_none() {
            table.wrong("it has no limit", r#"write limit = "100/1s""#);
        }
        let mut rule = limit.as_ref().and_then(read);
        let burst = table.get("burst").and_then(|node| node.whole(1..=1_000_000));
        let callers = table.get("callers").and_then(|node| node.whole(1..=CallerRule::MOST_ENTRIES as u64));
        table.close();
        if let Some(rule) = &mut rule {
            rule.burst = burst.unwrap_or(rule.burst);
            rule.entries = callers.map_or(rule.entries, |number| number as usize);
        }
        rule
    } else {
        read(node)
    }?;
    if let Some((what, remedy)) = rule.fault() {
        node.wrong(what, remedy);
    }
    Some(rule)
}
