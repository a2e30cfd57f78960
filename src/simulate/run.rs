//! A world, a limiter, and the events until the end.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::call::{AttemptTable, GateState, ReplicaState, SimulatedAttempt};
use super::figures::SimulationReport;
use super::gate::{AttemptId, GateDecision, SimulatedGate, SimulatedOutcome, UpstreamCompletion, WaiterDecision};
use super::limiter::SimulatedLimiter;
use super::record::SimulationRecord;
use super::replica::Replica;
use super::stalls::StallSequence;
use super::world::{self, ChangeEffect, ReplicaBalance, Scenario, UnloadedLatency};
use crate::decide::Nanos;
use crate::decide::admit::{PauseTotal, Priority, Pulse, Rejection};
use crate::decide::dice::Dice;
use crate::decide::schedule::{Schedule, ScheduledArrival};

/// What figures are told by.
const RECORD_INTERVAL: Nanos = Nanos::from_millis(100);
/// An upstream that refuses takes so long to say so.
const REJECTION_DELAY: Nanos = Nanos::MILLI;

mod noise;
#[cfg(test)]
mod tests;

/// Lets a world run with a limiter. The same world, seed and limiter give the same report.
pub fn run(world: &Scenario, limiter: &SimulatedLimiter) -> SimulationReport {
    let plain = UnloadedLatency::of(&world.upstream.service);
    let mut simulation = Simulation::new(world, limiter, plain);
    simulation.run();
    SimulationReport::new(world, limiter, plain, &simulation.record)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The upstream is done with it.
    ServiceDone,
    /// The upstream refuses it.
    UpstreamRejection,
    /// It is to be looked at in its gate.
    GateRecheck,
    /// It starts.
    Start,
    /// It comes to its gate.
    GateArrival,
    /// Its answer does.
    Response,
    /// Its caller's patience is over.
    Deadline,
    /// The gates' event loop looks whether it is late.
    PulseBeat,
}

/// When, who (with its serial number), and what.
type Event = (Nanos, AttemptId, u32, Kind);

struct Simulation<'a> {
    world: &'a Scenario,
    unloaded: UnloadedLatency,
    now: Nanos,
    events: BinaryHeap<Reverse<Event>>,
    deadlines: BinaryHeap<Reverse<(Nanos, AttemptId, u32)>>,
    stalls: Vec<StallSequence>,
    /// What has come to the gates while they had something else to do, and when they have time for it.
    gate_inbox: VecDeque<(AttemptId, u32, Kind)>,
    gates_free_at: Nanos,
    pulse: Pulse,
    lost_time: PauseTotal,
    /// The upstream's stalls together, ever, and the end of the last one.
    upstream_stalled: Nanos,
    upstream_stalled_until: Nanos,
    /// Calls of the closed loop, ever.
    closed_loop_attempts: u64,
    arrivals: Schedule,
    next_arrival: Option<ScheduledArrival>,
    next_change: usize,
    attempts: AttemptTable,
    gates: Vec<Box<dyn SimulatedGate>>,
    replicas: Vec<Replica>,
    /// The next in turn.
    round_robin_index: usize,
    at_upstream: u32,
    queued: u32,
    unloaded_p99: Nanos,
    waiter_decisions: Vec<WaiterDecision>,
    record: SimulationRecord,
    gate_dice: Dice,
    priority_dice: Dice,
    service_dice: Dice,
    retry_dice: Dice,
    kind_dice: Dice,
}

impl<'a> Simulation<'a> {
    fn new(world: &'a Scenario, limiter: &SimulatedLimiter, unloaded: UnloadedLatency) -> Self {
        let dice = |salt| Dice::new(world.seed, salt);
        let mut arrivals = Schedule::new(world.callers.stages.clone(), world.callers.arrivals, world.seed);
        let next_arrival = arrivals.next();
        let upstream = &world.upstream;
        Self {
            world,
            unloaded,
            now: Nanos::ZERO,
            events: BinaryHeap::new(),
            deadlines: BinaryHeap::new(),
            stalls: world
                .stalls
                .iter()
                .enumerate()
                .map(|(at, stall)| StallSequence::new(stall, world.seed, at))
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
            gates: (0..world.gates.max(1)).map(|index| limiter.gate(world, index)).collect(),
            replicas: (0..upstream.replicas.max(1)).map(|_| Replica::new(upstream.slots, upstream.overflow)).collect(),
            round_robin_index: 0,
            at_upstream: 0,
            queued: 0,
            unloaded_p99: unloaded.p99,
            waiter_decisions: Vec::new(),
            record: SimulationRecord::new(RECORD_INTERVAL),
            gate_dice: dice(0x6a7e),
            priority_dice: dice(0x9410),
            service_dice: dice(0x5e41),
            retry_dice: dice(0x4e74),
            kind_dice: dice(0x51d3),
        }
    }

    fn run(&mut self) {
        let end = self.world.length();
        self.start_background();
        loop {
            let event = self.events.peek().map_or(Nanos::NEVER, |Reverse(event)| event.0);
            let deadline = self.deadlines.peek().map_or(Nanos::NEVER, |Reverse(due)| due.0);
            let arrival = self.next_arrival.map_or(Nanos::NEVER, |arrival| arrival.intended);
            let change = self.world.changes.get(self.next_change).map_or(Nanos::NEVER, |change| change.at);
            // An answer at the very deadline is in time.
            let stall = self.stalls.iter().map(StallSequence::next_start).min().unwrap_or(Nanos::NEVER);
            let turn = if self.gate_inbox.is_empty() { Nanos::NEVER } else { self.gates_free_at.max(self.now) };
            let at = change.min(event).min(deadline).min(arrival).min(stall).min(turn);
            self.advance_to(at.min(end));
            if at >= end {
                return;
            }
            if at == stall {
                self.apply_stalls();
            } else if at == turn {
                self.process_gate_inbox();
            } else if at == change {
                self.apply_change();
            } else if at == event {
                self.handle_event();
            } else if at == deadline {
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

    fn apply_change(&mut self) {
        let change = self.world.changes[self.next_change];
        self.next_change += 1;
        self.unloaded_p99 = self.world.capacity(change.at, self.unloaded).p99;
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

    fn start_arrival(&mut self) {
        let Some(arrival) = self.next_arrival.take() else { return };
        self.next_arrival = self.arrivals.next();
        let id = self.new_attempt(arrival.number, false);
        self.start_attempt(id);
    }

    fn new_attempt(&mut self, number: u64, looped: bool) -> AttemptId {
        let priority = self.draw_priority(number);
        let kind = self.draw_kind(number);
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
            closed_loop: looped,
            upstream_stalled: Nanos::ZERO,
        })
    }

    fn draw_kind(&self, number: u64) -> u8 {
        let kinds = &self.world.callers.kinds;
        let mut left = self.kind_dice.unit_at(2 * number) * kinds.iter().map(|kind| kind.weight).sum::<f64>();
        for (at, kind) in kinds.iter().enumerate() {
            left -= kind.weight;
            if left <= 0.0 {
                return at as u8;
            }
        }
        0
    }

    /// How long its caller waits, and how long the gate believes that.
    fn draw_deadlines(&self, call: &SimulatedAttempt) -> (Nanos, Nanos) {
        let Some(kind) = self.world.callers.kinds.get(usize::from(call.kind)) else {
            return (self.world.callers.deadline, self.world.callers.deadline);
        };
        let (least, most) = kind.deadline_range;
        let part = self.kind_dice.unit_at(2 * call.number + 1);
        let patience = least + Nanos(((most - least).0 as f64 * part) as u64);
        (patience, if kind.deadline_signal == world::DeadlineSignal::Sent { patience } else { Nanos::NEVER })
    }

    fn draw_priority(&self, number: u64) -> Priority {
        let weights = self.world.callers.priorities;
        let mut left = self.priority_dice.unit_at(number) * weights.iter().sum::<f64>();
        for priority in Priority::ALL {
            left -= weights[priority.index()];
            if left <= 0.0 && weights[priority.index()] > 0.0 {
                return priority;
            }
        }
        Priority::Normal
    }

    /// A try is sent to a gate.
    fn start_attempt(&mut self, id: AttemptId) {
        let call = *self.attempts.get(id);
        let (patience, told) = self.draw_deadlines(&call);
        let draw = self.gate_dice.unit_at(call.dice_index()) * self.gates.len() as f64;
        let call = self.attempts.get(id);
        // A draw is in (0, n]: its whole part says which gate, what is left spreads the calls.
        call.gate = (draw.ceil() as u32).max(1) - 1;
        call.spread = ((draw - f64::from(call.gate)) * 255.0) as u8;
        (call.start, call.deadline, call.unloaded_p99) = (self.now, self.now + patience, self.unloaded_p99);
        call.gate_deadline = if told < Nanos::NEVER { self.now + told } else { told };
        let call = *call;
        self.record.add_arrival(&call);
        self.reach_gate(id, call.serial, Kind::GateArrival);
    }

    fn arrive_at_gate(&mut self, id: AttemptId) {
        let call = *self.attempts.get(id);
        let deadline = call.deadline;
        let gate = &mut self.gates[call.gate as usize];
        let before = gate.queued();
        let entry = gate.arrive(self.now, id, &call.arrival(), &mut self.waiter_decisions);
        self.queued = self.queued + gate.queued() - before;
        self.apply_waiter_decisions();
        match entry {
            GateDecision::Run => {
                self.deadlines.push(Reverse((deadline, id, call.serial)));
                self.send_upstream(id);
            }
            GateDecision::Wait(look) => {
                self.attempts.get(id).gate_state = GateState::Waiting;
                self.deadlines.push(Reverse((deadline, id, call.serial)));
                self.events.push(Reverse((look.max(self.now), id, call.serial, Kind::GateRecheck)));
            }
            GateDecision::Reject(refusal) => self.reject(id, Some(refusal)),
        }
    }

    /// Does what gates have told.
    fn apply_waiter_decisions(&mut self) {
        let mut told = std::mem::take(&mut self.waiter_decisions);
        for one in told.drain(..) {
            match one {
                WaiterDecision::Run(id) => self.send_upstream(id),
                WaiterDecision::Reject(id, refusal) => self.reject(id, Some(refusal)),
            }
        }
        self.waiter_decisions = told;
    }

    /// It has not been taken, by its gate or by the upstream.
    fn reject(&mut self, id: AttemptId, by_gate: Option<Rejection>) {
        let call = *self.attempts.get(id);
        if by_gate.is_some() {
            self.record.add_rejection(self.now, &call);
        } else {
            self.record.current.failed += 1;
        }
        self.finish_or_retry(id, by_gate);
    }

    /// Nobody waits for it any more.
    fn finish_or_retry(&mut self, id: AttemptId, refusal: Option<Rejection>) {
        self.attempts.get(id).gate_state = GateState::Done;
        let call = *self.attempts.get(id);
        self.attempts.release_if_done(id);
        self.continue_closed_loop(&call);
        let Some(retry) =
            self.world.callers.retry.filter(|retry| call.retry < retry.max_retries.min(SimulatedAttempt::MAX_RETRIES))
        else {
            return;
        };
        // Half to one and a half of the time, by dice.
        let dice = 0.5 + self.retry_dice.unit_at(call.dice_index());
        let mut wait = retry.first_wait.as_secs_f64() * f64::from(1_u32 << call.retry) * dice;
        if let Some(refusal) = refusal.filter(|_| retry.honors_retry_after) {
            wait = wait.max(refusal.retry_after.as_secs_f64() * (0.5 + dice));
        }
        let again = SimulatedAttempt {
            gate_state: GateState::NotStarted,
            replica_state: ReplicaState::None,
            retry: call.retry + 1,
            ..call
        };
        let id = self.attempts.add(again);
        let serial = self.attempts.get(id).serial;
        self.events.push(Reverse((self.now + Nanos::from_secs_f64(wait), id, serial, Kind::Start)));
    }

    /// It goes to the upstream.
    fn send_upstream(&mut self, id: AttemptId) {
        let index = self.choose_replica();
        let beside = self.gates[self.attempts.get(id).gate as usize].in_flight();
        let takes = self.replicas[index].accepts();
        let call = self.attempts.get(id);
        (call.gate_state, call.upstream_start, call.in_flight_at_start, call.replica) =
            (GateState::Running, self.now, beside, index as u32);
        if !takes {
            let serial = call.serial;
            self.events.push(Reverse((self.now + REJECTION_DELAY, id, serial, Kind::UpstreamRejection)));
            return;
        }
        call.replica_state = ReplicaState::Queued;
        self.at_upstream += 1;
        self.replicas[index].enqueue(id);
        self.fill_slots(index);
    }

    fn choose_replica(&mut self) -> usize {
        let count = self.replicas.len();
        self.round_robin_index = (self.round_robin_index + 1) % count;
        let in_turn = (self.round_robin_index..count).chain(0..self.round_robin_index);
        match self.world.upstream.balance {
            ReplicaBalance::RoundRobin => self.round_robin_index,
            ReplicaBalance::LeastInFlight => {
                in_turn.min_by_key(|at| self.replicas[*at].in_flight()).unwrap_or(self.round_robin_index)
            }
        }
    }

    /// Gives a replica's free slots to those that wait there.
    fn fill_slots(&mut self, index: usize) {
        while let Some(id) = self.replicas[index].start_next() {
            let call = self.attempts.get(id);
            call.replica_state = ReplicaState::InService;
            let service = self.world.upstream.service.at(&self.service_dice, call.dice_index());
            // During a stall nothing begins.
            let still = self.upstream_stalled_until - self.now;
            let took = still + Nanos::from_secs_f64(service.as_secs_f64() * self.replicas[index].current_slowdown());
            call.upstream_stalled = self.upstream_stalled;
            self.events.push(Reverse((self.now + took, id, call.serial, Kind::ServiceDone)));
        }
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
        let look = gate.recheck(self.now, id, &mut self.waiter_decisions);
        self.queued = self.queued + gate.queued() - before;
        if let Some(look) = look {
            // Time has to go on, whatever it says.
            let look = look.max(self.now + Nanos(1));
            self.events.push(Reverse((look, id, serial, Kind::GateRecheck)));
        }
        self.apply_waiter_decisions();
    }

    fn complete_service(&mut self, id: AttemptId, call: &SimulatedAttempt) {
        if call.replica_state != ReplicaState::InService {
            return;
        }
        if self.upstream_stalled > call.upstream_stalled {
            // It stood still meanwhile.
            let again = self.now + (self.upstream_stalled - call.upstream_stalled);
            self.attempts.get(id).upstream_stalled = self.upstream_stalled;
            self.events.push(Reverse((again, id, call.serial, Kind::ServiceDone)));
            return;
        }
        self.release_slot(id, call);
        if call.gate_state == GateState::Running {
            self.reach_gate(id, call.serial, Kind::Response);
        }
        self.attempts.release_if_done(id);
        self.apply_waiter_decisions();
    }

    /// Its slot is free.
    fn release_slot(&mut self, id: AttemptId, call: &SimulatedAttempt) {
        let index = call.replica as usize;
        self.attempts.get(id).replica_state = ReplicaState::None;
        self.replicas[index].busy -= 1;
        self.at_upstream -= 1;
        self.fill_slots(index);
    }

    /// Tells its gate; what the gate tells is to be heeded.
    fn report_completion(&mut self, call: &SimulatedAttempt, how: SimulatedOutcome) {
        let gate = &mut self.gates[call.gate as usize];
        let before = gate.queued();
        let ended = UpstreamCompletion {
            start: call.upstream_start,
            in_flight_at_start: call.in_flight_at_start,
            lag: self.pulse.lag(call.upstream_start, self.now),
            outcome: how,
        };
        gate.completed(self.now, &ended, &mut self.waiter_decisions);
        self.queued = self.queued + gate.queued() - before;
    }

    fn handle_deadline(&mut self) {
        if let Some(Reverse((_, id, serial))) = self.deadlines.pop() {
            self.reach_gate(id, serial, Kind::Deadline);
        }
    }

    /// Its caller waits no longer.
    fn expire(&mut self, id: AttemptId, call: &SimulatedAttempt) {
        match call.gate_state {
            GateState::Waiting => {
                let gate = &mut self.gates[call.gate as usize];
                let before = gate.queued();
                gate.withdraw(id);
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
                if !self.world.upstream.continues_abandoned_work {
                    self.cancel_upstream(id, call);
                }
            }
            GateState::NotStarted | GateState::Done => return,
        }
        self.record.add_deadline_exceeded(self.now, call);
        self.finish_or_retry(id, None);
        self.apply_waiter_decisions();
    }

    /// The upstream stops working on it.
    fn cancel_upstream(&mut self, id: AttemptId, call: &SimulatedAttempt) {
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
