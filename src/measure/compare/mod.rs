//! Is one better than the other, and is the difference real? Verdicts on variants that were each run several times.
//!
//! What is compared is a figure per *run*, never per request: the requests of a run share its warmth, its neighbours and
//! its luck, so a million of them say no more about the next run than the run itself does.
//!
//! - [`metric`]: what is compared, and whether more of it is better
//! - [`sample`]: a variant's figures, one per run, and whether the runs may be trusted
//! - [`verdict`]: better, worse, the same, or unclear and why; over many pairs at once
//! - `shift`: how far apart two samples are, and how well that is known
//!
//! `docs/design/compare.md` says why these statistics and no others, with the simulations behind them.

pub mod metric;
pub mod sample;
mod shift;
#[cfg(test)]
mod trials;
pub mod verdict;

pub use metric::{Better, ComparisonScale, Metric};
pub use sample::{MetricSample, RunFigure};
pub use verdict::{ComparisonVerdict, Finding, Pair, Settings, UnclearReason, judge};
