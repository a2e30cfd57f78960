//! Sides of a comparison: one or more runs, by any tool.

use std::collections::HashSet;

use super::metric_selector::MetricSelector;
use crate::read::ToolResult;
use weir_measure::Run;
use weir_measure::compare::{MetricSample, RunFigure};
use weir_measure::run_steps::RunStep;

/// Result of weir or another tool, as read from a file.
#[derive(Clone, Debug)]
pub struct SavedRun {
    /// File of the run.
    pub file: String,
    /// Result of the run.
    pub result: ToolResult,
}

/// Runs of the same thing.
#[derive(Clone, Debug)]
pub struct Side {
    /// Path that was given.
    pub name: String,
    /// Runs of the side.
    pub runs: Vec<SavedRun>,
}

impl Side {
    /// Default metrics of sides, by what all of their runs have.
    pub fn default_metrics(sides: &[Self]) -> Vec<MetricSelector> {
        let runs = || sides.iter().flat_map(|side| &side.runs).map(|saved| saved.result.run.as_deref());
        let all = |has: fn(&Run) -> bool| runs().all(|run| run.is_some_and(has));
        if all(|run| run.llm.as_ref().is_some_and(|llm| llm.with_usage > 0)) {
            return MetricSelector::LLM_DEFAULTS.to_vec();
        }
        if all(|run| run.streams.as_ref().is_some_and(|streams| streams.events > 0)) {
            return MetricSelector::STREAM_DEFAULTS.to_vec();
        }
        MetricSelector::DEFAULTS.to_vec()
    }

    /// Whether more than one run in five is not trusted.
    pub fn is_doubtful(&self) -> bool {
        self.sample(&MetricSelector::Rate, None).is_doubtful()
    }

    /// Figures of a metric; `rounds` has the round of each run.
    pub(super) fn sample(&self, selector: &MetricSelector, rounds: Option<&[u64]>) -> MetricSample {
        let is_trusted = |result: &ToolResult| result.is_trusted_at(selector.quantile(), |run| run.requests.ok);
        self.figures(rounds, |result| selector.value(result), is_trusted)
    }

    /// Figures of a step.
    pub(super) fn step_sample(
        &self,
        name: &str,
        rounds: Option<&[u64]>,
        quantile: Option<f64>,
        value: impl Fn(&RunStep) -> Option<f64>,
    ) -> MetricSample {
        let count = |run: &Run| run.steps.iter().find(|step| step.name == name).map_or(0, |step| step.ok);
        let is_trusted = |result: &ToolResult| result.is_trusted_at(quantile, count);
        self.figures(rounds, |result| value(result.steps().iter().find(|step| step.name == name)?), is_trusted)
    }

    /// Names of the steps of all runs, in order.
    pub(super) fn step_names(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        let steps = self.runs.iter().flat_map(|run| run.result.steps());
        steps.map(|step| step.name.as_str()).filter(|name| seen.insert(*name)).collect()
    }

    fn figures(
        &self,
        rounds: Option<&[u64]>,
        value: impl Fn(&ToolResult) -> Option<f64>,
        is_trusted: impl Fn(&ToolResult) -> bool,
    ) -> MetricSample {
        let figures = self.runs.iter().enumerate().map(|(i, run)| RunFigure {
            round: rounds.and_then(|rounds| rounds.get(i)).copied().unwrap_or(i as u64),
            value: value(&run.result).unwrap_or(f64::NAN),
            trusted: is_trusted(&run.result),
        });
        MetricSample { figures: figures.collect(), in_rounds: rounds.is_some() }
    }
}
