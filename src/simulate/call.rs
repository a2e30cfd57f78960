//! One try of a caller, while anybody knows of it.

use super::gate::AttemptId;
use crate::decide::Nanos;
use crate::decide::admit::{CallArrival, Priority};

/// Where a try is, for its gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GateState {
    /// It has not started yet.
    NotStarted,
    /// It waits at its gate.
    Waiting,
    /// It is at its replica.
    Running,
    /// Nobody waits for it.
    Done,
}

/// Where a try is, for its replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplicaState {
    None,
    Queued,
    InService,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SimulatedAttempt {
    /// Tells it from others that had the same place before.
    pub(super) serial: u32,
    pub(super) gate_state: GateState,
    pub(super) replica_state: ReplicaState,
    pub(super) priority: Priority,
    pub(super) spread: u8,
    /// Which call this is a try of, and which try; the first is 0. All dice of it are thrown by these.
    pub(super) number: u64,
    pub(super) retry: u32,
    /// How long 99 % take less than if nobody waits, as the upstream was when it came.
    pub(super) unloaded_p99: Nanos,
    pub(super) gate: u32,
    pub(super) replica: u32,
    pub(super) start: Nanos,
    /// Until then the caller waits.
    pub(super) deadline: Nanos,
    /// The same as the gate knows it.
    pub(super) gate_deadline: Nanos,
    pub(super) upstream_start: Nanos,
    pub(super) in_flight_at_start: u32,
    /// Which of the callers' kinds it is.
    pub(super) kind: u8,
    /// Whether it is one of the closed loop.
    pub(super) closed_loop: bool,
    /// How long the upstream had stalled, ever, when it began with this.
    pub(super) upstream_stalled: Nanos,
}

impl SimulatedAttempt {
    /// The most retries that have dice of their own.
    pub(super) const MAX_RETRIES: u32 = 31;

    pub(super) fn dice_index(&self) -> u64 {
        self.number * u64::from(Self::MAX_RETRIES + 1) + u64::from(self.retry)
    }

    pub(super) fn arrival(&self) -> CallArrival {
        CallArrival { deadline: self.gate_deadline, priority: self.priority, spread: self.spread }
    }
}

/// All of them; places are used again.
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

    /// The call that had this place then, if it has it still.
    pub(super) fn lookup(&mut self, id: AttemptId, serial: u32) -> Option<&mut SimulatedAttempt> {
        self.slots.get_mut(id as usize).filter(|call| call.serial == serial)
    }

    /// Those that are like this.
    #[cfg(test)]
    pub(super) fn count(&self, is: impl Fn(&SimulatedAttempt) -> bool) -> u64 {
        self.slots.iter().filter(|call| call.serial != 0 && is(call)).count() as u64
    }

    /// Forgets it if nobody knows of it any more.
    pub(super) fn release_if_done(&mut self, id: AttemptId) {
        let call = &mut self.slots[id as usize];
        if call.gate_state == GateState::Done && call.replica_state == ReplicaState::None && call.serial != 0 {
            call.serial = 0;
            self.free.push(id);
        }
    }
}
