//! Verdicts on variants that were each run several times: better, worse, the same, or inconclusive.
//!
//! Figures are compared per *run*, never per request: the requests of a run share its conditions, so a million of them
//! are no more evidence about the next run than the run itself.
//!
//! - [`metric`]: metric and the direction that is better
//! - [`sample`]: figures of a variant, one per run, with trust
//! - [`verdict`]: verdicts over many pairs at once
//! - `shift`: estimate of a difference by bootstrap
//!
//! `docs/design/compare.md` has the reasons for these statistics, and simulations.

mod effect;
pub mod metric;
pub mod sample;
pub mod verdict;

pub use metric::{Better, ComparisonScale, Metric};
pub use sample::{MetricSample, RunFigure};
pub use verdict::{ComparisonVerdict, ConfidenceInterval, Finding, MIN_RUNS, Pair, Settings, UnclearReason, judge};

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
mod tests;
