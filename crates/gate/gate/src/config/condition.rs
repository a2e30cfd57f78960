//! Conditions of a route on headers, cookies and the query.

use std::fmt;

use http::{HeaderName, header};
use regex::Regex;

use super::read::{DocumentNode, DocumentTable};
use super::{headers, pattern};
use weir_base::fault::Fault;

/// Condition of a route on one value of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The value.
    pub source: ConditionSource,
    /// Test of the value.
    pub test: ValueCondition,
}

/// Value that a condition is about. With several values of one name, one has to pass the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionSource {
    /// Lines of this header.
    Header(HeaderName),
    /// Cookies of this name.
    Cookie(String),
    /// Parameters of this name, decoded.
    Query(String),
    /// The Content-Type, which has to be gRPC's.
    Grpc,
}

/// Test of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueCondition {
    /// Any value.
    Present,
    /// No value.
    Absent,
    /// One of these values.
    OneOf(Vec<String>),
    /// A value that matches as a whole.
    Matches(ValuePattern),
}

/// A regular expression for a whole value; equal if its text is.
#[derive(Clone, Debug)]
pub struct ValuePattern {
    text: String,
    regex: Regex,
}

impl ValuePattern {
    /// Compiles an expression.
    ///
    /// # Errors
    /// The fault of the expression.
    pub fn new(text: &str) -> Result<Self, Fault> {
        // Alone first: the error is then about what the user wrote, and it cannot leave its group.
        pattern::compile(text)?;
        Ok(Self { text: text.to_owned(), regex: pattern::compile(&format!("^(?:{text})$"))? })
    }

    /// Whether the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl PartialEq for ValuePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for ValuePattern {}

impl fmt::Display for Condition {
    /// Notation within a route's name in metrics and logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.test == ValueCondition::Absent {
            f.write_str("!")?;
        }
        match &self.source {
            ConditionSource::Header(name) => write!(f, "{name}")?,
            ConditionSource::Cookie(name) => write!(f, "cookie:{name}")?,
            ConditionSource::Query(name) => write!(f, "?{name}")?,
            ConditionSource::Grpc => return f.write_str("grpc"),
        }
        match &self.test {
            ValueCondition::Present | ValueCondition::Absent => Ok(()),
            ValueCondition::OneOf(values) => write!(f, "={}", values.join("|")),
            ValueCondition::Matches(expression) => write!(f, "~{}", expression.text),
        }
    }
}

/// Parses `headers`, `cookies` and `query` of a route's `match`.
pub(super) fn conditions(table: &DocumentTable<'_>) -> Vec<Condition> {
    let mut all = Vec::new();
    all.extend(members(table, "headers", |node, name| {
        let name = headers::name(node, name)?;
        if name == header::HOST {
            node.error("\"host\" has a key of its own", "write match.host");
        }
        Some(ConditionSource::Header(name))
    }));
    all.extend(members(table, "cookies", |node, name| {
        // RFC 6265, 4.1.1: a cookie's name is a token.
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            node.error(format!("invalid cookie name {name:?}"), "write letters, digits, \"-\" and \"_\"");
        }
        Some(ConditionSource::Cookie(name.to_owned()))
    }));
    all.extend(members(table, "query", |_, name| Some(ConditionSource::Query(name.to_owned()))));
    all
}

fn members(
    table: &DocumentTable<'_>,
    key: &'static str,
    source: impl Fn(&DocumentNode<'_>, &str) -> Option<ConditionSource>,
) -> Vec<Condition> {
    let Some(node) = table.get(key) else { return Vec::new() };
    let Some(inner) = node.table() else { return Vec::new() };
    let members = inner.members();
    if members.is_empty() {
        inner.error("empty table", r#"write it as { name = "value" }, or leave it out"#);
    }
    let mut all: Vec<Condition> = Vec::new();
    for it in &members {
        let (Some(source), Some(test)) = (source(&it.node, it.key), value_test(&it.node)) else { continue };
        if all.iter().any(|known| known.source == source) {
            it.node.error(format!("duplicate \"{}\"", it.key), "leave one out");
        }
        all.push(Condition { source, test });
    }
    all
}

/// Parses a value, a list of values, true, false or `{ regex = "..." }`.
fn value_test(node: &DocumentNode<'_>) -> Option<ValueCondition> {
    if let Some(present) = node.value().as_bool() {
        return Some(if present { ValueCondition::Present } else { ValueCondition::Absent });
    }
    if node.is_string() {
        return Some(ValueCondition::OneOf(vec![node.string()?.to_owned()]));
    }
    if node.is_table() {
        let table = node.table()?;
        let expression = table.get("regex");
        table.check_unknown_keys();
        let Some(expression) = expression else {
            table.error("regex missing", r#"write it as { regex = "v[0-9]+" }"#);
            return None;
        };
        let compiled = ValuePattern::new(expression.string()?);
        let compiled = compiled.map_err(|Fault { what, remedy }| expression.error(what, remedy));
        return compiled.ok().map(ValueCondition::Matches);
    }
    if node.value().is_array() {
        let list = node.list()?;
        if list.is_empty() {
            node.error("empty list", r#"write it as ["a", "b"], or true for any value"#);
        }
        return Some(ValueCondition::OneOf(list.iter().filter_map(|it| it.string().map(str::to_owned)).collect()));
    }
    node.expected(
        "condition",
        r#"write a value, a list of values, true for any, false for none, or { regex = "v[0-9]+" }"#,
    );
    None
}
