//! A run as JSON, and back.

use std::collections::BTreeMap;

use serde_json::Value;

use super::histogram::Histogram;
use super::run::{Requests, Responses, Run, SCHEMA_VERSION};

impl Run {
    /// Reads a run that [`Self::to_json`] wrote.
    ///
    /// # Errors
    /// What is wrong with the text and where, in one line.
    pub fn from_json(text: &str) -> Result<Self, String> {
        // What is wrong is quoted from the text, line breaks and all.
        let one_line = |e: serde_json::Error| e.to_string().replace(char::is_control, " ");
        let mut run: Self = serde_json::from_str(text).map_err(|e| format!("not a run of weir: {}", one_line(e)))?;
        match run.schema {
            SCHEMA_VERSION => {}
            1 => run.update(),
            other => return Err(format!("a run of schema {other}, and this weir reads schema {SCHEMA_VERSION}")),
        }
        run.check().map_err(|why| format!("not a run of weir: {why}"))?;
        run.response_histogram()?;
        run.service_histogram()?;
        run.failed_histogram()?;
        run.responses.histogram()?;
        Ok(run)
    }

    /// From schema 1, whose times were those of all responses, whatever their status.
    fn update(&mut self) {
        self.schema = SCHEMA_VERSION;
        self.responses = Responses {
            response_ms: self.response_ms,
            service_ms: self.service_ms,
            first_byte_ms: self.first_byte_ms,
            histogram: self.histogram.clone(),
        };
        if self.failures_of("4xx") + self.failures_of("5xx") > 0 {
            self.trust.ok = false;
            self.trust.reasons.push(
                "an earlier weir made this run: response times of its failures are among those of its successes. Run it \
                 again."
                    .into(),
            );
        }
        for point in &mut self.series {
            let times = Histogram::from_base64(&point.histogram, Histogram::coarse);
            point.responses = times.map_or(0, |times| times.count());
        }
    }

    /// Whether the figures can be those of a run: reports add and subtract them, and need not expect absurd ones.
    fn check(&self) -> Result<(), String> {
        let fields = serde_json::to_value(self).map_err(|e| e.to_string())?;
        if let Some((name, figure)) = absurd("it", &fields) {
            return Err(format!("{name} is {figure}, which nothing can have been"));
        }
        let sum = |counts: &BTreeMap<String, u64>| counts.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
        let Requests { total, ok, failed, dropped, .. } = self.requests;
        let adds_up = ok + failed == total && dropped <= failed;
        if adds_up && sum(&self.status) <= total && sum(&self.failures) <= failed {
            return Ok(());
        }
        Err("its counts of requests do not add up".into())
    }

    /// The run as JSON on several lines, with a newline at its end.
    #[allow(clippy::expect_used, reason = "plain structs with string keys always serialise")]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a run serialises");
        text.push('\n');
        text
    }
}

/// The first figure that is negative, or so large that JSON would not hold it exactly; the manifest has no such rule.
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
