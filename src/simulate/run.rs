//! A world, a limiter, and the events until the end.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::call::{Call, Calls, Place, Work};
use super::figures::Report;
use super::gate::{Ended, Entry, Gate, How, Id, Told};
use super::limiter::Limiter;
use super::record::Record;
use super::replica::Replica;
use super::stalls::Stalls;
use super::world::{self, Balance, To, Unhindered, World};
use crate::decide::Nanos;
use crate::decide::admit::{Lost, Priority, Pulse, Refusal};
use crate::decide::dice::Dice;
use crate::decide::schedule::{Arrival, Schedule};

/// What figures are told by.
const WINDOW: Nanos = Nanos::from_millis(100);
/// An upstream that refuses takes so long to say so.
const REFUSAL: Nanos = Nanos::MILLI;

mod noise;
#[cfg(test)]
mod tests;

/// Lets a world run with a limiter. The same world, seed and limiter give the same report.
pub fn run(world: &World, limiter: &Limiter) -> Report {
    let plain = Unhindered::of(&world.upstream.service);
    let mut simulation = Simulation::new(world, limiter, plain);
    simulation.run();
    Report::new(world, limiter, plain, &simulation.record)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The upstream is done with it.
    Done,
    /// The upstream refuses it.
    Refused,
    /// It is to be looked at in its gate.
    Overdue,
    /// It starts.
    Retry,
    /// It comes to its gate.
    Arrives,
    /// Its answer does.
    Answered,
    /// Its caller's patience is over.
    Deadline,
    /// The gates' event loop looks whether it is late.
    Beat,
}

/// When, who (with its serial number), and what.
type Event = (Nanos, Id, u32, Kind);

struct Simulation<'a> {
    world: &'a World,
    plain: Unhindered,
    now: Nanos,
    events: BinaryHeap<Reverse<Event>>,
    deadlines: BinaryHeap<Reverse<(Nanos, Id, u32)>>,
    stalls: Vec<Stalls>,
    /// What has come to the gates while they had something else to do, and when they have time for it.
    inbox: VecDeque<(Id, u32, Kind)>,
    free_at: Nanos,
    pulse: Pulse,
    lost: Lost,
    /// The upstream's stalls together, ever, and the end of the last one.
    stalled: Nanos,
    stalls_until: Nanos,
    /// Calls of the closed loop, ever.
    looped: u64,
    arrivals: Schedule,
    next: Option<Arrival>,
    changes: usize,
    calls: Calls,
    gates: Vec<Box<dyn Gate>>,
    replicas: Vec<Replica>,
    /// The next in turn.
    turn: usize,
    at_upstream: u32,
    waiting: u32,
    unhindered: Nanos,
    told: Vec<Told>,
    record: Record,
    gate_dice: Dice,
    priority_dice: Dice,
    service_dice: Dice,
    retry_dice: Dice,
    kind_dice: Dice,
}

impl<'a> Simulation<'a> {
    fn new(world: &'a World, limiter: &Limiter, plain: Unhindered) -> Self {
        let dice = |salt| Dice::new(world.seed, salt);
        let mut arrivals = Schedule::new(world.callers.stages.clone(), world.callers.arrivals, world.seed);
        let next = arrivals.next();
        let upstream = &world.upstream;
        Self {
            world,
            plain,
            now: Nanos::ZERO,
            events: BinaryHeap::new(),
            deadlines: BinaryHeap::new(),
            stalls: world.stalls.iter().enumerate().map(|(at, stall)| Stalls::new(stall, world.seed, at)).collect(),
            inbox: VecDeque::new(),
            free_at: Nanos::ZERO,
            pulse: Pulse::default(),
            lost: Lost::new(),
            stalled: Nanos::ZERO,
            stalls_until: Nanos::ZERO,
            looped: 0,
            arrivals,
            next,
            changes: 0,
            calls: Calls::default(),
            gates: (0..world.gates.max(1)).map(|index| limiter.gate(world, index)).collect(),
            replicas: (0..upstream.replicas.max(1)).map(|_| Replica::new(upstream.slots, upstream.overflow)).collect(),
            turn: 0,
            at_upstream: 0,
            waiting: 0,
            unhindered: plain.p99,
            told: Vec::new(),
            record: Record::new(WINDOW),
            gate_dice: dice(0x6a7e),
            priority_dice: dice(0x9410),
            service_dice: dice(0x5e41),
            retry_dice: dice(0x4e74),
            kind_dice: dice(0x51d3),
        }
    }

    fn run(&mut self) {
        let end = self.world.length();
        self.begin();
        loop {
            let event = self.events.peek().map_or(Nanos::NEVER, |Reverse(event)| event.0);
            let deadline = self.deadlines.peek().map_or(Nanos::NEVER, |Reverse(due)| due.0);
            let arrival = self.next.map_or(Nanos::NEVER, |arrival| arrival.intended);
            let change = self.world.changes.get(self.changes).map_or(Nanos::NEVER, |change| change.at);
            // An answer at the very deadline is in time.
            let stall = self.stalls.iter().map(Stalls::from).min().unwrap_or(Nanos::NEVER);
            let turn = if self.inbox.is_empty() { Nanos::NEVER } else { self.free_at.max(self.now) };
            let at = change.min(event).min(deadline).min(arrival).min(stall).min(turn);
            self.pass(at.min(end));
            if at >= end {
                return;
            }
            if at == stall {
                self.stall();
            } else if at == turn {
                self.turn();
            } else if at == change {
                self.change();
            } else if at == event {
                self.event();
            } else if at == deadline {
                self.deadline();
            } else {
                self.arrival();
            }
        }
    }

    fn pass(&mut self, to: Nanos) {
        while self.record.ends() <= to {
            let ends = self.record.ends();
            self.record.pass(ends, self.at_upstream, self.waiting);
            let limits = self.gates.iter().map(|gate| gate.limit().map(f64::from));
            self.record.close(limits.sum());
        }
        self.record.pass(to, self.at_upstream, self.waiting);
        self.now = to;
    }

    fn change(&mut self) {
        let change = self.world.changes[self.changes];
        self.changes += 1;
        self.unhindered = self.world.capacity(change.at, self.plain).p99;
        for index in 0..self.replicas.len() {
            if change.replica.is_none_or(|only| only as usize == index) {
                match change.to {
                    To::Slots(slots) => self.replicas[index].slots = slots,
                    To::Slower(slower) => self.replicas[index].slower = slower,
                }
                self.fill(index);
            }
        }
    }

    fn arrival(&mut self) {
        let Some(arrival) = self.next.take() else { return };
        self.next = self.arrivals.next();
        let id = self.new_call(arrival.number, false);
        self.start(id);
    }

    fn new_call(&mut self, number: u64, looped: bool) -> Id {
        let priority = self.priority(number);
        let kind = self.kind(number);
        self.calls.add(Call {
            serial: 0,
            place: Place::Ahead,
            work: Work::None,
            priority,
            spread: 0,
            number,
            retry: 0,
            unhindered: self.unhindered,
            gate: 0,
            replica: 0,
            start: self.now,
            deadline: Nanos::NEVER,
            told: Nanos::NEVER,
            began: Nanos::ZERO,
            beside: 0,
            kind,
            looped,
            stalled: Nanos::ZERO,
        })
    }

    fn kind(&self, number: u64) -> u8 {
        let kinds = &self.world.callers.kinds;
        let mut left = self.kind_dice.unit_at(2 * number) * kinds.iter().map(|kind| kind.share).sum::<f64>();
        for (at, kind) in kinds.iter().enumerate() {
            left -= kind.share;
            if left <= 0.0 {
                return at as u8;
            }
        }
        0
    }

    /// How long its caller waits, and how long the gate believes that.
    fn patience(&self, call: &Call) -> (Nanos, Nanos) {
        let Some(kind) = self.world.callers.kinds.get(usize::from(call.kind)) else {
            return (self.world.callers.deadline, self.world.callers.deadline);
        };
        let (least, most) = kind.patience;
        let part = self.kind_dice.unit_at(2 * call.number + 1);
        let patience = least + Nanos(((most - least).0 as f64 * part) as u64);
        (patience, if kind.told == world::Told::Deadline { patience } else { Nanos::NEVER })
    }

    fn priority(&self, number: u64) -> Priority {
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
    fn start(&mut self, id: Id) {
        let call = *self.calls.get(id);
        let (patience, told) = self.patience(&call);
        let draw = self.gate_dice.unit_at(call.draw()) * self.gates.len() as f64;
        let call = self.calls.get(id);
        // A draw is in (0, n]: its whole part says which gate, what is left spreads the calls.
        call.gate = (draw.ceil() as u32).max(1) - 1;
        call.spread = ((draw - f64::from(call.gate)) * 255.0) as u8;
        (call.start, call.deadline, call.unhindered) = (self.now, self.now + patience, self.unhindered);
        call.told = if told < Nanos::NEVER { self.now + told } else { told };
        let call = *call;
        self.record.came(&call);
        self.reaches_gate(id, call.serial, Kind::Arrives);
    }

    fn arrives(&mut self, id: Id) {
        let call = *self.calls.get(id);
        let deadline = call.deadline;
        let gate = &mut self.gates[call.gate as usize];
        let before = gate.waiting();
        let entry = gate.arrive(self.now, id, &call.arrival(), &mut self.told);
        self.waiting = self.waiting + gate.waiting() - before;
        self.heed();
        match entry {
            Entry::Run => {
                self.deadlines.push(Reverse((deadline, id, call.serial)));
                self.send(id);
            }
            Entry::Wait(look) => {
                self.calls.get(id).place = Place::Waiting;
                self.deadlines.push(Reverse((deadline, id, call.serial)));
                self.events.push(Reverse((look.max(self.now), id, call.serial, Kind::Overdue)));
            }
            Entry::Refuse(refusal) => self.refused(id, Some(refusal)),
        }
    }

    /// Does what gates have told.
    fn heed(&mut self) {
        let mut told = std::mem::take(&mut self.told);
        for one in told.drain(..) {
            match one {
                Told::Run(id) => self.send(id),
                Told::Refuse(id, refusal) => self.refused(id, Some(refusal)),
            }
        }
        self.told = told;
    }

    /// It has not been taken, by its gate or by the upstream.
    fn refused(&mut self, id: Id, by_gate: Option<Refusal>) {
        let call = *self.calls.get(id);
        if by_gate.is_some() {
            self.record.refused(self.now, &call);
        } else {
            self.record.current.failed += 1;
        }
        self.leave(id, by_gate);
    }

    /// Nobody waits for it any more.
    fn leave(&mut self, id: Id, refusal: Option<Refusal>) {
        self.calls.get(id).place = Place::Over;
        let call = *self.calls.get(id);
        self.calls.settle(id);
        self.again(&call);
        let Some(retry) = self.world.callers.retry.filter(|retry| call.retry < retry.times.min(Call::RETRIES)) else {
            return;
        };
        // Half to one and a half of the time, by dice.
        let dice = 0.5 + self.retry_dice.unit_at(call.draw());
        let mut wait = retry.after.as_secs_f64() * f64::from(1_u32 << call.retry) * dice;
        if let Some(refusal) = refusal.filter(|_| retry.obeys) {
            wait = wait.max(refusal.retry_after.as_secs_f64() * (0.5 + dice));
        }
        let again = Call { place: Place::Ahead, work: Work::None, retry: call.retry + 1, ..call };
        let id = self.calls.add(again);
        let serial = self.calls.get(id).serial;
        self.events.push(Reverse((self.now + Nanos::from_secs_f64(wait), id, serial, Kind::Retry)));
    }

    /// It goes to the upstream.
    fn send(&mut self, id: Id) {
        let index = self.choose();
        let beside = self.gates[self.calls.get(id).gate as usize].in_flight();
        let takes = self.replicas[index].takes();
        let call = self.calls.get(id);
        (call.place, call.began, call.beside, call.replica) = (Place::Running, self.now, beside, index as u32);
        if !takes {
            let serial = call.serial;
            self.events.push(Reverse((self.now + REFUSAL, id, serial, Kind::Refused)));
            return;
        }
        call.work = Work::Queued;
        self.at_upstream += 1;
        self.replicas[index].queue(id);
        self.fill(index);
    }

    fn choose(&mut self) -> usize {
        let count = self.replicas.len();
        self.turn = (self.turn + 1) % count;
        let in_turn = (self.turn..count).chain(0..self.turn);
        match self.world.upstream.balance {
            Balance::RoundRobin => self.turn,
            Balance::LeastInFlight => in_turn.min_by_key(|at| self.replicas[*at].in_flight()).unwrap_or(self.turn),
        }
    }

    /// Gives a replica's free slots to those that wait there.
    fn fill(&mut self, index: usize) {
        while let Some(id) = self.replicas[index].next() {
            let call = self.calls.get(id);
            call.work = Work::Slot;
            let service = self.world.upstream.service.at(&self.service_dice, call.draw());
            // During a stall nothing begins.
            let still = self.stalls_until - self.now;
            let took = still + Nanos::from_secs_f64(service.as_secs_f64() * self.replicas[index].stretch());
            call.stalled = self.stalled;
            self.events.push(Reverse((self.now + took, id, call.serial, Kind::Done)));
        }
    }

    fn event(&mut self) {
        let Some(Reverse((_, id, serial, kind))) = self.events.pop() else { return };
        if kind == Kind::Beat {
            return self.reaches_gate(id, serial, kind);
        }
        let Some(call) = self.calls.same(id, serial) else { return };
        let call = *call;
        match kind {
            Kind::Done => self.done(id, &call),
            Kind::Retry if call.place == Place::Ahead => self.start(id),
            Kind::Retry => {}
            _ => self.reaches_gate(id, serial, kind),
        }
    }

    fn overdue(&mut self, id: Id, serial: u32, call: &Call) {
        let gate = &mut self.gates[call.gate as usize];
        let before = gate.waiting();
        let look = gate.overdue(self.now, id, &mut self.told);
        self.waiting = self.waiting + gate.waiting() - before;
        if let Some(look) = look {
            // Time has to go on, whatever it says.
            let look = look.max(self.now + Nanos(1));
            self.events.push(Reverse((look, id, serial, Kind::Overdue)));
        }
        self.heed();
    }

    fn done(&mut self, id: Id, call: &Call) {
        if call.work != Work::Slot {
            return;
        }
        if self.stalled > call.stalled {
            // It stood still meanwhile.
            let again = self.now + (self.stalled - call.stalled);
            self.calls.get(id).stalled = self.stalled;
            self.events.push(Reverse((again, id, call.serial, Kind::Done)));
            return;
        }
        self.free(id, call);
        if call.place == Place::Running {
            self.reaches_gate(id, call.serial, Kind::Answered);
        }
        self.calls.settle(id);
        self.heed();
    }

    /// Its slot is free.
    fn free(&mut self, id: Id, call: &Call) {
        let index = call.replica as usize;
        self.calls.get(id).work = Work::None;
        self.replicas[index].busy -= 1;
        self.at_upstream -= 1;
        self.fill(index);
    }

    /// Tells its gate; what the gate tells is to be heeded.
    fn ended(&mut self, call: &Call, how: How) {
        let gate = &mut self.gates[call.gate as usize];
        let before = gate.waiting();
        let ended = Ended { began: call.began, beside: call.beside, lag: self.pulse.lag(call.began, self.now), how };
        gate.ended(self.now, &ended, &mut self.told);
        self.waiting = self.waiting + gate.waiting() - before;
    }

    fn deadline(&mut self) {
        if let Some(Reverse((_, id, serial))) = self.deadlines.pop() {
            self.reaches_gate(id, serial, Kind::Deadline);
        }
    }

    /// Its caller waits no longer.
    fn over(&mut self, id: Id, call: &Call) {
        match call.place {
            Place::Waiting => {
                let gate = &mut self.gates[call.gate as usize];
                let before = gate.waiting();
                gate.withdraw(id);
                self.waiting = self.waiting + gate.waiting() - before;
            }
            Place::Running => {
                self.ended(call, if call.told == Nanos::NEVER { How::Gone } else { How::GivenUp });
                if !self.world.upstream.works_on {
                    self.cancel(id, call);
                }
            }
            Place::Ahead | Place::Over => return,
        }
        self.record.given_up(self.now, call);
        self.leave(id, None);
        self.heed();
    }

    /// The upstream stops working on it.
    fn cancel(&mut self, id: Id, call: &Call) {
        match call.work {
            Work::None => {}
            Work::Queued => {
                self.replicas[call.replica as usize].forget(id);
                self.calls.get(id).work = Work::None;
                self.at_upstream -= 1;
            }
            Work::Slot => self.free(id, call),
        }
    }
}
