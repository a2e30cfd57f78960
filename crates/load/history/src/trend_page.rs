//! Trends as the page of `weir ui` draws them.

use serde_json::{Value, json};

use super::start_time::started;
use super::trend_report::{TrendReport, default_metrics};
use super::trend_text;
use super::{LikeRuns, StoredRun};
use weir_report::page::ValueUnit;

/// Smallest change that matters on the page of `weir ui`, as that of `weir trend`.
const MIN_EFFECT: f64 = 0.03;

/// Trends of runs as the page of `weir ui` draws them: as in the JSON of `weir trend`, with the runs and the sentences
/// of its text.
pub fn trend_reports(runs: Vec<StoredRun>) -> Vec<Value> {
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
