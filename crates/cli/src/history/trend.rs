//! `weir trend`: where a figure of like runs has changed its level.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::list::HistoryFormat;
use super::trend_report::TrendReport;
use super::trend_text;
use crate::exit;
use weir_decide::base::units;
use weir_history::{DEFAULT_STORE, LikeRuns, RunFilter, RunStore};
use weir_report::comparison::MetricSelector;
use weir_session::messages::Messages;
use weir_session::output::print;

/// Examples at the end of the help.
const EXAMPLES: &str =
    "Examples:\n  weir trend\n  weir trend --metric p99,rate --label main --fail-if worse --recent 5";
/// Figures of language models, of streams, and of requests: those of the first of which a run has all are the default.
const DEFAULTS: [&[&str]; 3] = [
    &["tokens", "ttft.p50", "ttft.p99", "tpot.p50", "tpot.p99", "errors"],
    &["first_event.p50", "first_event.p99", "gap.p99", "errors"],
    &["rate", "p50", "p99", "errors"],
];

/// Trends of saved runs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TrendArgs {
    /// store that weir load --save has made
    #[arg(value_name = "FILE", default_value = DEFAULT_STORE)]
    store: PathBuf,
    /// rate, p99, errors, tokens, ttft.p99 ...; repeatable [default: as of weir compare]
    #[arg(short, long = "metric", value_name = "NAME", value_delimiter = ',')]
    metrics: Vec<MetricSelector>,
    /// runs whose method, URL or load has this text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    plan: String,
    /// runs with this label
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    label: String,
    /// smallest change that matters
    #[arg(long, value_name = "PERCENT", default_value = "3%", value_parser = units::fraction)]
    min_effect: f64,
    /// finding that makes the exit code 1
    #[arg(long, value_enum, value_name = "FINDING", default_value_t = FailingTrend::Never)]
    fail_if: FailingTrend,
    /// number of last runs in which a change counts for --fail-if
    #[arg(long, value_name = "N", default_value_t = 10)]
    recent: usize,
    /// report format on stdout
    #[arg(short, long, value_enum, default_value_t = HistoryFormat::Text)]
    format: HistoryFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailingTrend {
    /// a figure has become worse
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
            HistoryFormat::Text => print(&trend_text::render(&reports), false)?,
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

/// Metrics of a trend where none is named.
pub(super) fn default_metrics(group: &LikeRuns) -> Vec<MetricSelector> {
    let Some(last) = group.runs.last() else { return Vec::new() };
    let has_all = |names: &&&[&str]| names.iter().all(|name| last.figure(name).is_some());
    let names = DEFAULTS.iter().find(has_all).copied().unwrap_or_default();
    // The rate of an open loop is what was asked for.
    let names = names.iter().filter(|name| **name != "rate" || last.offered_per_s.is_none());
    names.filter_map(|name| name.parse().ok()).collect()
}
