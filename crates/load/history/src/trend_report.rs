//! Like runs with their trends, as data.

use serde_json::{Value, json};

use super::{LikeRuns, Trend};
use weir_measure::change_points::ChangeSettings;
use weir_report::comparison::MetricSelector;

/// Figures of language models, of streams, and of requests: those of the first of which a run has all are the default.
const DEFAULTS: [&[&str]; 3] = [
    &["tokens", "ttft.p50", "ttft.p99", "tpot.p50", "tpot.p99", "errors"],
    &["first_event.p50", "first_event.p99", "gap.p99", "errors"],
    &["rate", "p50", "p99", "errors"],
];

/// Like runs and their trends.
#[derive(Debug)]
pub struct TrendReport {
    /// Runs.
    pub group: LikeRuns,
    /// Trends of their figures.
    pub trends: Vec<Trend>,
}

impl TrendReport {
    /// Trends of metrics; smaller changes than `min_effect` do not matter.
    pub fn new(group: LikeRuns, metrics: &[MetricSelector], min_effect: f64) -> Self {
        let settings = ChangeSettings { min_effect, ..ChangeSettings::default() };
        let trends = metrics.iter().filter_map(|metric| group.trend(&metric.metric(), &settings)).collect();
        Self { group, trends }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let runs = &self.group.runs;
        let of_trend = |trend: &Trend| {
            let changes = trend.changes.iter().map(|change| {
                let of = trend.runs_of(change);
                json!({
                    "run": runs[of.first].id,
                    "previous_run": runs[of.last_before].id,
                    "before": change.before,
                    "after": change.after,
                    "p_value": change.p_value,
                    "finding": if trend.is_worse(change) { "worse" } else { "better" },
                })
            });
            json!({
                "metric": trend.metric.name,
                "unit": trend.metric.unit,
                "values": trend.points.iter().map(|(at, value)| json!([runs[*at].id, value])).collect::<Vec<_>>(),
                "changes": changes.collect::<Vec<_>>(),
            })
        };
        let last = runs.last();
        json!({
            "plan": last.map(|run| run.plan.clone()),
            "offered_per_s": last.and_then(|run| run.offered_per_s),
            "machine": last.map(|run| run.machine.clone()),
            "runs": runs.len(),
            "left_out": self.group.left_out,
            "trends": self.trends.iter().map(of_trend).collect::<Vec<_>>(),
        })
    }
}

/// Metrics of a trend where none is named.
pub fn default_metrics(group: &LikeRuns) -> Vec<MetricSelector> {
    let Some(last) = group.runs.last() else { return Vec::new() };
    let has_all = |names: &&&[&str]| names.iter().all(|name| last.figure(name).is_some());
    let names = DEFAULTS.iter().find(has_all).copied().unwrap_or_default();
    // The rate of an open loop is what was asked for.
    let names = names.iter().filter(|name| **name != "rate" || last.offered_per_s.is_none());
    names.filter_map(|name| name.parse().ok()).collect()
}
