//! Sides of a comparison: one or more runs, by any tool.

use std::collections::HashSet;
use std::str::FromStr;

use crate::read::ToolResult;
use weir_measure::compare::{Better, Metric, MetricSample, RunFigure};
use weir_measure::run_steps::RunStep;

/// Saved run.
#[derive(Clone, Debug)]
pub struct SavedRun {
    /// File of the run.
    pub file: String,
    /// Its result.
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

/// Metric by its name on the command line: `rate`, `mean`, `p50` (any percentile), `max`, `errors`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricSelector {
    /// Responses per second.
    Rate,
    /// Mean response time.
    Mean,
    /// Percentile, in [0, 100], of response times.
    Percentile(f64),
    /// Maximum response time.
    Max,
    /// Failed requests as a fraction of all.
    Errors,
}

impl MetricSelector {
    /// Default metrics.
    pub const DEFAULTS: [Self; 4] = [Self::Rate, Self::Percentile(50.0), Self::Percentile(99.0), Self::Errors];

    /// Metric of a verdict.
    pub fn metric(&self) -> Metric {
        match self {
            Self::Rate => Metric::ratio("rate", "/s", Better::Higher),
            Self::Mean => Metric::ratio("mean", "ms", Better::Lower),
            Self::Percentile(percentile) => Metric::ratio(&format!("p{percentile}"), "ms", Better::Lower),
            Self::Max => Metric::ratio("max", "ms", Better::Lower),
            Self::Errors => Metric::fraction("errors", Better::Lower),
        }
    }

    /// Figure of a result, if the result has it.
    pub fn value(&self, reading: &ToolResult) -> Option<f64> {
        match self {
            Self::Rate => reading.rate_per_s,
            Self::Mean => reading.mean_ms,
            Self::Percentile(percentile) => reading.percentile_ms(*percentile),
            Self::Max => reading.max_ms,
            Self::Errors => reading.error_fraction(),
        }
    }
}

impl MetricSelector {
    /// Time of a step, if it is one of times and the step has successes.
    pub(super) fn step_value(&self, step: &RunStep) -> Option<f64> {
        let times = Some(&step.response_ms).filter(|_| step.ok > 0)?;
        match self {
            Self::Rate | Self::Errors => None,
            Self::Mean => Some(times.mean),
            Self::Max => Some(times.max),
            Self::Percentile(percentile) => {
                Some(step.response_histogram().ok()?.quantile(percentile / 100.0).as_millis_f64())
            }
        }
    }
}

impl FromStr for MetricSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percentile = |digits: &str| match digits {
            // Common names of these percentiles.
            "999" => Some(99.9),
            "9999" => Some(99.99),
            digits => digits.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p)),
        };
        let asked = match text {
            "rate" => Some(Self::Rate),
            "mean" => Some(Self::Mean),
            "median" => Some(Self::Percentile(50.0)),
            "max" => Some(Self::Max),
            "errors" => Some(Self::Errors),
            _ => text.strip_prefix('p').and_then(percentile).map(Self::Percentile),
        };
        asked.ok_or_else(|| format!("unknown metric '{text}'; choose rate, mean, p50 (any percentile), max or errors"))
    }
}

impl Side {
    /// Whether more than one run in five is not trusted.
    pub fn is_doubtful(&self) -> bool {
        self.sample(&MetricSelector::Rate, None).is_doubtful()
    }

    /// Figures of a metric; `rounds` has the round of each run.
    pub(super) fn sample(&self, asked: &MetricSelector, rounds: Option<&[u64]>) -> MetricSample {
        self.figures(rounds, |result| asked.value(result))
    }

    /// Figures of a step.
    pub(super) fn step_sample(
        &self,
        name: &str,
        rounds: Option<&[u64]>,
        value: impl Fn(&RunStep) -> Option<f64>,
    ) -> MetricSample {
        self.figures(rounds, |result| value(result.steps().iter().find(|step| step.name == name)?))
    }

    /// Names of the steps of all runs, in order.
    pub(super) fn step_names(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        let steps = self.runs.iter().flat_map(|run| run.result.steps());
        steps.map(|step| step.name.as_str()).filter(|name| seen.insert(*name)).collect()
    }

    fn figures(&self, rounds: Option<&[u64]>, value: impl Fn(&ToolResult) -> Option<f64>) -> MetricSample {
        let figures = self.runs.iter().enumerate().map(|(i, run)| RunFigure {
            round: rounds.and_then(|rounds| rounds.get(i)).copied().unwrap_or(i as u64),
            value: value(&run.result).unwrap_or(f64::NAN),
            trusted: run.result.doubts.is_empty(),
        });
        MetricSample { figures: figures.collect(), in_rounds: rounds.is_some() }
    }
}
