//! Search for the highest load that meets the objectives.
//!
//! - [`search`]: next load level: doubling, then bisection; the result is a bracket
//! - [`step`]: evaluation of a load level every second: it passes, fails, or needs more time
//! - [`tracker`]: evidence on one objective in a step
//! - [`idle`]: evidence on objectives without load
//! - [`report`]: result as JSON
//! - [`usl`]: fit of the universal scalability law
//!
//! `docs/design/compare.md` has the reasons for these rules.

pub mod idle;
pub mod report;
pub mod search;
pub mod step;
pub mod tracker;
pub mod usl;

pub use idle::{IdleFinding, IdleProbe};
pub use report::CapacityReport;
pub use search::{Bracket, Search, StopReason, TrialResult};
pub use step::{CapacityStep, StepDecision, StepFailure};

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
mod tests;
