//! List of the runs of a store.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::started;
use weir_history::{DEFAULT_STORE, RunFilter, RunStore, StoredRun};
use weir_report::comparison::MetricSelector;
use weir_report::page::ValueUnit;
use weir_session::messages::Messages;
use weir_session::output::print;

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:\n  weir history\n  weir history --plan /api/items -n 50 --format json";
/// Default number of runs.
const DEFAULT_COUNT: u64 = 20;
/// Figures of a row, and their widths.
const COLUMNS: [(&str, usize); 4] = [("rate", 11), ("p50", 9), ("p99", 9), ("errors", 8)];

/// Saved runs of a store.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HistoryArgs {
    /// store that weir load --save has made
    #[arg(value_name = "FILE", default_value = DEFAULT_STORE)]
    store: PathBuf,
    /// runs whose method, URL or load has this text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    plan: String,
    /// runs with this label
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    label: String,
    /// runs of a commit that begins so
    #[arg(long, value_name = "COMMIT", default_value = "", hide_default_value = true)]
    commit: String,
    /// number of runs, the last ones; 0 is all
    #[arg(short = 'n', long, value_name = "N", default_value_t = DEFAULT_COUNT)]
    number: u64,
    /// delete all runs but the last N
    #[arg(long, value_name = "N")]
    keep: Option<u64>,
    /// report format on stdout
    #[arg(short, long, value_enum, default_value_t = HistoryFormat::Text)]
    format: HistoryFormat,
}

/// Format of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum HistoryFormat {
    /// for a terminal
    Text,
    /// one JSON object
    Json,
}

impl HistoryArgs {
    pub(super) fn run(&self, messages: &Messages) -> Result<(), String> {
        let mut store = RunStore::open(&self.store).map_err(|error| error.to_string())?;
        if let Some(last) = self.keep {
            let deleted = store.keep(last).map_err(|error| error.to_string())?;
            messages.note(&format!("{deleted} run{} deleted", if deleted == 1 { "" } else { "s" }));
        }
        let filter = RunFilter {
            plan: self.plan.clone(),
            label: self.label.clone(),
            commit: self.commit.clone(),
            limit: (self.number > 0).then_some(self.number),
        };
        let runs = store.runs(&filter).map_err(|error| error.to_string())?;
        match self.format {
            HistoryFormat::Text => print(&text(&runs), false),
            HistoryFormat::Json => {
                let list = json!({ "schema": 1, "runs": runs.iter().map(row).collect::<Vec<_>>() });
                print(&format!("{list:#}\n"), false)
            }
        }
    }
}

/// Runs with the plan that they share above them.
fn text(runs: &[StoredRun]) -> String {
    if runs.is_empty() {
        return "no runs\n".to_owned();
    }
    let heading: String = COLUMNS.iter().map(|(name, width)| format!("{name:>width$}")).collect();
    let mut lines = vec![format!("{:>6}  {:<16}{heading}  {:<15}{}", "run", "started (UTC)", "commit", "")];
    let mut plan = "";
    for run in runs {
        if run.plan != plan {
            plan = &run.plan;
            lines.extend([String::new(), format!("{plan}; {}", run.machine)]);
        }
        let figures: String = COLUMNS.iter().map(|(name, width)| format!("{:>width$}", figure(run, name))).collect();
        let commit: String = run.note.commit.chars().take(13).collect();
        let rest: Vec<String> =
            [run.note.label.clone(), verdict(run)].into_iter().filter(|text| !text.is_empty()).collect();
        let line = format!(
            "{:>6}  {:<16}{figures}  {commit:<15}{}",
            format!("#{}", run.id),
            started(run.started_unix_s),
            rest.join(" · ")
        );
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n") + "\n"
}

/// Figure with its unit; empty without one.
fn figure(run: &StoredRun, name: &str) -> String {
    let unit = name.parse::<MetricSelector>().map(|selector| ValueUnit::of(&selector.metric()));
    run.figure(name).zip(unit.ok()).map_or_else(String::new, |(value, unit)| unit.format(value).replace('\u{a0}', ""))
}

fn verdict(run: &StoredRun) -> String {
    match run {
        run if run.is_interrupted => "interrupted".to_owned(),
        run if !run.is_trusted => "not trusted".to_owned(),
        StoredRun { missed: 0, .. } => String::new(),
        StoredRun { missed: 1, .. } => "1 objective missed".to_owned(),
        StoredRun { missed, .. } => format!("{missed} objectives missed"),
    }
}

/// Run as the page of `weir ui` lists it: as in the JSON, with figures as text.
#[cfg(feature = "web")]
pub(crate) fn run_row(run: &StoredRun) -> serde_json::Value {
    let mut value = row(run);
    value["shown"] = json!({
        "started": started(run.started_unix_s),
        "figures": COLUMNS.map(|(name, _)| json!([name, figure(run, name)])),
        "verdict": verdict(run),
    });
    value
}

fn row(run: &StoredRun) -> serde_json::Value {
    let figures: serde_json::Map<String, serde_json::Value> =
        run.figures.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({
        "run": run.id,
        "started_unix_s": run.started_unix_s,
        "label": run.note.label,
        "commit": run.note.commit,
        "plan": run.plan,
        "offered_per_s": run.offered_per_s,
        "machine": run.machine,
        "trusted": run.is_trusted,
        "interrupted": run.is_interrupted,
        "objectives_missed": run.missed,
        "figures": figures,
    })
}
