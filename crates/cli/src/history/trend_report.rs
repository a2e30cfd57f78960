//! Like runs with their trends, as data.

use serde_json::{Value, json};

use weir_history::{LikeRuns, Trend};
use weir_measure::change_points::ChangeSettings;
use weir_report::comparison::MetricSelector;

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

    /// Trends of the group as JSON.
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
