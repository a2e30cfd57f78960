//! Rows of a JSON file.

use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::data_error::line_at;
use super::data_rows::{CellKind, DataRows, check_column, too_large};

/// Members of an object in their order, with values as they came.
struct JsonRow<'t>(Vec<(String, &'t RawValue)>);

impl JsonRow<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(member, _)| member == name).map(|(_, value)| value.get())
    }
}

impl<'de> Deserialize<'de> for JsonRow<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(MemberVisitor)
    }
}

struct MemberVisitor;

impl<'de> Visitor<'de> for MemberVisitor {
    type Value = JsonRow<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonRow<'de>, A::Error> {
        let mut row = JsonRow(Vec::with_capacity(map.size_hint().unwrap_or(0)));
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            if row.get(&name).is_some() {
                return Err(A::Error::custom(format!("two members have the name '{name}'")));
            }
            row.0.push((name, value));
        }
        Ok(row)
    }
}

/// Parses an array of objects.
pub(super) fn parse_array(text: &str) -> Result<DataRows, (u64, String)> {
    if !text.trim_start().starts_with('[') {
        let line = line_at(text.as_bytes(), text.len() - text.trim_start().len());
        let reason = "not an array of objects; write [{...}, {...}], or name the file .jsonl with one object on \
                      each line";
        return Err((line, reason.to_owned()));
    }
    let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| syntax(&error, 0))?;
    let mut rows = RowBuilder::default();
    for element in elements {
        // The element is a part of the text, so that its place is the distance between both.
        let offset = element.get().as_ptr() as usize - text.as_ptr() as usize;
        rows.add(element.get(), || line_at(text.as_bytes(), offset))?;
    }
    rows.finish()
}

/// Parses one object on each line; empty lines are skipped.
pub(super) fn parse_lines(text: &str) -> Result<DataRows, (u64, String)> {
    let mut rows = RowBuilder::default();
    for (line, object) in (1..).zip(text.lines()).filter(|(_, object)| !object.trim().is_empty()) {
        rows.add(object.trim(), || line)?;
    }
    rows.finish()
}

#[derive(Default)]
struct RowBuilder(Option<DataRows>);

impl RowBuilder {
    /// Adds a row; the first one decides which columns there are.
    fn add(&mut self, object: &str, line: impl Fn() -> u64) -> Result<(), (u64, String)> {
        if !object.starts_with('{') {
            return Err((line(), "not an object; write e.g. {\"user\": \"ada\", \"id\": 1}".to_owned()));
        }
        let row: JsonRow<'_> = serde_json::from_str(object).map_err(|error| syntax(&error, line() - 1))?;
        let rows = match &mut self.0 {
            Some(rows) => rows,
            none => {
                let mut columns = Vec::with_capacity(row.0.len());
                for (name, _) in &row.0 {
                    check_column(name, &columns).map_err(|reason| (line(), reason))?;
                    columns.push(name.clone());
                }
                if columns.is_empty() {
                    return Err((line(), "an object without members; its members are the columns".to_owned()));
                }
                none.insert(DataRows::new(columns, CellKind::Json))
            }
        };
        for index in 0..rows.columns().len() {
            let Some(name) = rows.columns().get(index) else { break };
            let Some(value) = row.get(name) else {
                return Err((line(), format!("no '{name}', which the first row has; give each row the same members")));
            };
            rows.push(value).map_err(|_| too_large(line()))?;
        }
        Ok(())
    }

    fn finish(self) -> Result<DataRows, (u64, String)> {
        self.0.ok_or_else(|| (1, "no rows; write at least one object".to_owned()))
    }
}

/// Line and reason of an error of the parser, in a text that begins behind `before` lines.
fn syntax(error: &serde_json::Error, before: u64) -> (u64, String) {
    let text = error.to_string();
    let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
    (before + (error.line() as u64).max(1), format!("invalid JSON: {reason}"))
}
