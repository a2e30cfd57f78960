//! Run of a scenario with a limiter: an event loop in virtual time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::call::{AttemptTable, GateState, SimulatedAttempt};
use super::gate::{
    AttemptId, GateArrival, GateDecision, SimulatedGate, SimulatedOutcome, UpstreamCompletion, WaiterDecision,
};
use super::limiter::SimulatedLimiter;
use super::metrics::SimulationReport;
use super::record::SimulationRecord;
use super::replica::Replica;
use super::stalls::StallSequence;
use super::world::{Scenario, UnloadedLatency};
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_pace::schedule::{Schedule, ScheduledArrival};
use weir_resilience::admission::{PauseTotal, Pulse};

/// Resolution of the record that metrics are computed from.
const RECORD_INTERVAL: Nanos = Nanos::from_millis(100);

mod callers;
mod noise;
#[cfg(test)]
mod tests;
mod upstream;

/// Report of a scenario with a limiter; a pure function of both and the seed.
pub fn run(scenario: &Scenario, limiter: &SimulatedLimiter) -> SimulationReport {
    let unloaded = UnloadedLatency::of(&scenario.upstream.service);
    let mut simulation = Simulation::new(scenario, limiter, unloaded);
    simulation.run();
    SimulationReport::new(scenario, limiter, unloaded, &simulation.record)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Service is complete.
    ServiceDone,
    /// Rejection by the upstream.
    UpstreamRejection,
    /// Check of a queued attempt at its gate.
    GateRecheck,
    /// Start of an attempt.
    Start,
    /// Arrival at the gate.
    GateArrival,
    /// Arrival of the response at the gate.
    Response,
    /// Deadline of the caller.
    Deadline,
    /// Beat by which the gates' event loop measures its own lateness.
    PulseBeat,
}

/// Event: time, attempt, serial number of the attempt, kind.
type Event = (Nanos, AttemptId, u32, Kind);

/// State of a run.
struct Simulation<'a> {
    scenario: &'a Scenario,
    unloaded: UnloadedLatency,
    now: Nanos,
    events: BinaryHeap<Reverse<Event>>,
    deadlines: BinaryHeap<Reverse<(Nanos, AttemptId, u32)>>,
    stalls: Vec<StallSequence>,
    /// Events that wait for the busy or stalled gates, in order; handled from `gates_free_at` on.
    gate_inbox: VecDeque<(AttemptId, u32, Kind)>,
    gates_free_at: Nanos,
    pulse: Pulse,
    lost_time: PauseTotal,
    /// Total stall time of the upstream, and the end of its last stall.
    upstream_stalled: Nanos,
    upstream_stalled_until: Nanos,
    /// Total number of attempts of the closed loop.
    closed_loop_attempts: u64,
    arrivals: Schedule,
    next_arrival: Option<ScheduledArrival>,
    next_change: usize,
    attempts: AttemptTable,
    gates: Vec<Box<dyn SimulatedGate>>,
    replicas: Vec<Replica>,
    /// Next replica in turn.
    round_robin_index: usize,
    at_upstream: u32,
    queued: u32,
    unloaded_p99: Nanos,
    waiter_decisions: Vec<WaiterDecision>,
    record: SimulationRecord,
    gate_rng: SeededRng,
    priority_rng: SeededRng,
    service_rng: SeededRng,
    retry_rng: SeededRng,
    kind_rng: SeededRng,
    origin_rng: SeededRng,
}

impl<'a> Simulation<'a> {
    fn new(scenario: &'a Scenario, limiter: &SimulatedLimiter, unloaded: UnloadedLatency) -> Self {
        let rng = |salt| SeededRng::new(scenario.seed, salt);
        let mut arrivals = Schedule::new(scenario.callers.stages.clone(), scenario.callers.arrivals, scenario.seed);
        let next_arrival = arrivals.next();
        let upstream = &scenario.upstream;
        Self {
            scenario,
            unloaded,
            now: Nanos::ZERO,
            events: BinaryHeap::new(),
            deadlines: BinaryHeap::new(),
            stalls: scenario
                .stalls
                .iter()
                .enumerate()
                .map(|(at, stall)| StallSequence::new(stall, scenario.seed, at))
                .collect(),
            gate_inbox: VecDeque::new(),
            gates_free_at: Nanos::ZERO,
            pulse: Pulse::default(),
            lost_time: PauseTotal::new(),
            upstream_stalled: Nanos::ZERO,
            upstream_stalled_until: Nanos::ZERO,
            closed_loop_attempts: 0,
            arrivals,
            next_arrival,
            next_change: 0,
            attempts: AttemptTable::default(),
            gates: (0..scenario.gates.max(1)).map(|index| limiter.gate(scenario, index)).collect(),
            replicas: (0..upstream.replicas.max(1)).map(|_| Replica::new(upstream.slots, upstream.max_queue)).collect(),
            round_robin_index: 0,
            at_upstream: 0,
            queued: 0,
            unloaded_p99: unloaded.p99,
            waiter_decisions: Vec::new(),
            record: SimulationRecord::new(RECORD_INTERVAL),
            gate_rng: rng(0x6a7e),
            priority_rng: rng(0x9410),
            service_rng: rng(0x5e41),
            retry_rng: rng(0x4e74),
            kind_rng: rng(0x51d3),
            origin_rng: rng(0x0419),
        }
    }

    fn run(&mut self) {
        let end = self.scenario.length();
        self.start_background();
        loop {
            let event = self.events.peek().map_or(Nanos::NEVER, |Reverse(event)| event.0);
            let deadline = self.deadlines.peek().map_or(Nanos::NEVER, |Reverse(due)| due.0);
            let arrival = self.next_arrival.map_or(Nanos::NEVER, |arrival| arrival.intended);
            let change = self.scenario.changes.get(self.next_change).map_or(Nanos::NEVER, |change| change.at);
            let stall = self.stalls.iter().map(StallSequence::next_start).min().unwrap_or(Nanos::NEVER);
            let gates_free = if self.gate_inbox.is_empty() { Nanos::NEVER } else { self.gates_free_at.max(self.now) };
            let at = change.min(event).min(deadline).min(arrival).min(stall).min(gates_free);
            self.advance_to(at.min(end));
            if at >= end {
                return;
            }
            if at == stall {
                self.apply_stalls();
            } else if at == gates_free {
                self.process_gate_inbox();
            } else if at == change {
                self.apply_change();
            } else if at == event {
                self.handle_event();
            } else if at == deadline {
                // Events come first: a response exactly at the deadline is in time.
                self.handle_deadline();
            } else {
                self.start_arrival();
            }
        }
    }

    fn advance_to(&mut self, to: Nanos) {
        while self.record.window_end() <= to {
            let ends = self.record.window_end();
            self.record.advance_to(ends, self.at_upstream, self.queued);
            let limits = self.gates.iter().map(|gate| gate.limit().map(f64::from));
            self.record.close_window(limits.sum());
        }
        self.record.advance_to(to, self.at_upstream, self.queued);
        self.now = to;
    }

    fn arrive_at_gate(&mut self, id: AttemptId) {
        let call = *self.attempts.get(id);
        let deadline = call.deadline;
        let gate = &mut self.gates[call.gate as usize];
        let before = gate.queued();
        let decision = gate.arrive(
            self.now,
            GateArrival { id, call: &call.arrival(), origin: call.origin },
            &mut self.waiter_decisions,
        );
        self.queued = self.queued + gate.queued() - before;
        self.apply_waiter_decisions();
        match decision {
            GateDecision::Run => {
                self.deadlines.push(Reverse((deadline, id, call.serial)));
                self.send_upstream(id);
            }
            GateDecision::Wait(recheck_at) => {
                self.attempts.get(id).gate_state = GateState::Waiting;
                self.deadlines.push(Reverse((deadline, id, call.serial)));
                self.events.push(Reverse((recheck_at.max(self.now), id, call.serial, Kind::GateRecheck)));
            }
            GateDecision::Reject(_) => self.reject(id, true),
        }
    }

    /// Carries out decisions on queued attempts.
    fn apply_waiter_decisions(&mut self) {
        let mut decisions = std::mem::take(&mut self.waiter_decisions);
        for decision in decisions.drain(..) {
            match decision {
                WaiterDecision::Run(id) => self.send_upstream(id),
                WaiterDecision::Reject(id, _) => self.reject(id, true),
            }
        }
        self.waiter_decisions = decisions;
    }

    /// Rejection by the gate, or else by the upstream.
    fn reject(&mut self, id: AttemptId, by_gate: bool) {
        let call = *self.attempts.get(id);
        if by_gate {
            self.record.add_rejection(self.now, &call);
        } else {
            self.record.current.upstream_rejected += 1;
        }
        self.finish_or_retry(id);
    }

    fn handle_event(&mut self) {
        let Some(Reverse((_, id, serial, kind))) = self.events.pop() else { return };
        if kind == Kind::PulseBeat {
            return self.reach_gate(id, serial, kind);
        }
        let Some(call) = self.attempts.lookup(id, serial) else { return };
        let call = *call;
        match kind {
            Kind::ServiceDone => self.complete_service(id, &call),
            Kind::Start if call.gate_state == GateState::NotStarted => self.start_attempt(id),
            Kind::Start => {}
            _ => self.reach_gate(id, serial, kind),
        }
    }

    fn recheck(&mut self, id: AttemptId, serial: u32, call: &SimulatedAttempt) {
        let gate = &mut self.gates[call.gate as usize];
        let before = gate.queued();
        let recheck_at = gate.recheck(self.now, id, &mut self.waiter_decisions);
        self.queued = self.queued + gate.queued() - before;
        if let Some(recheck_at) = recheck_at {
            // Virtual time has to advance.
            let recheck_at = recheck_at.max(self.now + Nanos(1));
            self.events.push(Reverse((recheck_at, id, serial, Kind::GateRecheck)));
        }
        self.apply_waiter_decisions();
    }

    /// Reports a completion to the gate; `apply_waiter_decisions` has to follow.
    fn report_completion(&mut self, call: &SimulatedAttempt, outcome: SimulatedOutcome) {
        let gate = &mut self.gates[call.gate as usize];
        let before = gate.queued();
        let ended = UpstreamCompletion {
            start: call.upstream_start,
            in_flight_at_start: call.in_flight_at_start,
            lag: self.pulse.lag(call.upstream_start, self.now),
            outcome,
        };
        gate.released(self.now, call.origin);
        gate.completed(self.now, &ended, &mut self.waiter_decisions);
        self.queued = self.queued + gate.queued() - before;
    }

    fn handle_deadline(&mut self) {
        if let Some(Reverse((_, id, serial))) = self.deadlines.pop() {
            self.reach_gate(id, serial, Kind::Deadline);
        }
    }

    /// Deadline of the caller: ends the attempt if it is queued or in flight.
    fn expire(&mut self, id: AttemptId, call: &SimulatedAttempt) {
        match call.gate_state {
            GateState::Waiting => {
                let gate = &mut self.gates[call.gate as usize];
                let before = gate.queued();
                gate.withdraw(self.now, id);
                self.queued = self.queued + gate.queued() - before;
            }
            GateState::Running => {
                self.report_completion(
                    call,
                    if call.gate_deadline == Nanos::NEVER {
                        SimulatedOutcome::ClientClosed
                    } else {
                        SimulatedOutcome::DeadlineExceeded
                    },
                );
                if !self.scenario.upstream.continues_abandoned_work {
                    self.cancel_upstream(id, call);
                }
            }
            GateState::NotStarted | GateState::Done => return,
        }
        self.record.add_timeout(self.now, call);
        self.finish_or_retry(id);
        self.apply_waiter_decisions();
    }
}
