//! Published limiters, for comparison: ports from their authors' publications, with their defaults.
//!
//! None considers deadlines or priorities. Except for [`codel`], none has a queue: calls above the limit are rejected.

pub mod aimd;
pub mod codel;
pub mod envoy;
pub mod fixed;
pub mod gradient2;
pub mod vegas;

use std::fmt;

use super::gate::{GateArrival, GateDecision, SimulatedGate, UpstreamCompletion, WaiterDecision};
use weir_base::Nanos;
use weir_resilience::admission::{Rejection, RejectionReason};

/// Algorithm that adapts a limit.
pub(super) trait LimitAlgorithm: fmt::Debug {
    /// Handles the passing of time, before each arrival and completion.
    fn tick(&mut self, _: Nanos) {}
    /// Handles a completion.
    fn completed(&mut self, now: Nanos, ended: &UpstreamCompletion);
    /// Limit of calls at the upstream; none: unlimited.
    fn limit(&self) -> Option<u32>;
}

/// Gate that rejects calls above the limit of an algorithm.
#[derive(Debug)]
pub(super) struct LimitGate<A> {
    algorithm: A,
    in_flight: u32,
}

impl<A> LimitGate<A> {
    pub(super) fn new(algorithm: A) -> Self {
        Self { algorithm, in_flight: 0 }
    }
}

pub(super) const REJECTION: Rejection = Rejection { reason: RejectionReason::QueueFull, retry_after: Nanos::SECOND };

impl<A: LimitAlgorithm> SimulatedGate for LimitGate<A> {
    fn arrive(&mut self, now: Nanos, _: GateArrival<'_>, _: &mut Vec<WaiterDecision>) -> GateDecision {
        self.algorithm.tick(now);
        if self.algorithm.limit().is_some_and(|limit| self.in_flight >= limit) {
            return GateDecision::Reject(REJECTION);
        }
        self.in_flight += 1;
        GateDecision::Run
    }

    fn completed(&mut self, now: Nanos, ended: &UpstreamCompletion, _: &mut Vec<WaiterDecision>) {
        self.in_flight -= 1;
        self.algorithm.tick(now);
        self.algorithm.completed(now, ended);
    }

    fn limit(&self) -> Option<u32> {
        self.algorithm.limit()
    }

    fn in_flight(&self) -> u32 {
        self.in_flight
    }
}
