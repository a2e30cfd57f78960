//! Growth of a learnt limit.

use super::Nanos;
use super::constants::NEAR_STEP_FRACTION;

/// Latest step by which a limit has grown, and progress towards the next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct PaceStep {
    /// Time of the step.
    pub(super) at: Nanos,
    /// Requests accepted since then.
    pub(super) credit: u64,
    /// Fraction by which the next step raises the rate.
    pub(super) fraction: f64,
}

impl Default for PaceStep {
    fn default() -> Self {
        Self { at: Nanos::ZERO, credit: 0, fraction: NEAR_STEP_FRACTION }
    }
}
