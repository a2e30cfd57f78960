//! Who calls, how often, and what the upstream can take, over time.

use super::score::Headline;
use crate::decide::Nanos;
use crate::decide::delay::Delay;
use crate::decide::schedule::{Arrivals, Stage};
use crate::decide::station::Overflow;

/// Everything that a run depends on but the limiter.
#[derive(Clone, Debug)]
pub struct World {
    /// In a word.
    pub name: String,
    /// Repeats all dice.
    pub seed: u64,
    /// Who calls.
    pub callers: Callers,
    /// Gates that callers choose from at random; none knows of the others.
    pub gates: u32,
    /// Where calls go.
    pub upstream: Upstream,
    /// What happens to it, in order of time.
    pub changes: Vec<Change>,
    /// Pauses that say nothing of anybody's load.
    pub stalls: Vec<Stall>,
    /// What a gate's process needs for each arrival and each end, one after the other. All gates share a processor.
    pub gate_cost: Nanos,
    /// Stretches of which figures are wanted.
    pub phases: Vec<Phase>,
    /// What comes before is not scored.
    pub warmup: Nanos,
    /// What is scored.
    pub headline: Headline,
    /// The step of the series, in whole tenths of a second.
    pub step: Nanos,
}

/// An open loop, which comes whether or not answers do, and a closed one, where each waits for its answer.
#[derive(Clone, Debug)]
pub struct Callers {
    /// How often, over time. The run ends with the last one.
    pub stages: Vec<Stage>,
    /// How they are spread.
    pub arrivals: Arrivals,
    /// After so long an answer is worth nothing, and who waits goes away. It is told to the gate.
    pub deadline: Nanos,
    /// The weights of the priorities, from the lowest.
    pub priorities: [f64; 4],
    /// What they do without an answer; none: nothing.
    pub retry: Option<Retry>,
    /// What tells calls apart that look the same to the gate. Empty: all have `deadline`.
    pub kinds: Vec<Kind>,
    /// Connections in a closed loop: each calls, waits for the answer or the refusal, and calls again.
    pub users: u32,
    /// After this time.
    pub think: Nanos,
}

/// Calls with a patience of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// The weight of this kind.
    pub share: f64,
    /// After a time between these an answer is worth nothing.
    pub patience: (Nanos, Nanos),
    /// What the gate is told of that.
    pub told: Told,
}

/// What a gate is told of a caller's patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The deadline, with the call.
    Deadline,
    /// Nothing: the caller breaks off.
    Nothing,
}

/// Pauses of a process, by its host: another process has the core, a virtual machine is not scheduled, memory is swapped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// Who does nothing meanwhile.
    pub whose: Whose,
    /// From the beginning of one to that of the next: exactly that, or that on average.
    pub every: Nanos,
    /// Whether it is exact.
    pub regular: bool,
    /// As long as any time between these.
    pub length: (Nanos, Nanos),
    /// They happen from here ...
    pub from: Nanos,
    /// ... to here.
    pub to: Nanos,
}

/// Who does nothing during a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The gates: what comes meanwhile is found afterwards.
    Gates,
    /// All replicas: what is at work there takes as much longer.
    Upstream,
}

/// Those without an answer ask again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// How often at most.
    pub times: u32,
    /// How long they wait before the first retry, on average; twice as long before each further one.
    pub after: Nanos,
    /// Whether they wait for as long as a refusal says, if it says more.
    pub obeys: bool,
}

/// Replicas of a service.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// How many there are.
    pub replicas: u32,
    /// How many calls each works on at a time.
    pub slots: u32,
    /// How long one takes.
    pub service: Delay,
    /// What each does with more calls than slots; the others wait there, first come first served.
    pub overflow: Overflow,
    /// Whether it works on when nobody waits for the answer any more, as most services do.
    pub works_on: bool,
    /// Which replica gets a call.
    pub balance: Balance,
}

/// Which replica gets a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// The next one.
    RoundRobin,
    /// The one with the fewest calls, as far as gates know.
    LeastInFlight,
}

/// Something happens to the upstream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// When.
    pub at: Nanos,
    /// To this replica; none: to all.
    pub replica: Option<u32>,
    /// What.
    pub to: To,
}

/// What happens to a replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum To {
    /// It has so many slots; what is in work stays in work.
    Slots(u32),
    /// What it begins from now on takes so many times as long as at first.
    Slower(f64),
}

/// A stretch of the run.
#[derive(Clone, Debug)]
pub struct Phase {
    /// In a word.
    pub name: String,
    /// Its first instant.
    pub from: Nanos,
    /// The first instant that is not in it any more.
    pub to: Nanos,
}

/// What an upstream does at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// Calls that it can answer.
    pub per_s: f64,
    /// With so many at work it does, and nobody waits.
    pub slots: u32,
    /// How long one takes that does not wait: 99 % take less. Of the slowest replica that most calls can meet.
    pub p99: Nanos,
}

/// How long answers take that nobody waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unhindered {
    /// On average.
    pub mean: Nanos,
    /// 99 % take less.
    pub p99: Nanos,
}

impl Unhindered {
    /// Of a distribution; a nanosecond at least.
    pub fn of(service: &Delay) -> Self {
        Self { mean: service.mean().max(Nanos(1)), p99: service.p99().max(Nanos(1)) }
    }
}

impl Upstream {
    /// Slots of all replicas at first.
    pub fn all_slots(&self) -> u32 {
        self.slots * self.replicas
    }

    /// What all replicas can answer at first, per second.
    pub fn per_s(&self) -> f64 {
        f64::from(self.all_slots()) / Unhindered::of(&self.service).mean.as_secs_f64()
    }
}

impl World {
    /// How long it lasts.
    pub fn length(&self) -> Nanos {
        self.callers.stages.iter().fold(Nanos::ZERO, |sum, stage| sum + stage.length)
    }

    /// First tries that are expected per second at an instant.
    pub fn offered_per_s(&self, at: Nanos) -> f64 {
        let mut from = Nanos::ZERO;
        for stage in &self.callers.stages {
            let to = from + stage.length;
            if at < to {
                let share = (at - from).as_secs_f64() / stage.length.as_secs_f64();
                return stage.from_per_s + (stage.to_per_s - stage.from_per_s) * share;
            }
            from = to;
        }
        0.0
    }

    /// What can be answered at an instant; `plain` is of the service as it is at first.
    pub fn capacity(&self, at: Nanos, plain: Unhindered) -> Capacity {
        let mut capacity = Capacity { per_s: 0.0, slots: 0, p99: plain.p99 };
        let mut fastest = f64::INFINITY;
        for replica in 0..self.upstream.replicas {
            let (mut slots, mut slower) = (self.upstream.slots, 1.0);
            for change in self.changes.iter().take_while(|change| change.at <= at) {
                if change.replica.is_none_or(|only| only == replica) {
                    match change.to {
                        To::Slots(now) => slots = now,
                        To::Slower(now) => slower = now,
                    }
                }
            }
            capacity.slots += slots;
            capacity.per_s += f64::from(slots) / (plain.mean.as_secs_f64() * slower);
            fastest = fastest.min(slower);
        }
        capacity.p99 = Nanos::from_secs_f64(plain.p99.as_secs_f64() * fastest);
        capacity
    }

    /// Where rates or capacities jump, and the instants of a ramp's seconds: between two of them all is about even.
    pub fn joints(&self) -> Vec<Nanos> {
        let mut joints: Vec<Nanos> = self.changes.iter().map(|change| change.at).collect();
        let mut from = Nanos::ZERO;
        for stage in &self.callers.stages {
            let to = from + stage.length;
            joints.push(from);
            if stage.from_per_s != stage.to_per_s {
                let mut at = from + Nanos::SECOND;
                while at < to {
                    joints.push(at);
                    at += Nanos::SECOND;
                }
            }
            from = to;
        }
        joints.push(from);
        joints.retain(|at| *at <= from);
        joints.sort_unstable();
        joints.dedup();
        joints
    }
}
