//! Reading and writing a run as JSON.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::run::{Requests, Run, SCHEMA_VERSION};

/// Fields that a run of any schema has.
#[derive(Deserialize)]
struct RunVersion {
    #[serde(rename = "weir")]
    _weir: String,
    schema: u32,
}

impl Run {
    /// Reads what [`Self::to_json`] wrote.
    ///
    /// # Errors
    /// One line with the first error; a run of another schema is rejected as such.
    pub fn from_json(text: &str) -> Result<Self, String> {
        // The error may quote line breaks of the text.
        let one_line = |e: serde_json::Error| e.to_string().replace(char::is_control, " ");
        let not_a_run = |e| format!("not a run of weir: {}", one_line(e));
        // First the version: a run of another one may lack fields.
        let RunVersion { schema, .. } = serde_json::from_str(text).map_err(not_a_run)?;
        let this = format!("(schema {schema}; this one reads {SCHEMA_VERSION})");
        match schema {
            ..SCHEMA_VERSION => return Err(format!("saved by an older weir {this}; measure again")),
            SCHEMA_VERSION => {}
            _ => return Err(format!("saved by a newer weir {this}; update weir")),
        }
        let run: Self = serde_json::from_str(text).map_err(not_a_run)?;
        run.check().map_err(|why| format!("not a run of weir: {why}"))?;
        run.response_histogram()?;
        run.service_histogram()?;
        run.failed_histogram()?;
        run.responses.histogram()?;
        Ok(run)
    }

    /// Checks that the figures are possible, so that reports can add and subtract them.
    fn check(&self) -> Result<(), String> {
        let fields = serde_json::to_value(self).map_err(|e| e.to_string())?;
        if let Some((name, figure)) = absurd("run", &fields) {
            return Err(format!("invalid {name}: {figure}"));
        }
        let sum = |counts: &BTreeMap<String, u64>| counts.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let Requests { total, ok, failed, dropped, .. } = self.requests;
        let adds_up = ok + failed == total && dropped <= failed;
        if adds_up && sum(&self.status) <= total && sum(&self.failures) <= failed {
            return Ok(());
        }
        Err("counts of requests do not add up".into())
    }

    /// Run as indented JSON with a final newline.
    #[allow(clippy::expect_used, reason = "plain structs with string keys always serialise")]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a run serialises");
        text.push('\n');
        text
    }
}

/// First figure that is negative, or larger than JSON numbers are exact, outside of the manifest.
fn absurd<'a>(name: &'a str, value: &'a Value) -> Option<(&'a str, &'a Value)> {
    const MAX_EXACT_INTEGER: f64 = (1_u64 << 53) as f64;
    match value {
        Value::Number(n) => {
            (!n.as_f64().is_some_and(|n| (0.0..=MAX_EXACT_INTEGER).contains(&n))).then_some((name, value))
        }
        Value::Array(items) => items.iter().find_map(|item| absurd(name, item)),
        Value::Object(fields) => {
            fields.iter().filter(|(name, _)| *name != "manifest").find_map(|(name, field)| absurd(name, field))
        }
        _ => None,
    }
}
