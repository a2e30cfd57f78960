//! Values of schemas: examples first, then what the schema allows.

use super::description::ApiDescription;
use crate::tree::{SourceNode, SourceValue};

/// Schemas within one another that get a value.
const MAX_DEPTH: usize = 8;

/// Values of one example, at most.
const MAX_VALUES: usize = 500;

/// Words for texts that nothing describes.
const WORDS: [&str; 12] =
    ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor", "iris", "juniper", "larch", "meadow"];

/// Maker of values of schemas.
#[derive(Debug)]
pub(super) struct ExampleMaker<'a> {
    description: &'a ApiDescription<'a>,
    values: usize,
}

impl<'a> ExampleMaker<'a> {
    pub(super) fn new(description: &'a ApiDescription<'a>) -> Self {
        Self { description, values: 0 }
    }

    /// JSON value of a schema.
    pub(super) fn json(&mut self, schema: &'a SourceNode<'a>) -> String {
        self.value(schema, "", 0)
    }

    /// Value of a schema as it stands in a URL, a header or a form.
    pub(super) fn text(&mut self, schema: &'a SourceNode<'a>, name: &str) -> String {
        let json = self.value(schema, name, 0);
        match serde_json::from_str::<serde_json::Value>(&json) {
            Ok(serde_json::Value::String(text)) => text,
            // Items are separated by commas, as by default in paths and headers.
            Ok(serde_json::Value::Array(items)) => {
                let items = items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
                items.collect::<Vec<_>>().join(",")
            }
            _ => json,
        }
    }

    /// Members of an object's schema, with their schemas, those of `allOf` included.
    pub(super) fn members(&self, schema: &'a SourceNode<'a>) -> Vec<(String, &'a SourceNode<'a>)> {
        let mut found = Vec::new();
        self.add_members(schema, &mut found, 0);
        found
    }

    fn add_members(&self, schema: &'a SourceNode<'a>, found: &mut Vec<(String, &'a SourceNode<'a>)>, depth: usize) {
        let schema = self.description.resolve(schema);
        if depth > MAX_DEPTH || found.len() > MAX_VALUES {
            return;
        }
        for part in schema.items_of("allOf") {
            self.add_members(part, found, depth + 1);
        }
        for (name, member) in schema.get("properties").into_iter().flat_map(SourceNode::members) {
            if !found.iter().any(|(known, _)| *known == name) {
                found.push((name.into_owned(), member));
            }
        }
        if found.is_empty()
            && let Some(first) = schema.items_of("oneOf").first().or_else(|| schema.items_of("anyOf").first())
        {
            self.add_members(first, found, depth + 1);
        }
    }

    fn value(&mut self, schema: &'a SourceNode<'a>, name: &str, depth: usize) -> String {
        let schema = self.description.resolve(schema);
        self.values += 1;
        if depth > MAX_DEPTH || self.values > MAX_VALUES {
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
            return self.object(schema, members, depth);
        }
        if let Some(first) = alternatives.or_else(|| schema.items_of("allOf").first()) {
            return self.value(first, name, depth + 1);
        }
        match kind(schema).as_str() {
            "object" => match schema.get("additionalProperties").filter(|more| more.is_map()) {
                Some(more) => format!("{{\"{}\": {}}}", self.word(), self.value(more, "", depth + 1)),
                None => "{}".to_owned(),
            },
            "array" => {
                let count = schema.get("minItems").and_then(SourceNode::number).unwrap_or(1.0).clamp(1.0, 5.0) as usize;
                let items = schema
                    .get("items")
                    .map(|items| (0..count).map(|_| self.value(items, name, depth + 1)).collect::<Vec<_>>().join(", "));
                format!("[{}]", items.unwrap_or_default())
            }
            "integer" => self.integer(schema),
            "number" => format!("{}.5", self.integer(schema)),
            "boolean" => "true".to_owned(),
            "null" => "null".to_owned(),
            _ => serde_json::Value::from(self.string(schema, name)).to_string(),
        }
    }

    fn object(&mut self, schema: &SourceNode<'_>, members: Vec<(String, &'a SourceNode<'a>)>, depth: usize) -> String {
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
        format!("{{{}}}", written.join(", "))
    }

    fn word(&self) -> &'static str {
        let count = WORDS.len() as u64;
        WORDS.get((self.description.random() % count) as usize).copied().unwrap_or("amber")
    }

    fn integer(&self, schema: &SourceNode<'_>) -> String {
        let bound = |name: &str| schema.get(name).and_then(SourceNode::number);
        let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|bound| bound + 1.0)).unwrap_or(1.0);
        let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|bound| bound - 1.0));
        let most = most.unwrap_or(least.max(0.0) + 99.0);
        let (least, most) = (least.ceil().clamp(-9e15, 9e15), most.floor().clamp(-9e15, 9e15));
        let span = (most - least).clamp(0.0, 1e6) as u64;
        let step = bound("multipleOf").filter(|step| *step >= 1.0).unwrap_or(1.0).min(1e9);
        let value = least + (self.description.random() % (span + 1)) as f64;
        let value = if step > 1.0 { (value / step).floor().max((least / step).ceil()) * step } else { value };
        format!("{}", value as i64)
    }

    fn string(&self, schema: &SourceNode<'_>, name: &str) -> String {
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
        let length =
            |key: &str| schema.get(key).and_then(SourceNode::number).map(|length| length.clamp(0.0, 4096.0) as usize);
        let mut text = text;
        while length("minLength").is_some_and(|least| text.len() < least) {
            text.push(char::from(b'a' + (self.description.random() % 26) as u8));
        }
        match length("maxLength") {
            Some(most) if text.len() > most => text.chars().take(most).collect(),
            _ => text,
        }
    }
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
