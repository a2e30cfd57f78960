//! Current limit of a learnt pace.

use super::AdaptivePace;
use super::stage::{LimitKind, PaceStage};

/// Bound of a learnt pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearnedLimit {
    /// No limit is known: the requests in flight double with each round trip.
    RampUp,
    /// Rate.
    Rate,
    /// Requests in flight.
    Concurrency,
    /// Pause after a rejection, and the single request after it.
    Pause,
}

impl AdaptivePace {
    /// Current bound.
    pub fn learned_limit(&self) -> LearnedLimit {
        match (self.stage, self.kind) {
            (PaceStage::Paused { .. } | PaceStage::Probing { .. }, _) => LearnedLimit::Pause,
            (PaceStage::Open, LimitKind::Concurrency) => LearnedLimit::Concurrency,
            (PaceStage::Open, LimitKind::Free) => LearnedLimit::RampUp,
            (PaceStage::Open, LimitKind::Rate | LimitKind::Unsure) => LearnedLimit::Rate,
        }
    }
}
