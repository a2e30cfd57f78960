//! List of the runs of a store.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::json;

use weir_command::Messages;
use weir_command::stdout::print;
use weir_history::{DEFAULT_STORE, RunFilter, RunStore, run_list, run_object};

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:\n  weir history\n  weir history --plan /api/items -n 50 --format json";
/// Default number of runs.
const DEFAULT_COUNT: u64 = 20;

/// Saved runs of a store.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct HistoryArgs {
    /// store written by weir load --save
    #[arg(value_name = "FILE", default_value = DEFAULT_STORE)]
    store: PathBuf,
    /// list runs whose method, URL or load contains this text
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    plan: String,
    /// list runs with this label
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    label: String,
    /// list runs of the commit with this prefix
    #[arg(long, value_name = "COMMIT", default_value = "", hide_default_value = true)]
    commit: String,
    /// list the last N runs; 0: all
    #[arg(short = 'n', long, value_name = "N", default_value_t = DEFAULT_COUNT)]
    number: u64,
    /// delete all runs but the last N
    #[arg(long, value_name = "N")]
    keep: Option<u64>,
    /// print the report in this format
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
            HistoryFormat::Text => print(&run_list(&runs), false),
            HistoryFormat::Json => {
                let list = json!({ "schema": 1, "runs": runs.iter().map(run_object).collect::<Vec<_>>() });
                print(&format!("{list:#}\n"), false)
            }
        }
    }
}
