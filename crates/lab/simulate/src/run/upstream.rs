//! Upstream: replicas, their slots, and changes of both.

use std::cmp::Reverse;

use super::{Kind, Simulation};
use crate::call::{GateState, ReplicaState, SimulatedAttempt};
use crate::gate::AttemptId;
use crate::world::ChangeEffect;
use weir_base::Nanos;

/// Time that an upstream needs for a rejection.
const REJECTION_DELAY: Nanos = Nanos::MILLI;

impl Simulation<'_> {
    pub(super) fn apply_change(&mut self) {
        let change = self.scenario.changes[self.next_change];
        self.next_change += 1;
        self.unloaded_p99 = self.scenario.capacity(change.at, self.unloaded).p99;
        for index in 0..self.replicas.len() {
            if change.replica.is_none_or(|only| only as usize == index) {
                match change.effect {
                    ChangeEffect::Slots(slots) => self.replicas[index].slots = slots,
                    ChangeEffect::Slowdown(slower) => self.replicas[index].slowdown_factor = slower,
                }
                self.fill_slots(index);
            }
        }
    }

    /// Sends an attempt to a replica, which queues, serves or rejects it.
    pub(super) fn send_upstream(&mut self, id: AttemptId) {
        let index = self.choose_replica();
        let in_flight = self.gates[self.attempts.get(id).gate as usize].in_flight();
        let accepts = self.replicas[index].accepts();
        let call = self.attempts.get(id);
        (call.gate_state, call.upstream_start, call.in_flight_at_start, call.replica) =
            (GateState::Running, self.now, in_flight, index as u32);
        if !accepts {
            let serial = call.serial;
            self.events.push(Reverse((self.now + REJECTION_DELAY, id, serial, Kind::UpstreamRejection)));
            return;
        }
        call.replica_state = ReplicaState::Queued;
        self.at_upstream += 1;
        self.replicas[index].enqueue(id);
        self.fill_slots(index);
    }

    /// Replica with the fewest calls in flight; of several, the next one in turn.
    fn choose_replica(&mut self) -> usize {
        let count = self.replicas.len();
        self.round_robin_index = (self.round_robin_index + 1) % count;
        let in_turn = (self.round_robin_index..count).chain(0..self.round_robin_index);
        in_turn.min_by_key(|at| self.replicas[*at].in_flight()).unwrap_or(self.round_robin_index)
    }

    /// Gives a replica's free slots to its queued calls.
    fn fill_slots(&mut self, index: usize) {
        while let Some(id) = self.replicas[index].start_next() {
            let kind = self.attempts.get(id).kind;
            let work = self.work_of(kind);
            let call = self.attempts.get(id);
            call.replica_state = ReplicaState::InService;
            let factor = if (work.heavy_from..work.heavy_until).contains(&call.start) { work.factor } else { 1.0 };
            let service = self.scenario.upstream.service.at(&self.service_rng, call.rng_index());
            // During a stall no service starts.
            let stalled = self.upstream_stalled_until - self.now;
            let took =
                stalled + Nanos::from_secs_f64(service.as_secs_f64() * factor * self.replicas[index].slowdown_factor);
            call.upstream_stalled = self.upstream_stalled;
            self.events.push(Reverse((self.now + took, id, call.serial, Kind::ServiceDone)));
        }
    }

    pub(super) fn complete_service(&mut self, id: AttemptId, call: &SimulatedAttempt) {
        if call.replica_state != ReplicaState::InService {
            return;
        }
        if self.upstream_stalled > call.upstream_stalled {
            // Stalled in the meantime: service takes as much longer.
            let done_at = self.now + (self.upstream_stalled - call.upstream_stalled);
            self.attempts.get(id).upstream_stalled = self.upstream_stalled;
            self.events.push(Reverse((done_at, id, call.serial, Kind::ServiceDone)));
            return;
        }
        self.release_slot(id, call);
        if call.gate_state == GateState::Running {
            self.reach_gate(id, call.serial, Kind::Response);
        }
        self.attempts.release_if_done(id);
        self.apply_waiter_decisions();
    }

    /// Frees the slot of an attempt.
    fn release_slot(&mut self, id: AttemptId, call: &SimulatedAttempt) {
        let index = call.replica as usize;
        self.attempts.get(id).replica_state = ReplicaState::None;
        self.replicas[index].busy -= 1;
        self.at_upstream -= 1;
        self.fill_slots(index);
    }

    /// Cancels an attempt at its replica.
    pub(super) fn cancel_upstream(&mut self, id: AttemptId, call: &SimulatedAttempt) {
        match call.replica_state {
            ReplicaState::None => {}
            ReplicaState::Queued => {
                self.replicas[call.replica as usize].cancel(id);
                self.attempts.get(id).replica_state = ReplicaState::None;
                self.at_upstream -= 1;
            }
            ReplicaState::InService => self.release_slot(id, call),
        }
    }
}
