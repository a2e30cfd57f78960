//! Flags that save a run, shared by `load` and `llm`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{DEFAULT_STORE, commit};
use weir_history::{RunNote, RunStore};
use weir_measure::Run;
use weir_report::comparison::MetricSelector;
use weir_report::read::ToolResult;

/// Figures that are saved beside each run, if it has them.
const FIGURES: [&str; 22] = [
    "rate",
    "errors",
    "mean",
    "p50",
    "p75",
    "p90",
    "p95",
    "p99",
    "p99.9",
    "max",
    "service.p50",
    "service.p99",
    "tokens",
    "goodput",
    "ttft.p50",
    "ttft.p99",
    "tpot.p50",
    "tpot.p99",
    "e2e.p99",
    "first_event.p50",
    "first_event.p99",
    "gap.p99",
];

/// Saving of a run.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SaveArgs {
    /// save the run in a store, for weir history and trend [default with it: .weir/runs.db]
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = DEFAULT_STORE, help_heading = "Result")]
    save: Option<PathBuf>,
    /// label of the saved run, e.g. the branch
    #[arg(
        long,
        value_name = "TEXT",
        requires = "save",
        default_value = "",
        hide_default_value = true,
        help_heading = "Result"
    )]
    label: String,
}

/// Store that a run will be saved in.
#[derive(Debug)]
pub(crate) struct RunSaver {
    store: RunStore,
    note: RunNote,
}

impl SaveArgs {
    /// Opens the store, if the run is to be saved.
    ///
    /// # Errors
    /// One line, if it cannot be written.
    pub(crate) fn open(&self) -> Result<Option<RunSaver>, String> {
        let Some(path) = &self.save else { return Ok(None) };
        let store = RunStore::create(path).map_err(|error| format!("--save: {error}"))?;
        Ok(Some(RunSaver { store, note: RunNote { label: self.label.clone(), commit: commit::current() } }))
    }

    /// Store, if the run is to be saved.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.save.as_deref()
    }
}

impl RunSaver {
    /// Saves a run.
    ///
    /// # Errors
    /// One line, if the store cannot be written.
    pub(crate) fn save(mut self, run: &Run) -> Result<(), String> {
        self.store.save(run, &self.note, &figures_of(run)).map(drop).map_err(|error| format!("--save: {error}"))
    }
}

/// Figures of a run by the names of `weir compare`: the usual ones, and those of its objectives.
pub(crate) fn figures_of(run: &Run) -> Vec<(String, f64)> {
    let result = ToolResult::of_run(run.clone());
    let of_objectives = run.slo.iter().filter_map(|slo| slo.objective.split(['<', '>']).next());
    let mut figures: Vec<(String, f64)> = Vec::new();
    for name in FIGURES.into_iter().chain(of_objectives) {
        let Ok(selector) = name.trim().parse::<MetricSelector>() else { continue };
        let name = selector.metric().name;
        if let Some(value) = selector.value(&result).filter(|_| figures.iter().all(|(known, _)| *known != name)) {
            figures.push((name, value));
        }
    }
    figures
}
