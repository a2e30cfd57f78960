//! Values of schemas: examples first, then what the schema allows.

use std::collections::{BTreeSet, HashSet};

use super::description::{ApiDescription, MAX_ALL_VALUES};
use super::style::ParameterValue;
use super::{number, pattern};
use crate::builder;
use crate::omission::OmissionKind;
use crate::request::ImportedStep;
use crate::session::ImportSession;
use crate::tree::{SourceNode, SourceValue, parse_json};

/// Schemas within one another that get a value.
const MAX_DEPTH: usize = 8;

/// Values of one example, at most.
const MAX_VALUES: usize = 500;

/// Values of one example at most, once all together have many.
const MAX_LATE_VALUES: usize = 5;

/// Items of an array and properties of an object that a lower bound asks for, at most.
const MAX_ITEMS: f64 = 100.0;

/// Characters of a text, at most.
const MAX_CHARS: f64 = 4096.0;

/// Words for texts that nothing describes.
const WORDS: [&str; 12] =
    ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "iris", "juniper", "larch", "meadow"];

/// Maker of values of schemas.
#[derive(Debug)]
pub(super) struct ExampleMaker<'a> {
    description: &'a ApiDescription<'a>,
    values: usize,
    /// Constraints of schemas that made-up values violate, in words.
    problems: BTreeSet<String>,
}

impl<'a> ExampleMaker<'a> {
    pub(super) fn new(description: &'a ApiDescription<'a>) -> Self {
        Self { description, values: 0, problems: BTreeSet::new() }
    }

    /// JSON value of a schema.
    pub(super) fn json(&mut self, schema: &'a SourceNode<'a>) -> String {
        self.value(schema, "", 0)
    }

    /// JSON value of a property.
    pub(super) fn json_of(&mut self, schema: &'a SourceNode<'a>, name: &str) -> String {
        self.value(schema, name, 0)
    }

    /// Value of a schema as a parameter has it.
    pub(super) fn parameter(&mut self, schema: &'a SourceNode<'a>, name: &str) -> ParameterValue {
        let json = self.value(schema, name, 0);
        parse_json(&json).map_or(ParameterValue::Scalar(json.clone()), |node| ParameterValue::of_node(&node))
    }

    /// Value of a schema as a text.
    pub(super) fn text(&mut self, schema: &'a SourceNode<'a>, name: &str) -> String {
        let json = self.value(schema, name, 0);
        parse_json(&json).ok().and_then(|node| node.scalar()).unwrap_or(json)
    }

    /// Lists what values do not keep of their schemas.
    pub(super) fn omit_problems(self, line: u32, step: &mut ImportedStep, session: &mut ImportSession) {
        for problem in self.problems {
            builder::omit_at(step, line, OmissionKind::Body, &problem, session);
        }
    }

    fn add_problem(&mut self, name: &str, what: &str) {
        let gap = if name.is_empty() { "" } else { " of " };
        self.problems.insert(format!("{what}{gap}{name}, which a made-up value does not keep"));
    }

    /// Members of an object's schema, with their schemas, those of `allOf` included.
    pub(super) fn members(&mut self, schema: &'a SourceNode<'a>) -> Vec<(String, &'a SourceNode<'a>)> {
        let mut found = MemberList::default();
        self.add_members(schema, &mut found, 0);
        if found.is_cut {
            self.add_cut("members");
        }
        found.members
    }

    fn max_values(&self) -> usize {
        if self.description.has_values_left() { MAX_VALUES } else { MAX_LATE_VALUES }
    }

    /// Lists that a made-up value is shorter than its schema.
    fn add_cut(&mut self, what: &str) {
        let late = match self.description.has_values_left() {
            true => String::new(),
            false => format!(", since all of the file have {MAX_ALL_VALUES} already"),
        };
        self.problems.insert(format!("{what} beyond the first {} of a made-up value{late}", self.max_values()));
    }

    fn add_members(&self, schema: &'a SourceNode<'a>, found: &mut MemberList<'a>, depth: usize) {
        let schema = self.description.resolve(schema);
        // Schemas may have one another in all directions.
        let is_new = found.visited.insert(std::ptr::from_ref(schema).addr());
        let max_values = self.max_values();
        if !is_new {
            return;
        }
        if depth > MAX_DEPTH || found.members.len() > max_values {
            found.is_cut = true;
            return;
        }
        for part in schema.items_of("allOf") {
            self.add_members(part, found, depth + 1);
        }
        for (name, member) in schema.get("properties").into_iter().flat_map(SourceNode::members) {
            if found.members.len() > max_values {
                found.is_cut = true;
                break;
            }
            if found.names.insert(name.to_string()) {
                found.members.push((name.into_owned(), member));
            }
        }
        // Beside its own properties it has those of one alternative.
        if let Some(first) = schema.items_of("oneOf").first().or_else(|| schema.items_of("anyOf").first()) {
            self.add_members(first, found, depth + 1);
        }
    }

    fn value(&mut self, schema: &'a SourceNode<'a>, name: &str, depth: usize) -> String {
        if let Some(reference) = self.description.missing(schema) {
            self.problems.insert(format!("the schema {reference}, which is not in the file, null instead"));
            return "null".to_owned();
        }
        let schema = self.description.resolve(schema);
        self.values += 1;
        self.description.count_value();
        if depth > MAX_DEPTH {
            self.problems.insert(format!("schemas more than {MAX_DEPTH} within one another, null instead"));
            return "null".to_owned();
        }
        if self.values > self.max_values() {
            self.add_cut("values");
            return "null".to_owned();
        }
        let given = ["example", "const", "default"].into_iter().find_map(|key| schema.get(key));
        let given = given.or_else(|| schema.items_of("examples").first()).or_else(|| schema.items_of("enum").first());
        if let Some(given) = given {
            // An example may be JSON within a string.
            let is_text = matches!(given.value, SourceValue::Text(_));
            let is_object = matches!(kind(schema).as_str(), "object" | "array");
            if let (true, true, Some(text)) = (is_text, is_object, given.text())
                && serde_json::from_str::<serde_json::Value>(&text)
                    .is_ok_and(|value| value.is_object() || value.is_array())
            {
                return text.into_owned();
            }
            return given.to_json();
        }
        let alternatives = schema.items_of("oneOf").first().or_else(|| schema.items_of("anyOf").first());
        let members = self.members(schema);
        if !members.is_empty() {
            return self.object(schema, name, members, depth);
        }
        if let Some(first) = alternatives.or_else(|| schema.items_of("allOf").first()) {
            return self.value(first, name, depth + 1);
        }
        match kind(schema).as_str() {
            "object" => self.object(schema, name, Vec::new(), depth),
            "array" => self.array(schema, name, depth),
            kind @ ("integer" | "number") => match number::made(schema, kind == "integer", self.description) {
                Some(number) => number,
                None => {
                    self.add_problem(name, "the bounds");
                    "0".to_owned()
                }
            },
            "boolean" => "true".to_owned(),
            "null" => "null".to_owned(),
            _ => serde_json::Value::from(self.string(schema, name)).to_string(),
        }
    }

    fn object(
        &mut self,
        schema: &'a SourceNode<'a>,
        name: &str,
        members: Vec<(String, &'a SourceNode<'a>)>,
        depth: usize,
    ) -> String {
        let required: Vec<String> = schema.items_of("required").iter().filter_map(SourceNode::scalar).collect();
        let mut written = Vec::new();
        for (name, member) in members {
            let resolved = self.description.resolve(member);
            if resolved.is_true("readOnly") || (depth >= 3 && !required.contains(&name)) {
                continue;
            }
            let value = self.value(member, &name, depth + 1);
            written.push(format!("{}: {value}", serde_json::Value::from(name)));
        }
        let least = schema.get("minProperties").and_then(SourceNode::number).unwrap_or(0.0);
        if least > MAX_ITEMS {
            self.add_problem(name, "minProperties");
        }
        let least = least.clamp(0.0, MAX_ITEMS) as usize;
        let more = schema.get("additionalProperties");
        let count = least.max(usize::from(written.is_empty() && more.is_some_and(SourceNode::is_map)));
        for number in written.len()..count {
            let value = match more.filter(|more| more.is_map()) {
                Some(more) => self.value(more, "", depth + 1),
                None => format!("\"{}\"", self.word()),
            };
            written.push(format!("\"{}{number}\": {value}", self.word()));
        }
        format!("{{{}}}", written.join(", "))
    }

    fn array(&mut self, schema: &'a SourceNode<'a>, name: &str, depth: usize) -> String {
        let bound = |name: &str| schema.get(name).and_then(SourceNode::number);
        let least = bound("minItems").unwrap_or(1.0);
        if least > MAX_ITEMS {
            self.add_problem(name, "minItems");
        }
        let least = least.clamp(1.0, MAX_ITEMS);
        let count = bound("maxItems").map_or(least, |most| least.min(most.max(0.0))) as usize;
        let Some(items) = schema.get("items") else { return "[]".to_owned() };
        let made: Vec<String> = (0..count).map(|_| self.value(items, name, depth + 1)).collect();
        let distinct: BTreeSet<&String> = made.iter().collect();
        if schema.is_true("uniqueItems") && distinct.len() < made.len() {
            self.add_problem(name, "uniqueItems");
        }
        format!("[{}]", made.join(", "))
    }

    fn word(&self) -> &'static str {
        let count = WORDS.len() as u64;
        WORDS.get((self.description.random() % count) as usize).copied().unwrap_or("amber")
    }

    fn string(&mut self, schema: &SourceNode<'_>, name: &str) -> String {
        let bound = |key: &str| schema.get(key).and_then(SourceNode::number);
        if bound("minLength").is_some_and(|least| least > MAX_CHARS) {
            self.add_problem(name, "minLength");
        }
        let length = |key: &str| bound(key).map(|length| length.clamp(0.0, MAX_CHARS) as usize);
        let (least, most) = (length("minLength").unwrap_or(0), length("maxLength").unwrap_or(usize::MAX));
        let has_length = |text: &str| (least..=most).contains(&text.chars().count());
        if let Some(source) = schema.text_of("pattern") {
            if let Some(text) = pattern::text(&source, least).filter(|text| has_length(text)) {
                return text;
            }
            self.add_problem(name, &format!("the pattern {source}"));
        }
        let random = self.description.random();
        let format = schema.text_of("format").unwrap_or_default();
        let text = match format.as_str() {
            "date" => "2026-01-15".to_owned(),
            "date-time" => "2026-01-15T10:30:00Z".to_owned(),
            "time" => "10:30:00Z".to_owned(),
            "uuid" => {
                let hex = format!("{random:016x}{:016x}", self.description.random());
                format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
            }
            "email" => format!("{}{}@example.com", self.word(), random % 1000),
            "uri" | "url" | "iri" => format!("https://example.com/{}", self.word()),
            "hostname" => "example.com".to_owned(),
            "ipv4" => "192.0.2.1".to_owned(),
            "ipv6" => "2001:db8::1".to_owned(),
            "byte" => "d2Vpcg==".to_owned(),
            "password" => format!("{}-{}", self.word(), random % 10_000),
            _ if name.to_ascii_lowercase().ends_with("email") => format!("{}@example.com", self.word()),
            _ if name.to_ascii_lowercase().ends_with("date") => "2026-01-15".to_owned(),
            _ if name.to_ascii_lowercase().ends_with("phone") => "+15550100".to_owned(),
            _ => self.word().to_owned(),
        };
        if has_length(&text) {
            return text;
        }
        let missing = least.saturating_sub(text.chars().count());
        let fitted = match format.as_str() {
            "email" | "idn-email" if missing > 0 => "a".repeat(missing) + &text,
            "email" | "idn-email" => "a@b.co".to_owned(),
            "uri" | "url" | "iri" if missing > 0 => text + &"a".repeat(missing),
            "date" | "date-time" | "time" | "uuid" | "hostname" | "ipv4" | "ipv6" | "uri" | "url" | "iri" => text,
            _ if missing > 0 => {
                let letters = (0..missing).map(|_| char::from(b'a' + (self.description.random() % 26) as u8));
                text.chars().chain(letters.collect::<Vec<_>>()).collect()
            }
            _ => text.chars().take(most).collect(),
        };
        if !has_length(&fitted) {
            self.add_problem(name, "minLength and maxLength");
        }
        fitted
    }
}

/// Members of a schema so far.
#[derive(Debug, Default)]
struct MemberList<'a> {
    members: Vec<(String, &'a SourceNode<'a>)>,
    names: HashSet<String>,
    /// Places in memory of the schemas that were looked into.
    visited: HashSet<usize>,
    /// Whether there are more members than are listed.
    is_cut: bool,
}

/// Type of a schema; the first one but null of several.
fn kind(schema: &SourceNode<'_>) -> String {
    let own = schema.get("type");
    let of_list = own.map(SourceNode::items).unwrap_or_default().iter().filter_map(SourceNode::scalar);
    let kind = own.and_then(SourceNode::scalar).or_else(|| of_list.into_iter().find(|kind| kind != "null"));
    kind.unwrap_or_else(|| match (schema.get("items"), schema.get("additionalProperties")) {
        (Some(_), _) => "array".to_owned(),
        (None, Some(_)) => "object".to_owned(),
        (None, None) => "string".to_owned(),
    })
}
