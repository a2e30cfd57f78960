//! How much can it take? A search for the highest load that keeps the objectives.
//!
//! - [`search`]: which load to try next: doubling, then bisection; the answer is a bracket
//! - [`step`]: one load, second by second: does it hold, does it fail, or is more time needed to tell
//! - [`tracker`]: one objective in a step
//! - [`answer`]: the result, as people's tools read it
//! - [`usl`]: how throughput grows with users: the universal scalability law, fitted
//!
//! `docs/design/compare.md` says why these rules.

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
