//! Saving of a run that has ended.

use std::path::PathBuf;

use super::commit;
use super::{RunNote, RunStore};
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
#[derive(Clone, Debug, Default)]
pub struct SaveOptions {
    /// File of the store.
    pub store: PathBuf,
    /// Label of the run, such as the branch.
    pub label: String,
}

/// Store that a run will be saved in.
#[derive(Debug)]
pub struct RunSaver {
    store: RunStore,
    note: RunNote,
}

impl RunSaver {
    /// Opens the store.
    ///
    /// # Errors
    /// One line, if it cannot be written.
    pub fn open(asked: &SaveOptions) -> Result<Self, String> {
        let store = RunStore::create(&asked.store).map_err(|error| format!("--save: {error}"))?;
        Ok(Self { store, note: RunNote { label: asked.label.clone(), commit: commit::current() } })
    }

    /// Saves a run.
    ///
    /// # Errors
    /// One line, if the store cannot be written.
    pub fn save(mut self, run: &Run) -> Result<(), String> {
        self.store.save(run, &self.note, &figures_of(run)).map(drop).map_err(|error| format!("--save: {error}"))
    }
}

/// Figures of a run by the names of `weir compare`: the usual ones, and those of its objectives.
pub fn figures_of(run: &Run) -> Vec<(String, f64)> {
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
