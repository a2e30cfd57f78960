//! Like runs with their trends, as data.

use serde_json::{Value, json};

#[cfg(feature = "web")]
use super::trend::default_metrics;
#[cfg(feature = "web")]
use super::{started, trend_text};
#[cfg(feature = "web")]
use weir_history::StoredRun;
use weir_history::{LikeRuns, Trend};
use weir_measure::change_points::ChangeSettings;
use weir_report::comparison::MetricSelector;
#[cfg(feature = "web")]
use weir_report::page::ValueUnit;

/// Like runs and their trends.
pub(super) struct TrendReport {
    pub(super) group: LikeRuns,
    pub(super) trends: Vec<Trend>,
}

impl TrendReport {
    /// Trends of metrics; smaller changes than `min_effect` do not matter.
    pub(super) fn new(group: LikeRuns, metrics: &[MetricSelector], min_effect: f64) -> Self {
        let settings = ChangeSettings { min_effect, ..ChangeSettings::default() };
        let trends = metrics.iter().filter_map(|metric| group.trend(&metric.metric(), &settings)).collect();
        Self { group, trends }
    }

    /// As JSON.
    pub(super) fn json(&self) -> Value {
        let runs = &self.group.runs;
        let of_trend = |trend: &Trend| {
            let changes = trend.changes.iter().map(|change| {
                let (at, before) = trend.runs_of(change);
                json!({
                    "run": runs[at].id,
                    "previous_run": runs[before].id,
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

/// Smallest change that matters on the page of `weir ui`, as that of `weir trend`.
#[cfg(feature = "web")]
const MIN_EFFECT: f64 = 0.03;

/// Trends of runs as the page of `weir ui` draws them: as in the JSON of `weir trend`, with the runs and the sentences
/// of its text.
#[cfg(feature = "web")]
pub(crate) fn trend_reports(runs: Vec<StoredRun>) -> Vec<Value> {
    let shown = |group: LikeRuns| {
        let metrics = default_metrics(&group);
        let report = TrendReport::new(group, &metrics, MIN_EFFECT);
        let mut value = report.json();
        let runs = report.group.runs.iter();
        value["points"] =
            runs.map(|run| json!([run.id, started(run.started_unix_s), run.note.commit, run.note.label])).collect();
        value["heading"] = trend_text::heading(&report).into();
        for (at, trend) in report.trends.iter().enumerate() {
            value["trends"][at]["sentences"] = trend_text::changes(trend, &report.group.runs).into();
            value["trends"][at]["axis"] = match ValueUnit::of(&trend.metric) {
                ValueUnit::Milliseconds => "ms",
                ValueUnit::PerSecond => "per_s",
                ValueUnit::Fraction => "fraction",
                _ => "count",
            }
            .into();
        }
        value
    };
    LikeRuns::group(runs).into_iter().map(shown).collect()
}
