//! Interface between the simulation and a gate with its limiter.

use std::fmt;

use weir_base::Nanos;
use weir_resilience::admission::{CallArrival, Rejection};
use weir_resilience::culprits::CallOrigin;

/// Identifier of an attempt, unique among those in flight or queued.
pub type AttemptId = u32;

/// Attempt that arrives, and what its caller says of it.
#[derive(Clone, Copy, Debug)]
pub struct GateArrival<'a> {
    /// Identifier of the attempt.
    pub id: AttemptId,
    /// Its call.
    pub call: &'a CallArrival,
    /// Its route and its caller.
    pub origin: CallOrigin,
}

/// Decision on an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateDecision {
    /// Sent to the upstream.
    Run,
    /// Queued; [`SimulatedGate::recheck`] is called at that time if it still is.
    Wait(Nanos),
    /// Rejected.
    Reject(Rejection),
}

/// Decision on a queued attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaiterDecision {
    /// Sent to the upstream.
    Run(AttemptId),
    /// Rejected.
    Reject(AttemptId, Rejection),
}

/// Outcome of an attempt at the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedOutcome {
    /// Response.
    Responded,
    /// Deadline before the response.
    DeadlineExceeded,
    /// Caller disconnected.
    ClientClosed,
    /// Rejected by the upstream.
    Rejected,
}

/// Attempt that ended at the upstream.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamCompletion {
    /// Time at which it was sent.
    pub start: Nanos,
    /// This gate's attempts in flight at that time, itself included.
    pub in_flight_at_start: u32,
    /// Estimated delay between the completion and the gate's noticing it.
    pub lag: Nanos,
    /// Outcome.
    pub outcome: SimulatedOutcome,
}

/// Gate in front of the upstream: admits, queues or rejects attempts. `now` never decreases; `decisions` collects what
/// a call decides on queued attempts.
pub trait SimulatedGate: fmt::Debug {
    /// Reports the total time that the gate's process has been stalled; events may be late by that.
    fn paused(&mut self, _: Nanos) {}
    /// Handles an arrival.
    fn arrive(&mut self, now: Nanos, arrival: GateArrival<'_>, decisions: &mut Vec<WaiterDecision>) -> GateDecision;
    /// Handles the end of an attempt of this origin at the upstream, before [`Self::completed`].
    fn released(&mut self, _: Nanos, _: CallOrigin) {}
    /// Handles an attempt that ended at the upstream.
    fn completed(&mut self, now: Nanos, ended: &UpstreamCompletion, decisions: &mut Vec<WaiterDecision>);
    /// Checks a queued attempt at the time that it was queued until; returns the next time, or none if it is decided.
    fn recheck(&mut self, _: Nanos, _: AttemptId, _: &mut Vec<WaiterDecision>) -> Option<Nanos> {
        None
    }
    /// Removes a queued attempt whose caller has given up.
    fn withdraw(&mut self, _: Nanos, _: AttemptId) {}
    /// Limit of attempts at the upstream; none: unlimited.
    fn limit(&self) -> Option<u32>;
    /// Attempts at the upstream.
    fn in_flight(&self) -> u32;
    /// Queued attempts.
    fn queued(&self) -> u32 {
        0
    }
}
