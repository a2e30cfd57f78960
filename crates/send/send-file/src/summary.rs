//! Summary of a run, as text or JSON.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::input::InputCounts;
use super::progress::SendMonitor;
use super::tokens::TokenCounts;
use weir_base::Nanos;
use weir_base::duration_text::duration_text;
use weir_base::number_text::{count, short_rate as rate};
use weir_base::terminal_text::single_line;
use weir_histogram::Histogram;
use weir_histogram::percentiles::{NOT_MEASURED, Percentiles};
use weir_machine::lock::lock;
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

/// Version of the object that `--format json` prints (docs/schema/send.schema.json).
const SCHEMA_VERSION: u32 = 2;

impl SendSummary {
    pub(super) fn new(watch: &SendMonitor, taken: &InputCounts, store: &str, interrupted: bool) -> Self {
        let duration_s = watch.elapsed().as_secs_f64();
        Self {
            json: Self::json_of(watch, taken, duration_s, interrupted),
            text: Self::text_of(watch, taken, duration_s, store),
            counts: watch.counts,
        }
    }

    fn json_of(watch: &SendMonitor, taken: &InputCounts, duration_s: f64, interrupted: bool) -> Value {
        let stats = lock(&watch.stats);
        let rate_per_s = stats.done as f64 / duration_s.max(1e-9);
        let counts = watch.counts;
        let limit_s: Map<String, Value> = watch.limit_seconds().fold(Map::new(), |mut all, (name, s)| {
            let before = all.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            all.insert(name.to_owned(), json!(round(before + s)));
            all
        });
        let per_key: Map<String, Value> = stats
            .keys()
            .iter()
            .zip(&stats.per_key)
            .map(|(name, of_key)| {
                let rate = of_key.done as f64 / duration_s.max(1e-9);
                let value = json!({
                    "done": of_key.done, "failed": of_key.failed, "rejected": of_key.rejected,
                    "rate_per_s": round(rate), "disabled": of_key.disabled_reason,
                });
                (name.clone(), value)
            })
            .collect();
        json!({
            "weir": env!("CARGO_PKG_VERSION"),
            "schema": SCHEMA_VERSION,
            "done": stats.done,
            "failed": stats.failed,
            "rejected": { "429": stats.rejected_by_status[0], "400": stats.rejected_by_status[1] },
            "expired": stats.expired,
            "dead_lettered": stats.dead_lettered,
            "retried": stats.retries,
            "accepted": taken.accepted,
            "duplicates": taken.duplicates,
            "invalid": taken.invalid,
            "in_results": stats.in_results,
            "interrupted": interrupted,
            "duration_s": round(duration_s),
            "rate_per_s": round(rate_per_s),
            "response_ms": stats.response_time.percentiles(),
            "service_ms": stats.service_time.percentiles(),
            "lateness_ms": stats.lateness.percentiles(),
            "queue": {
                "queued": counts.jobs_in(State::Queued),
                "leased": counts.jobs_in(State::Leased),
                "retrying": counts.jobs_in(State::Retrying),
                "mean": round(watch.mean_open_jobs()),
            },
            "per_key": per_key,
            "paused": pauses_json(watch.pauses()),
            "limited_by": watch.main_limit().map(|(limit, _)| limit.name()),
            "limit_s": limit_s,
            "tokens": stats.tokens.as_ref().map(TokenCounts::json),
            "main_failure": stats.failures.top().map(|top| {
                json!({ "cause": top.cause, "requests": top.count, "body": top.body, "remedy": top.remedy })
            }),
        })
    }

    fn text_of(watch: &SendMonitor, taken: &InputCounts, duration_s: f64, store: &str) -> String {
        let stats = lock(&watch.stats);
        let mut text = String::new();
        // Writing to memory does not fail.
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<14}{value}");
        };
        let duration = duration_text(Nanos::from_secs_f64(duration_s));
        let rate_per_s = stats.done as f64 / duration_s.max(1e-9);
        line("done", format!("{} in {duration}, {}/s", count(stats.done), rate(rate_per_s)));
        line(
            "failed",
            format!(
                "{} requests{}, {} retried; jobs: {} dead-lettered, {} expired",
                count(stats.failed),
                rejections_text(stats.rejected_by_status),
                count(stats.retries),
                count(stats.dead_lettered),
                count(stats.expired)
            ),
        );
        if let Some(top) = stats.failures.top() {
            line("", format!("most of them {}", top.text()));
        }
        drop(stats);
        if let Some(limit) = watch.main_limit_text() {
            line("limited by", single_line(&limit));
        }
        let stats = lock(&watch.stats);
        let jobs = format!("{} new, {} duplicate, {} invalid", taken.accepted, taken.duplicates, taken.invalid);
        let known =
            if stats.in_results > 0 { format!(", {} in the results already", stats.in_results) } else { String::new() };
        line("jobs", jobs + &known);
        if taken.accepted == 0 && taken.duplicates > 0 && stats.done == 0 && stats.failed == 0 {
            line("", duplicates_text(store, &watch.counts));
        }
        for (name, text) in stats.tokens.iter().flat_map(TokenCounts::lines) {
            line(name, single_line(&text));
        }
        line("response", percentiles_text(&stats.response_time));
        line("service", percentiles_text(&stats.service_time));
        line("lateness", percentiles_text(&stats.lateness));
        line("queue", format!("{} now, mean {:.0}", count(watch.counts.open_jobs()), watch.mean_open_jobs()));
        if stats.keys().len() > 1 {
            for (name, of_key) in stats.keys().iter().zip(&stats.per_key) {
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
        text
    }

    /// Jobs in each state at the end of the run.
    pub fn counts(&self) -> &JobCounts {
        &self.counts
    }

    /// Lines of text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// JSON object (docs/schema/send.schema.json).
    pub fn json(&self) -> &Value {
        &self.json
    }
}

/// Rejected requests, if there are any: ` (3 x 429, 1 x 400)`.
fn rejections_text([limited, nonces]: [u64; 2]) -> String {
    let shown = [(limited, 429), (nonces, 400)].into_iter().filter(|(number, _)| *number > 0);
    let shown: Vec<String> = shown.map(|(number, status)| format!("{} x {status}", count(number))).collect();
    if shown.is_empty() { String::new() } else { format!(" ({})", shown.join(", ")) }
}

/// Reason why nothing was sent, where all jobs were in the store already, and how to send them again.
fn duplicates_text(store: &str, counts: &JobCounts) -> String {
    let states = State::ALL.into_iter().map(|state| (state, counts.jobs_in(state))).filter(|(_, jobs)| *jobs > 0);
    let states: Vec<String> = states.map(|(state, jobs)| format!("{} {}", count(jobs), state.name())).collect();
    let store = single_line(store);
    let again = if State::ALL.into_iter().any(|state| state.is_retryable() && counts.jobs_in(state) > 0) {
        format!(
            "weir send retry {store} --all requeues those not done, with the URL they have; for another URL or body \
             use weir send edit, or another --store"
        )
    } else {
        "to send jobs that are done again, use another --store".to_owned()
    };
    format!("nothing was sent: they are in {store} already ({}); {again}", states.join(", "))
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
    let text = |ms: f64| duration_text(Nanos::from_secs_f64(ms / 1e3));
    format!("mean {}, p50 {}, p99 {}, max {}", text(mean), text(p50), text(p99), text(max))
}
