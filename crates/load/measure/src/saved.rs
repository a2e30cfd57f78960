//! Reading and writing a run as JSON.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use weir_base::terminal_text::is_steering;

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
        let one_line = |e: serde_json::Error| plain_words(&e.to_string().replace(is_steering, " "));
        let not_a_run = |e| format!("not a run of weir: {}", one_line(e));
        // First the version: a run of another one may lack fields.
        let RunVersion { schema, .. } = serde_json::from_str(text).map_err(not_a_run)?;
        if schema != SCHEMA_VERSION {
            return Err(format!("a run of schema {schema}; this weir reads schema {SCHEMA_VERSION}: measure again"));
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

/// Message of an error without names of Rust's types: `expected struct Rate` is an object.
fn plain_words(message: &str) -> String {
    match message.split_once("expected struct ") {
        Some((before, after)) => {
            let end = after.find(' ').unwrap_or(after.len());
            format!("{before}expected an object{}", &after[end..])
        }
        None => message.to_owned(),
    }
}

/// Names of fields whose figures are not those of weir: the manifest, and metrics of a script, which may be negative.
const OTHERS: [&str; 2] = ["manifest", "metrics"];

/// First figure that is negative, or larger than JSON numbers are exact, outside of those of others.
fn absurd<'a>(name: &'a str, value: &'a Value) -> Option<(&'a str, &'a Value)> {
    const MAX_EXACT_INTEGER: f64 = (1_u64 << 53) as f64;
    match value {
        Value::Number(n) => {
            (!n.as_f64().is_some_and(|n| (0.0..=MAX_EXACT_INTEGER).contains(&n))).then_some((name, value))
        }
        Value::Array(items) => items.iter().find_map(|item| absurd(name, item)),
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !OTHERS.contains(&name.as_str()))
            .find_map(|(name, field)| absurd(name, field)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::outcome::{Outcome, RequestEnd};
    use crate::recorder::Recorder;
    use crate::run::Manifest;
    use crate::run_facts::RunFacts;
    use crate::run_script::{RunScript, ScriptMetric};
    use crate::series::RunSeries;
    use weir_base::Nanos;
    use weir_base::failure::FailureKind;

    /// A run of five requests: two successes, a 404, a reset connection, and one that was never sent.
    fn run() -> Run {
        let mut recorder = Recorder::new(Nanos::ZERO, Nanos::NEVER);
        let failed = RequestEnd::Failed(FailureKind::Reset);
        for (number, end) in
            (0..).zip([RequestEnd::Response(200), RequestEnd::Response(200), RequestEnd::Response(404), failed])
        {
            let done = Nanos::from_millis(10 + number);
            recorder.record(&Outcome {
                number,
                sent: Nanos::MILLI,
                bytes_in: 100,
                body_in: 40,
                bytes_out: 50,
                ..Outcome::new(end, Nanos::ZERO, done)
            });
        }
        recorder.counts.dropped = 1;
        let mut series = RunSeries::default();
        series.add(0, &recorder.interval);
        let facts = RunFacts { end: Nanos::SECOND, ..RunFacts::default() };
        Run::of(facts, &recorder.counts, &[], &series, Manifest::default())
    }

    /// The run as JSON, with another value at this path.
    fn read_with(pointer: &str, value: Value) -> Result<Run, String> {
        let mut run: Value = serde_json::from_str(&run().to_json()).expect("JSON");
        *run.pointer_mut(pointer).expect(pointer) = value;
        Run::from_json(&run.to_string())
    }

    #[test]
    fn a_run_survives_a_round_trip() {
        assert_eq!(Run::from_json(&run().to_json()), Ok(run()));
    }

    #[test]
    fn metrics_of_a_script_may_have_any_value() {
        let values = BTreeMap::from([("min".to_owned(), -5.5), ("max".to_owned(), 1e308)]);
        let text = |text: &str| text.to_owned();
        let metric =
            ScriptMetric { name: text("balance"), kind: text("trend"), unit: text("number"), custom: true, values };
        let script = RunScript { metrics: vec![metric], ..RunScript::default() };
        let run = Run { script: Some(script), ..run() };
        assert_eq!(Run::from_json(&run.to_json()), Ok(run));
    }

    #[test]
    fn a_run_of_another_schema_is_rejected_in_one_line() {
        for schema in [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1] {
            let error = read_with("/schema", schema.into()).expect_err("another schema");
            assert_eq!(
                error,
                format!("a run of schema {schema}; this weir reads schema {SCHEMA_VERSION}: measure again")
            );
        }
    }

    #[test]
    fn impossible_figures_are_rejected_by_name() {
        let large = 1_u64 << 53;
        for (pointer, value, words) in [
            ("/duration_s", json!(-0.5), "invalid duration_s: -0.5"),
            ("/series/0/p50_ms", json!(-1.0), "invalid p50_ms: -1"),
            ("/bytes/in", json!(large + 2), "invalid in: 9007199254740994"),
            ("/requests/total", json!(6), "do not add up"),
            ("/requests/ok", json!(3), "do not add up"),
            ("/requests/dropped", json!(4), "do not add up"),
            ("/status/200", json!(5), "do not add up"),
            ("/failures/4xx", json!(2), "do not add up"),
            ("/histogram", json!("AAAA"), "HdrHistogram"),
            ("/service_histogram", json!("?"), "base64"),
            ("/failed_histogram", json!("AAAA"), "HdrHistogram"),
            ("/responses/histogram", json!("AAAA"), "HdrHistogram"),
        ] {
            let error = read_with(pointer, value).expect_err(pointer);
            assert!(error.contains(words) && !error.contains('\n'), "{pointer}: {error}");
        }
    }

    #[test]
    fn possible_figures_are_accepted() {
        for (pointer, value) in [
            ("/bytes/in", json!(1_u64 << 53)),
            ("/requests/dropped", json!(3)),
            ("/status/200", json!(4)),
            ("/manifest/started_unix_s", json!(-1.0)),
        ] {
            assert_eq!(read_with(pointer, value).err(), None, "{pointer}");
        }
    }

    #[test]
    fn a_damaged_run_has_an_error_without_names_of_types() {
        for (pointer, value) in [("/rate_per_s", json!(null)), ("/response_ms", json!([])), ("/trust", json!("fine"))] {
            let error = read_with(pointer, value).expect_err(pointer);
            assert!(!error.contains("struct") && !error.contains("IoError"), "{error}");
        }
        let error = read_with("/histogram", json!("AAAA")).expect_err("damaged");
        assert_eq!(error, "not an HdrHistogram: the text is damaged or cut off");
    }

    #[test]
    fn an_error_is_one_line_though_it_quotes_the_text() {
        let error = read_with("/model", json!("a\nb")).expect_err("no model");
        assert!(error.starts_with("not a run of weir: ") && !error.contains('\n'), "{error}");
    }
}
