//! `weir trend`: where a figure of like runs has changed its level.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::list::HistoryFormat;
use weir_base::units;
use weir_command::Messages;
use weir_command::exit;
use weir_command::stdout::print;
use weir_history::{DEFAULT_STORE, LikeRuns, RunFilter, RunStore, TrendReport, default_metrics, trend_text};
use weir_report::comparison::MetricSelector;

/// Examples at the end of the help.
const EXAMPLES: &str =
    "Examples:\n  weir trend\n  weir trend --metric p99,rate --label main --fail-if worse --recent 5";

/// Trends of saved runs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TrendArgs {
    /// store written by weir load --save
    #[arg(value_name = "FILE", default_value = DEFAULT_STORE)]
    store: PathBuf,
    /// track rate, p99, errors, tokens, ttft.p99 ...; repeatable [default: as weir compare]
    #[arg(short, long = "metric", value_name = "NAME", value_delimiter = ',')]
    metrics: Vec<MetricSelector>,
    /// use runs whose method, URL or load contains this text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    plan: String,
    /// use runs with this label
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    label: String,
    /// ignore changes smaller than this
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = units::fraction)]
    min_effect: f64,
    /// exit with 1 on this finding
    #[arg(long, value_enum, value_name = "FINDING", default_value_t = FailingTrend::Never)]
    fail_if: FailingTrend,
    /// apply --fail-if to changes in the last N runs
    #[arg(long, value_name = "N", default_value_t = 10)]
    recent: usize,
    /// print the report in this format
    #[arg(short, long, value_enum, default_value_t = HistoryFormat::Text)]
    format: HistoryFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailingTrend {
    /// a figure got worse
    Worse,
    /// none
    Never,
}

impl TrendArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<u8, String> {
        let store = RunStore::open(&self.store).map_err(|error| error.to_string())?;
        let filter = RunFilter { plan: self.plan.clone(), label: self.label.clone(), ..RunFilter::default() };
        let runs = store.runs(&filter).map_err(|error| error.to_string())?;
        if runs.is_empty() {
            messages.note("no runs");
        }
        let reports: Vec<TrendReport> = LikeRuns::group(runs).into_iter().map(|group| self.report(group)).collect();
        match self.format {
            HistoryFormat::Text => print(&trend_text(&reports), false)?,
            HistoryFormat::Json => {
                let list = json!({ "schema": 1, "groups": reports.iter().map(TrendReport::json).collect::<Vec<_>>() });
                print(&format!("{list:#}\n"), false)?;
            }
        }
        let is_worse =
            reports.iter().flat_map(|report| &report.trends).any(|trend| trend.has_become_worse(self.recent));
        Ok(if self.fail_if == FailingTrend::Worse && is_worse { exit::OBJECTIVE } else { exit::OK })
    }

    fn report(&self, group: LikeRuns) -> TrendReport {
        let metrics = if self.metrics.is_empty() { default_metrics(&group) } else { self.metrics.clone() };
        TrendReport::new(group, &metrics, self.min_effect)
    }
}
