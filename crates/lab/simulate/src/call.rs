//! Attempts of callers, from their start until gate and replica are done with them.

use super::gate::AttemptId;
use weir_base::Nanos;
use weir_resilience::admission::{CallArrival, Priority};
use weir_resilience::culprits::CallOrigin;

/// State of an attempt for its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GateState {
    /// Before its start: waits for its backoff or think time.
    NotStarted,
    /// Queued at the gate.
    Waiting,
    /// At the upstream.
    Running,
    /// Ended for its caller.
    Done,
}

/// State of an attempt for its replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplicaState {
    None,
    Queued,
    InService,
}

/// Attempt of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedAttempt {
    /// Distinguishes attempts that had the same slot of the table; 0: free.
    pub(super) serial: u32,
    pub(super) gate_state: GateState,
    pub(super) replica_state: ReplicaState,
    pub(super) priority: Priority,
    pub(super) spread: u8,
    /// Number of the call and of the retry (0: first attempt); both index all random draws.
    pub(super) number: u64,
    pub(super) retry: u32,
    /// Unloaded p99 of the upstream at the start.
    pub(super) unloaded_p99: Nanos,
    pub(super) gate: u32,
    pub(super) replica: u32,
    pub(super) start: Nanos,
    /// Deadline of the caller, ...
    pub(super) deadline: Nanos,
    /// ... and as the gate got it; `NEVER` if it was not sent.
    pub(super) gate_deadline: Nanos,
    pub(super) upstream_start: Nanos,
    pub(super) in_flight_at_start: u32,
    /// Index of the kind of callers.
    pub(super) kind: u8,
    pub(super) origin: CallOrigin,
    /// Whether it belongs to the closed loop.
    pub(super) closed_loop: bool,
    /// Upstream's total stall time when its service started.
    pub(super) upstream_stalled: Nanos,
}

impl SimulatedAttempt {
    /// Maximum retries with random draws of their own.
    pub(super) const MAX_RETRIES: u32 = 31;

    pub(super) fn rng_index(&self) -> u64 {
        self.number * u64::from(Self::MAX_RETRIES + 1) + u64::from(self.retry)
    }

    pub(super) fn arrival(&self) -> CallArrival {
        CallArrival { deadline: self.gate_deadline, priority: self.priority, spread: self.spread, connection: None }
    }
}

/// Table of attempts; slots are reused.
#[derive(Debug, Default)]
pub(super) struct AttemptTable {
    slots: Vec<SimulatedAttempt>,
    free: Vec<AttemptId>,
    serial: u32,
}

impl AttemptTable {
    pub(super) fn add(&mut self, mut call: SimulatedAttempt) -> AttemptId {
        self.serial = self.serial.wrapping_add(1);
        call.serial = self.serial;
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = call;
            return id;
        }
        self.slots.push(call);
        (self.slots.len() - 1) as AttemptId
    }

    pub(super) fn get(&mut self, id: AttemptId) -> &mut SimulatedAttempt {
        &mut self.slots[id as usize]
    }

    /// Attempt with this serial number, if its slot has not been reused.
    pub(super) fn lookup(&mut self, id: AttemptId, serial: u32) -> Option<&mut SimulatedAttempt> {
        self.slots.get_mut(id as usize).filter(|call| call.serial == serial)
    }

    /// Number of attempts that match.
    #[cfg(test)]
    pub(super) fn count(&self, is: impl Fn(&SimulatedAttempt) -> bool) -> u64 {
        self.slots.iter().filter(|call| call.serial != 0 && is(call)).count() as u64
    }

    /// Frees the slot if both gate and replica are done with the attempt.
    pub(super) fn release_if_done(&mut self, id: AttemptId) {
        let call = &mut self.slots[id as usize];
        if call.gate_state == GateState::Done && call.replica_state == ReplicaState::None && call.serial != 0 {
            call.serial = 0;
            self.free.push(id);
        }
    }
}
