//! Summary of a run, as text or JSON.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::input::InputCounts;
use super::progress::SendMonitor;
use weir_live::single_line;
use weir_machine::lock::lock;
use weir_measure::histogram::Histogram;
use weir_measure::percentiles::{NOT_MEASURED, Percentiles};
use weir_send::PauseRecord;
use weir_send::state::State;
use weir_send::store::JobCounts;

/// Summary of a run, in both formats.
#[derive(Debug)]
pub struct SendSummary {
    json: Value,
    text: String,
    counts: JobCounts,
}

/// Version of the object that `--format json` prints (docs/send.schema.json).
const SCHEMA_VERSION: u32 = 2;

impl SendSummary {
    pub(super) fn new(watch: &SendMonitor, taken: &InputCounts, interrupted: bool) -> Self {
        let tally = lock(&watch.stats);
        let duration_s = watch.elapsed().as_secs_f64();
        let rate_per_s = tally.done as f64 / duration_s.max(1e-9);
        let counts = watch.counts;
        let per_key: Map<String, Value> = tally
            .keys()
            .iter()
            .zip(&tally.per_key)
            .map(|(name, of_key)| {
                let rate = of_key.done as f64 / duration_s.max(1e-9);
                let value = json!({
                    "done": of_key.done, "failed": of_key.failed, "rejected": of_key.rejected,
                    "rate_per_s": round(rate), "disabled": of_key.disabled_reason,
                });
                (name.clone(), value)
            })
            .collect();
        let json = json!({
            "weir": env!("CARGO_PKG_VERSION"),
            "schema": SCHEMA_VERSION,
            "done": tally.done,
            "failed": tally.failed,
            "rejected": { "429": tally.rejected_by_status[0], "400": tally.rejected_by_status[1] },
            "expired": tally.expired,
            "dead_lettered": tally.dead_lettered,
            "retried": tally.retries,
            "accepted": taken.accepted,
            "duplicates": taken.duplicates,
            "invalid": taken.invalid,
            "in_results": tally.in_results,
            "interrupted": interrupted,
            "duration_s": round(duration_s),
            "rate_per_s": round(rate_per_s),
            "response_ms": tally.response_time.percentiles(),
            "service_ms": tally.service_time.percentiles(),
            "lateness_ms": tally.lateness.percentiles(),
            "queue": {
                "queued": counts.jobs_in(State::Queued),
                "leased": counts.jobs_in(State::Leased),
                "retrying": counts.jobs_in(State::Retrying),
                "mean": round(watch.mean_open_jobs()),
            },
            "per_key": per_key,
            "paused": pauses_json(watch.pauses()),
        });
        let mut text = String::new();
        // Writing to memory does not fail.
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<14}{value}");
        };
        line("done", format!("{} in {duration_s:.1} s, {rate_per_s:.1}/s", tally.done));
        line(
            "failed",
            format!(
                "{} requests ({} x 429, {} x 400)",
                tally.failed, tally.rejected_by_status[0], tally.rejected_by_status[1]
            ),
        );
        line("dead-lettered", tally.dead_lettered.to_string());
        line("expired", tally.expired.to_string());
        line("retried", tally.retries.to_string());
        let jobs = format!("{} new, {} duplicate, {} invalid", taken.accepted, taken.duplicates, taken.invalid);
        let known =
            if tally.in_results > 0 { format!(", {} in the results already", tally.in_results) } else { String::new() };
        line("jobs", jobs + &known);
        line("response", percentiles_text(&tally.response_time));
        line("service", percentiles_text(&tally.service_time));
        line("lateness", percentiles_text(&tally.lateness));
        line("queue", format!("{} now, mean {:.0}", counts.open_jobs(), watch.mean_open_jobs()));
        if tally.keys().len() > 1 {
            for (name, of_key) in tally.keys().iter().zip(&tally.per_key) {
                let disabled = of_key.disabled_reason.as_ref();
                let disabled = disabled.map_or_else(String::new, |reason| format!(", disabled: {reason}"));
                let rate = of_key.done as f64 / duration_s.max(1e-9);
                line(
                    "key",
                    format!("{name}: {} done, {rate:.1}/s, {} rejected{disabled}", of_key.done, of_key.rejected),
                );
            }
        }
        for pause in watch.pauses() {
            let _ = writeln!(text, "{:<14}{}", "paused", single_line(&pause.phrase()));
        }
        Self { json, text, counts }
    }

    /// Jobs in each state at the end of the run.
    pub fn counts(&self) -> &JobCounts {
        &self.counts
    }

    /// Lines of text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// JSON object (docs/send.schema.json).
    pub fn json(&self) -> &Value {
        &self.json
    }
}

/// Pauses as JSON objects.
fn pauses_json<'a>(pauses: impl Iterator<Item = &'a PauseRecord>) -> Vec<Value> {
    let object = |pause: &PauseRecord| {
        let key = (!pause.is_of_all_keys).then_some(&pause.key);
        json!({ "key": key, "host": pause.host, "until_ms": pause.until().0, "cause": pause.cause })
    };
    pauses.map(object).collect()
}

fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn percentiles_text(histogram: &Histogram) -> String {
    let Percentiles { mean: Some(mean), p50: Some(p50), p99: Some(p99), max: Some(max), .. } = histogram.percentiles()
    else {
        return NOT_MEASURED.to_owned();
    };
    format!("mean {mean:.3} ms, p50 {p50:.3}, p99 {p99:.3}, max {max:.3}")
}
