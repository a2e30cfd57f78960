//! Search for the highest load that meets the objectives.
//!
//! - [`search`]: next load level: doubling, then bisection; the result is a bracket
//! - [`step`]: evaluation of a load level every second: it passes, fails, or needs more time
//! - [`tracker`]: evidence on one objective in a step
//! - [`answer`]: result as JSON
//! - [`usl`]: fit of the universal scalability law
//!
//! `docs/design/compare.md` has the reasons for these rules.

pub mod answer;
pub mod search;
pub mod step;
pub mod tracker;
#[cfg(test)]
mod trials;
pub mod usl;

pub use answer::CapacityReport;
pub use search::{Bracket, Search, StopReason, TrialResult};
pub use step::{CapacityStep, StepDecision, StepFailure};
