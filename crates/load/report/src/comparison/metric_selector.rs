//! Metrics that a comparison can be limited to.

use std::str::FromStr;

use crate::read::ToolResult;
use weir_measure::compare::{Better, Metric};
use weir_measure::run_steps::RunStep;
use weir_measure::slo::TimeKind;

/// Metric by its name on the command line: `rate`, `p99`, `errors`, `ttft.p99`, `tokens`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricSelector {
    /// Responses per second.
    Rate,
    /// Figure of times; only weir reports others than response times.
    Time(TimeKind, TimeStatistic),
    /// Failed requests as a fraction of all.
    Errors,
    /// Requests to a language model that met the objectives of each, as a fraction of all.
    Goodput,
    /// Tokens that a language model has written, per second.
    Tokens,
}

/// Figure of times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimeStatistic {
    /// Mean.
    Mean,
    /// Percentile, in [0, 100].
    Percentile(f64),
    /// Maximum.
    Max,
}

const MEDIAN: TimeStatistic = TimeStatistic::Percentile(50.0);
const P99: TimeStatistic = TimeStatistic::Percentile(99.0);

impl MetricSelector {
    /// Default metrics of requests.
    pub const DEFAULTS: [Self; 4] =
        [Self::Rate, Self::Time(TimeKind::Response, MEDIAN), Self::Time(TimeKind::Response, P99), Self::Errors];
    /// Default metrics of streams of events.
    pub const STREAM_DEFAULTS: [Self; 5] = [
        Self::Rate,
        Self::Time(TimeKind::FirstEvent, MEDIAN),
        Self::Time(TimeKind::FirstEvent, P99),
        Self::Time(TimeKind::Gap, P99),
        Self::Errors,
    ];
    /// Default metrics of language models.
    pub const LLM_DEFAULTS: [Self; 6] = [
        Self::Tokens,
        Self::Time(TimeKind::Ttft, MEDIAN),
        Self::Time(TimeKind::Ttft, P99),
        Self::Time(TimeKind::Tpot, MEDIAN),
        Self::Time(TimeKind::Tpot, P99),
        Self::Errors,
    ];

    /// Metric of a verdict.
    pub fn metric(&self) -> Metric {
        match self {
            Self::Rate => Metric::ratio("rate", "/s", Better::Higher),
            Self::Tokens => Metric::ratio("tokens", "/s", Better::Higher),
            Self::Time(kind, statistic) => {
                let clock = if *kind == TimeKind::Response { String::new() } else { format!("{}.", kind.name()) };
                Metric::ratio(&format!("{clock}{}", statistic.name()), "ms", Better::Lower)
            }
            Self::Errors => Metric::fraction("errors", Better::Lower),
            Self::Goodput => Metric::fraction("goodput", Better::Higher),
        }
    }

    /// Quantile that it is, in [0, 1]; a maximum is the last one.
    pub(super) fn quantile(&self) -> Option<f64> {
        match self {
            Self::Time(_, TimeStatistic::Percentile(percentile)) => Some(percentile / 100.0),
            Self::Time(_, TimeStatistic::Max) => Some(1.0),
            _ => None,
        }
    }

    /// Figure of a result, if the result has it.
    pub fn value(&self, reading: &ToolResult) -> Option<f64> {
        let llm = || reading.run.as_ref()?.llm.as_ref();
        match self {
            Self::Rate => reading.rate_per_s,
            Self::Tokens => llm().map(|llm| llm.output_tokens_per_s).filter(|tokens| *tokens > 0.0),
            Self::Time(TimeKind::Response, TimeStatistic::Mean) => reading.mean_ms,
            Self::Time(TimeKind::Response, TimeStatistic::Percentile(percentile)) => reading.percentile_ms(*percentile),
            Self::Time(TimeKind::Response, TimeStatistic::Max) => reading.max_ms,
            Self::Time(kind, statistic) => {
                let times = kind.times_of(reading.run.as_deref()?)?;
                match statistic {
                    TimeStatistic::Mean => times.mean_ms(),
                    TimeStatistic::Percentile(percentile) => times.quantile_ms(percentile / 100.0),
                    TimeStatistic::Max => times.max_ms(),
                }
            }
            Self::Errors => reading.error_fraction(),
            // A request that failed met no objective.
            Self::Goodput => llm().map(|llm| llm.good as f64 / reading.requests.max(1) as f64),
        }
    }

    /// Time of a step, if it is one of response times and the step has successes.
    pub(super) fn step_value(&self, step: &RunStep) -> Option<f64> {
        let times = &step.response_ms;
        let Self::Time(TimeKind::Response, statistic) = self else { return None };
        match statistic {
            TimeStatistic::Mean => times.mean,
            TimeStatistic::Max => times.max,
            TimeStatistic::Percentile(percentile) => step.response_histogram().ok()?.quantile_ms(percentile / 100.0),
        }
    }
}

impl TimeStatistic {
    fn name(self) -> String {
        match self {
            Self::Mean => "mean".to_owned(),
            Self::Percentile(percentile) => format!("p{percentile}"),
            Self::Max => "max".to_owned(),
        }
    }

    fn named(text: &str) -> Option<Self> {
        let percentile = |digits: &str| match digits {
            // Common names of these percentiles.
            "999" => Some(99.9),
            "9999" => Some(99.99),
            digits => digits.parse::<f64>().ok().filter(|p| (0.0..=100.0).contains(p)),
        };
        match text {
            "mean" => Some(Self::Mean),
            "median" => Some(MEDIAN),
            "max" => Some(Self::Max),
            _ => text.strip_prefix('p').and_then(percentile).map(Self::Percentile),
        }
    }
}

impl FromStr for MetricSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let selector = match text {
            "rate" => Some(Self::Rate),
            "errors" => Some(Self::Errors),
            "goodput" => Some(Self::Goodput),
            "tokens" => Some(Self::Tokens),
            _ => match text.split_once('.').map(|(kind, statistic)| (TimeKind::named(kind), statistic)) {
                // The point may be that of a percentile.
                None | Some((None, _)) => {
                    TimeStatistic::named(text).map(|statistic| Self::Time(TimeKind::Response, statistic))
                }
                Some((Some(TimeKind::Iteration), _)) => None,
                Some((Some(kind), statistic)) => {
                    TimeStatistic::named(statistic).map(|statistic| Self::Time(kind, statistic))
                }
            },
        };
        selector.ok_or_else(|| {
            format!(
                "unknown metric '{text}'; choose rate, mean, p50 (any percentile), max, errors, tokens, goodput, or a time \
                 of streams such as ttft.p99, tpot.p50, first_event.p99, gap.max"
            )
        })
    }
}
