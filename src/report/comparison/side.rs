//! What is compared: sides of one or more runs, by whichever tool.

use std::str::FromStr;

use crate::measure::compare::{Better, Metric, MetricSample, RunFigure};
use crate::report::read::ToolResult;

/// A run that was kept.
#[derive(Clone, Debug)]
pub struct SavedRun {
    /// Its file.
    pub file: String,
    /// What it says.
    pub result: ToolResult,
}

/// Runs of the same thing.
#[derive(Clone, Debug)]
pub struct Side {
    /// The path that was given.
    pub name: String,
    /// Its runs.
    pub runs: Vec<SavedRun>,
}

/// A metric as asked for: `rate`, `mean`, `p50` (any percentile), `max`, `errors`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricSelector {
    /// Answers per second.
    Rate,
    /// The mean response time.
    Mean,
    /// A percentile, in [0, 100], of response times.
    Percentile(f64),
    /// The longest response time.
    Max,
    /// Failed requests as a share of all.
    Errors,
}

impl MetricSelector {
    /// What is compared if nothing is asked for.
    pub const DEFAULTS: [Self; 4] = [Self::Rate, Self::Percentile(50.0), Self::Percentile(99.0), Self::Errors];

    /// What it is, for a verdict.
    pub fn metric(&self) -> Metric {
        match self {
            Self::Rate => Metric::ratio("rate", "/s", Better::Higher),
            Self::Mean => Metric::ratio("mean", "ms", Better::Lower),
            Self::Percentile(percentile) => Metric::ratio(&format!("p{percentile}"), "ms", Better::Lower),
            Self::Max => Metric::ratio("max", "ms", Better::Lower),
            Self::Errors => Metric::fraction("errors", Better::Lower),
        }
    }

    /// The figure of a result, if it has it.
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

impl FromStr for MetricSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percentile = |digits: &str| match digits {
            // The habit of the field.
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
    /// Whether more than one run in five is not to be trusted.
    pub fn is_doubtful(&self) -> bool {
        self.sample(&MetricSelector::Rate, None).is_doubtful()
    }

    /// The figures of a metric; `rounds` says to which round each run belongs.
    pub(super) fn sample(&self, asked: &MetricSelector, rounds: Option<&[u64]>) -> MetricSample {
        let figures = self.runs.iter().enumerate().map(|(i, run)| RunFigure {
            round: rounds.and_then(|rounds| rounds.get(i)).copied().unwrap_or(i as u64),
            value: asked.value(&run.result).unwrap_or(f64::NAN),
            trusted: run.result.doubts.is_empty(),
        });
        MetricSample { figures: figures.collect(), in_rounds: rounds.is_some() }
    }
}
