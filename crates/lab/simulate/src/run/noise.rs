//! Busy gates, stalls, and callers in a closed loop.

use std::cmp::Reverse;

use super::{Kind, Simulation};
use crate::call::{GateState, SimulatedAttempt};
use crate::gate::{AttemptId, SimulatedOutcome};
use crate::stalls::HostStall;
use crate::world::StallTarget;
use weir_base::Nanos;

impl Simulation<'_> {
    /// Starts the closed loop, and the beat of gates that can be late.
    pub(super) fn start_background(&mut self) {
        for user in 0..self.scenario.callers.users {
            // Users start one after the other.
            self.schedule_closed_loop_attempt(Nanos(u64::from(user) * 20_000));
        }
        if self.scenario.gate_cost > Nanos::ZERO
            || self.scenario.stalls.iter().any(|stall| stall.target == StallTarget::Gates)
        {
            self.events.push(Reverse((
                self.pulse.beat(Nanos::ZERO, &self.lost_time),
                AttemptId::MAX,
                0,
                Kind::PulseBeat,
            )));
        }
    }

    pub(super) fn apply_stalls(&mut self) {
        for stalls in &mut self.stalls {
            if stalls.next_start() > self.now {
                continue;
            }
            let HostStall { from, to } = stalls.next_stall();
            match stalls.target() {
                StallTarget::Gates => self.gates_free_at = self.gates_free_at.max(to),
                StallTarget::Upstream => {
                    self.upstream_stalled += to - from;
                    self.upstream_stalled_until = self.upstream_stalled_until.max(to);
                }
            }
        }
    }

    /// Event for a gate: handled at once, or queued while the gates are busy.
    pub(super) fn reach_gate(&mut self, id: AttemptId, serial: u32, kind: Kind) {
        if self.gate_inbox.is_empty() && self.gates_free_at <= self.now {
            self.handle_at_gate(id, serial, kind);
        } else {
            self.gate_inbox.push_back((id, serial, kind));
        }
    }

    pub(super) fn process_gate_inbox(&mut self) {
        if let Some((id, serial, kind)) = self.gate_inbox.pop_front() {
            self.handle_at_gate(id, serial, kind);
        }
    }

    fn handle_at_gate(&mut self, id: AttemptId, serial: u32, kind: Kind) {
        if kind == Kind::PulseBeat {
            let next = self.pulse.beat(self.now, &self.lost_time);
            self.events.push(Reverse((next, AttemptId::MAX, 0, Kind::PulseBeat)));
            return;
        }
        let Some(call) = self.attempts.lookup(id, serial) else { return };
        let call = *call;
        if self.pulse.is_running() {
            self.gates_free_at = self.gates_free_at.max(self.now + self.scenario.gate_cost);
            self.gates[call.gate as usize].paused(self.pulse.total_pause(self.now, &self.lost_time));
        }
        match kind {
            Kind::GateArrival => self.arrive_at_gate(id),
            Kind::Response if call.gate_state == GateState::Running => {
                self.record.add_response(self.now, &call);
                self.attempts.get(id).gate_state = GateState::Done;
                self.report_completion(&call, SimulatedOutcome::Responded);
                self.attempts.release_if_done(id);
                self.apply_waiter_decisions();
                self.continue_closed_loop(&call);
            }
            Kind::UpstreamRejection if call.gate_state == GateState::Running => {
                self.report_completion(&call, SimulatedOutcome::Rejected);
                self.reject(id, false);
                self.apply_waiter_decisions();
            }
            Kind::GateRecheck if call.gate_state == GateState::Waiting => self.recheck(id, serial, &call),
            Kind::Deadline => self.expire(id, &call),
            _ => {}
        }
    }

    /// Schedules the next call of a user of the closed loop.
    fn schedule_closed_loop_attempt(&mut self, wait: Nanos) {
        // Numbers beyond those of the open loop: random draws of their own.
        let number = (1 << 40) + self.closed_loop_attempts;
        self.closed_loop_attempts += 1;
        let id = self.new_attempt(number, true);
        let serial = self.attempts.get(id).serial;
        self.events.push(Reverse((self.now + wait, id, serial, Kind::Start)));
    }

    /// Continues the closed loop after an attempt has ended.
    pub(super) fn continue_closed_loop(&mut self, call: &SimulatedAttempt) {
        if call.closed_loop {
            self.schedule_closed_loop_attempt(self.scenario.callers.think_time);
        }
    }
}
