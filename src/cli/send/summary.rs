//! What came of it all, as text or as JSON.

use std::fmt::Write;
use std::io::{self, Write as _};

use serde_json::{Map, Value, json};

use super::input::Taken;
use super::tally::lock;
use super::watch::Watch;
use crate::cli::messages::Messages;
use crate::measure::histogram::Histogram;
use crate::send::state::State;
use crate::send::store::Counts;

/// What came of it all.
pub(super) struct Summary {
    json: Value,
    text: String,
    counts: Counts,
}

/// Of the object that `--format json` writes.
const SCHEMA: u32 = 1;

impl Summary {
    pub(super) fn new(watch: &Watch, taken: &Taken, interrupted: bool) -> Self {
        let tally = lock(&watch.tally);
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
                    "done": of_key.done, "failed": of_key.failed, "refused": of_key.refused,
                    "rate_per_s": round(rate), "lost": of_key.lost,
                });
                (name.clone(), value)
            })
            .collect();
        let json = json!({
            "weir": env!("CARGO_PKG_VERSION"),
            "schema": SCHEMA,
            "done": tally.done,
            "failed": tally.failed,
            "refused": { "429": tally.refused[0], "400": tally.refused[1] },
            "expired": tally.expired,
            "graveyard": tally.graveyard,
            "retried": tally.retried,
            "accepted": taken.accepted,
            "known": taken.known,
            "rejected": taken.rejected,
            "interrupted": interrupted,
            "duration_s": round(duration_s),
            "rate_per_s": round(rate_per_s),
            "response_ms": tally.response.spread(),
            "service_ms": tally.service.spread(),
            "lateness_ms": tally.late.spread(),
            "queue": {
                "queued": counts.of(State::Queued), "leased": counts.of(State::Leased), "dead": counts.of(State::Dead),
                "mean": round(watch.mean_waiting()),
            },
            "per_key": per_key,
        });
        let mut text = String::new();
        // Writing to memory does not fail.
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<12}{value}");
        };
        line("done", format!("{} in {duration_s:.1} s, {rate_per_s:.1}/s", tally.done));
        line("failed", format!("{} requests ({} x 429, {} x 400)", tally.failed, tally.refused[0], tally.refused[1]));
        line("graveyard", tally.graveyard.to_string());
        line("expired", tally.expired.to_string());
        line("retried", tally.retried.to_string());
        line("jobs", format!("{} new, {} known, {} not understood", taken.accepted, taken.known, taken.rejected));
        line("response", spread(&tally.response));
        line("service", spread(&tally.service));
        line("late", spread(&tally.late));
        line("queue", format!("{} now, {:.0} in the mean", counts.open(), watch.mean_waiting()));
        if tally.keys().len() > 1 {
            for (name, of_key) in tally.keys().iter().zip(&tally.per_key) {
                let lost = of_key.lost.as_ref().map_or_else(String::new, |why| format!(", lost: {why}"));
                let rate = of_key.done as f64 / duration_s.max(1e-9);
                line("key", format!("{name}: {} done, {rate:.1}/s, {} refused{lost}", of_key.done, of_key.refused));
            }
        }
        Self { json, text, counts }
    }

    /// Where jobs are now.
    pub(super) fn counts(&self) -> &Counts {
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
    let spread = histogram.spread();
    format!("mean {:.3} ms, p50 {:.3}, p99 {:.3}, max {:.3}", spread.mean, spread.p50, spread.p99, spread.max)
}
