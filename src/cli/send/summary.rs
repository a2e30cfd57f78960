//! What came of it all, as text or as JSON.

use std::fmt::Write;
use std::io::{self, Write as _};

use serde_json::{Map, Value, json};

use super::input::InputCounts;
use super::tally::lock;
use super::watch::SendMonitor;
use crate::cli::messages::Messages;
use crate::measure::histogram::Histogram;
use crate::send::state::State;
use crate::send::store::JobCounts;

/// What came of it all.
pub(super) struct SendSummary {
    json: Value,
    text: String,
    counts: JobCounts,
}

/// Of the object that `--format json` writes.
const SCHEMA_VERSION: u32 = 1;

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
                    "done": of_key.done, "failed": of_key.failed, "refused": of_key.rate_limited,
                    "rate_per_s": round(rate), "lost": of_key.unusable_reason,
                });
                (name.clone(), value)
            })
            .collect();
        let json = json!({
            "weir": env!("CARGO_PKG_VERSION"),
            "schema": SCHEMA_VERSION,
            "done": tally.done,
            "failed": tally.failed,
            "refused": { "429": tally.rejected_by_status[0], "400": tally.rejected_by_status[1] },
            "expired": tally.expired,
            "graveyard": tally.dead_lettered,
            "retried": tally.retries,
            "accepted": taken.accepted,
            "known": taken.duplicates,
            "rejected": taken.rejected,
            "interrupted": interrupted,
            "duration_s": round(duration_s),
            "rate_per_s": round(rate_per_s),
            "response_ms": tally.response_time.percentiles(),
            "service_ms": tally.service_time.percentiles(),
            "lateness_ms": tally.lateness.percentiles(),
            "queue": {
                "queued": counts.jobs_in(State::Queued), "leased": counts.jobs_in(State::Leased), "dead": counts.jobs_in(State::Retrying),
                "mean": round(watch.mean_open_jobs()),
            },
            "per_key": per_key,
        });
        let mut text = String::new();
        // Writing to memory does not fail.
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<12}{value}");
        };
        line("done", format!("{} in {duration_s:.1} s, {rate_per_s:.1}/s", tally.done));
        line(
            "failed",
            format!(
                "{} requests ({} x 429, {} x 400)",
                tally.failed, tally.rejected_by_status[0], tally.rejected_by_status[1]
            ),
        );
        line("graveyard", tally.dead_lettered.to_string());
        line("expired", tally.expired.to_string());
        line("retried", tally.retries.to_string());
        line("jobs", format!("{} new, {} known, {} not understood", taken.accepted, taken.duplicates, taken.rejected));
        line("response", spread(&tally.response_time));
        line("service", spread(&tally.service_time));
        line("late", spread(&tally.lateness));
        line("queue", format!("{} now, {:.0} in the mean", counts.open_jobs(), watch.mean_open_jobs()));
        if tally.keys().len() > 1 {
            for (name, of_key) in tally.keys().iter().zip(&tally.per_key) {
                let lost = of_key.unusable_reason.as_ref().map_or_else(String::new, |why| format!(", lost: {why}"));
                let rate = of_key.done as f64 / duration_s.max(1e-9);
                line(
                    "key",
                    format!("{name}: {} done, {rate:.1}/s, {} refused{lost}", of_key.done, of_key.rate_limited),
                );
            }
        }
        Self { json, text, counts }
    }

    /// Where jobs are now.
    pub(super) fn counts(&self) -> &JobCounts {
        &self.counts
    }

    pub(super) fn show(&self, as_json: bool, messages: &Messages) {
        let text = if as_json { format!("{}\n", self.json) } else { self.text.clone() };
        if let Err(error) = io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
            messages.error(&format!("cannot write to stdout: {error}"));
        }
    }
}

fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn spread(histogram: &Histogram) -> String {
    if histogram.count() == 0 {
        return "-".into();
    }
    let spread = histogram.percentiles();
    format!("mean {:.3} ms, p50 {:.3}, p99 {:.3}, max {:.3}", spread.mean, spread.p50, spread.p99, spread.max)
}
