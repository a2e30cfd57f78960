//! What a limiter is asked.

use std::fmt;

use crate::decide::Nanos;
use crate::decide::admit::{CallArrival, Rejection};

/// A call, as gates know it; not in use by another while this one has a place or waits.
pub type AttemptId = u32;

/// What becomes of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateDecision {
    /// It goes to the upstream.
    Run,
    /// It waits; [`SimulatedGate::recheck`] is asked at that time, if it still does.
    Wait(Nanos),
    /// It is not taken.
    Reject(Rejection),
}

/// What becomes of one that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaiterDecision {
    /// It goes to the upstream.
    Run(AttemptId),
    /// It has waited for nothing.
    Reject(AttemptId, Rejection),
}

/// How one that was at the upstream has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedOutcome {
    /// With an answer.
    Responded,
    /// Its deadline has come before the answer.
    DeadlineExceeded,
    /// Its caller has broken off.
    ClientClosed,
    /// The upstream has refused it.
    Rejected,
}

/// One that was at the upstream.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamCompletion {
    /// When it went there.
    pub start: Nanos,
    /// How many were there for this gate then, itself included.
    pub in_flight_at_start: u32,
    /// How late the gate's own process was when it found that out, about.
    pub lag: Nanos,
    /// How it ended.
    pub outcome: SimulatedOutcome,
}

/// Stands before the upstream and says who goes there. Time never goes back.
pub trait SimulatedGate: fmt::Debug {
    /// The gate's own process has done nothing for so long, ever: what it is told next may have happened meanwhile.
    fn paused(&mut self, _: Nanos) {}
    /// Somebody comes. `told` gets what becomes of others by it, here and below.
    fn arrive(&mut self, now: Nanos, id: AttemptId, call: &CallArrival, told: &mut Vec<WaiterDecision>)
    -> GateDecision;
    /// One is back.
    fn completed(&mut self, now: Nanos, ended: &UpstreamCompletion, told: &mut Vec<WaiterDecision>);
    /// One still waits that said when it is to be looked at: when to look again, unless it is told.
    fn recheck(&mut self, _: Nanos, _: AttemptId, _: &mut Vec<WaiterDecision>) -> Option<Nanos> {
        None
    }
    /// One that waits goes away.
    fn withdraw(&mut self, _: AttemptId) {}
    /// How many may be at the upstream; none: any number.
    fn limit(&self) -> Option<u32>;
    /// How many are there.
    fn in_flight(&self) -> u32;
    /// How many wait here.
    fn queued(&self) -> u32 {
        0
    }
}
