//! Callers: arrivals, their random draws, and retries.

use std::cmp::Reverse;

use super::{Kind, Simulation};
use crate::call::{GateState, ReplicaState, SimulatedAttempt};
use crate::gate::AttemptId;
use crate::world::{DeadlineSignal, KindWork};
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_resilience::admission::Priority;
use weir_resilience::culprits::CallOrigin;

/// Times until a call's deadlines.
struct CallTimeouts {
    /// The caller's own.
    caller: Nanos,
    /// That of which the gate is told.
    gate: Nanos,
}

impl Simulation<'_> {
    pub(super) fn start_arrival(&mut self) {
        let Some(arrival) = self.next_arrival.take() else { return };
        self.next_arrival = self.arrivals.next();
        let id = self.new_attempt(arrival.number, false);
        self.start_attempt(id);
    }

    pub(super) fn new_attempt(&mut self, number: u64, closed_loop: bool) -> AttemptId {
        let kind = self.draw_kind(number);
        let work = self.work_of(kind);
        let priority = work.priority.unwrap_or_else(|| self.draw_priority(number));
        self.attempts.add(SimulatedAttempt {
            serial: 0,
            gate_state: GateState::NotStarted,
            replica_state: ReplicaState::None,
            priority,
            spread: 0,
            number,
            retry: 0,
            unloaded_p99: self.unloaded_p99,
            gate: 0,
            replica: 0,
            start: self.now,
            deadline: Nanos::NEVER,
            gate_deadline: Nanos::NEVER,
            upstream_start: Nanos::ZERO,
            in_flight_at_start: 0,
            kind,
            origin: self.draw_origin(number, kind, &work),
            closed_loop,
            upstream_stalled: Nanos::ZERO,
        })
    }

    fn draw_kind(&self, number: u64) -> u8 {
        let kinds = &self.scenario.callers.kinds;
        let mut remaining = self.kind_rng.unit_at(2 * number) * kinds.iter().map(|kind| kind.weight).sum::<f64>();
        for (at, kind) in kinds.iter().enumerate() {
            remaining -= kind.weight;
            if remaining <= 0.0 {
                return at as u8;
            }
        }
        0
    }

    pub(super) fn work_of(&self, kind: u8) -> KindWork {
        self.scenario.callers.kinds.get(usize::from(kind)).map_or_else(KindWork::default, |kind| kind.work)
    }

    fn draw_origin(&self, number: u64, kind: u8, work: &KindWork) -> CallOrigin {
        let below = |at: u64, count: u64| ((self.origin_rng.unit_at(at) * count as f64).ceil() as u64).max(1) - 1;
        let route = work.route + below(2 * number, work.routes.max(1));
        let caller = if work.callers == 0 { number } else { below(2 * number + 1, work.callers) };
        let hash = |name: u64, salt: u64| SeededRng::new(name, salt).bits();
        CallOrigin { route: hash(route, 0), caller: hash(caller, 1 + u64::from(kind)) }
    }

    fn draw_deadlines(&self, call: &SimulatedAttempt) -> CallTimeouts {
        let Some(kind) = self.scenario.callers.kinds.get(usize::from(call.kind)) else {
            let deadline = self.scenario.callers.deadline;
            return CallTimeouts { caller: deadline, gate: deadline };
        };
        let caller = kind.deadline_range.at(self.kind_rng.unit_at(2 * call.number + 1));
        let is_sent = kind.deadline_signal == DeadlineSignal::Sent;
        CallTimeouts { caller, gate: if is_sent { caller } else { Nanos::NEVER } }
    }

    fn draw_priority(&self, number: u64) -> Priority {
        let weights = self.scenario.callers.priorities;
        let mut remaining = self.priority_rng.unit_at(number) * weights.iter().sum::<f64>();
        for priority in Priority::ALL {
            remaining -= weights[priority.index()];
            if remaining <= 0.0 && weights[priority.index()] > 0.0 {
                return priority;
            }
        }
        Priority::Normal
    }

    /// Sends an attempt to a random gate.
    pub(super) fn start_attempt(&mut self, id: AttemptId) {
        let call = *self.attempts.get(id);
        let CallTimeouts { caller: timeout, gate: gate_timeout } = self.draw_deadlines(&call);
        let draw = self.gate_rng.unit_at(call.rng_index()) * self.gates.len() as f64;
        let call = self.attempts.get(id);
        // A draw is in (0, n]: the integer part selects the gate, the remainder spreads the calls.
        call.gate = (draw.ceil() as u32).max(1) - 1;
        call.spread = ((draw - f64::from(call.gate)) * 255.0) as u8;
        (call.start, call.deadline, call.unloaded_p99) = (self.now, self.now + timeout, self.unloaded_p99);
        call.gate_deadline = if gate_timeout < Nanos::NEVER { self.now + gate_timeout } else { gate_timeout };
        let call = *call;
        self.record.add_arrival(&call);
        self.reach_gate(id, call.serial, Kind::GateArrival);
    }

    /// Ends an attempt without a response, and schedules its retry, if any.
    pub(super) fn finish_or_retry(&mut self, id: AttemptId) {
        self.attempts.get(id).gate_state = GateState::Done;
        let call = *self.attempts.get(id);
        self.attempts.release_if_done(id);
        self.continue_closed_loop(&call);
        let Some(retry) = self
            .scenario
            .callers
            .retry
            .filter(|retry| call.retry < retry.max_retries.min(SimulatedAttempt::MAX_RETRIES))
        else {
            return;
        };
        // Jitter: 0.5 to 1.5 times the backoff.
        let jitter = 0.5 + self.retry_rng.unit_at(call.rng_index());
        let wait = retry.first_wait.as_secs_f64() * f64::from(1_u32 << call.retry) * jitter;
        let retried = SimulatedAttempt {
            gate_state: GateState::NotStarted,
            replica_state: ReplicaState::None,
            retry: call.retry + 1,
            ..call
        };
        let id = self.attempts.add(retried);
        let serial = self.attempts.get(id).serial;
        self.events.push(Reverse((self.now + Nanos::from_secs_f64(wait), id, serial, Kind::Start)));
    }
}
