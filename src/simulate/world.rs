//! Who calls, how often, and what the upstream can take, over time.

use super::score::HeadlineMetric;
use crate::decide::Nanos;
use crate::decide::delay::Delay;
use crate::decide::schedule::{Arrivals, LoadStage};
use crate::decide::station::StationOverflow;

/// Everything that a run depends on but the limiter.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// In a word.
    pub name: String,
    /// Repeats all dice.
    pub seed: u64,
    /// Who calls.
    pub callers: CallerModel,
    /// Gates that callers choose from at random; none knows of the others.
    pub gates: u32,
    /// Where calls go.
    pub upstream: UpstreamModel,
    /// What happens to it, in order of time.
    pub changes: Vec<UpstreamChange>,
    /// Pauses that say nothing of anybody's load.
    pub stalls: Vec<StallModel>,
    /// What a gate's process needs for each arrival and each end, one after the other. All gates share a processor.
    pub gate_cost: Nanos,
    /// Stretches of which figures are wanted.
    pub phases: Vec<ScenarioPhase>,
    /// What comes before is not scored.
    pub warmup: Nanos,
    /// What is scored.
    pub headline: HeadlineMetric,
    /// The step of the series, in whole tenths of a second.
    pub series_step: Nanos,
}

/// An open loop, which comes whether or not answers do, and a closed one, where each waits for its answer.
#[derive(Clone, Debug)]
pub struct CallerModel {
    /// How often, over time. The run ends with the last one.
    pub stages: Vec<LoadStage>,
    /// How they are spread.
    pub arrivals: Arrivals,
    /// After so long an answer is worth nothing, and who waits goes away. It is told to the gate.
    pub deadline: Nanos,
    /// The weights of the priorities, from the lowest.
    pub priorities: [f64; 4],
    /// What they do without an answer; none: nothing.
    pub retry: Option<RetryModel>,
    /// What tells calls apart that look the same to the gate. Empty: all have `deadline`.
    pub kinds: Vec<CallerKind>,
    /// Connections in a closed loop: each calls, waits for the answer or the refusal, and calls again.
    pub users: u32,
    /// After this time.
    pub think_time: Nanos,
}

/// Calls with a patience of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallerKind {
    /// The weight of this kind.
    pub weight: f64,
    /// After a time between these an answer is worth nothing.
    pub deadline_range: (Nanos, Nanos),
    /// What the gate is told of that.
    pub deadline_signal: DeadlineSignal,
}

/// What a gate is told of a caller's patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineSignal {
    /// The deadline, with the call.
    Sent,
    /// Nothing: the caller breaks off.
    Absent,
}

/// Pauses of a process, by its host: another process has the core, a virtual machine is not scheduled, memory is swapped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StallModel {
    /// Who does nothing meanwhile.
    pub target: StallTarget,
    /// From the beginning of one to that of the next: exactly that, or that on average.
    pub period: Nanos,
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
pub enum StallTarget {
    /// The gates: what comes meanwhile is found afterwards.
    Gates,
    /// All replicas: what is at work there takes as much longer.
    Upstream,
}

/// Those without an answer ask again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryModel {
    /// How often at most.
    pub max_retries: u32,
    /// How long they wait before the first retry, on average; twice as long before each further one.
    pub first_wait: Nanos,
    /// Whether they wait for as long as a refusal says, if it says more.
    pub honors_retry_after: bool,
}

/// Replicas of a service.
#[derive(Clone, Debug)]
pub struct UpstreamModel {
    /// How many there are.
    pub replicas: u32,
    /// How many calls each works on at a time.
    pub slots: u32,
    /// How long one takes.
    pub service: Delay,
    /// What each does with more calls than slots; the others wait there, first come first served.
    pub overflow: StationOverflow,
    /// Whether it works on when nobody waits for the answer any more, as most services do.
    pub continues_abandoned_work: bool,
    /// Which replica gets a call.
    pub balance: ReplicaBalance,
}

/// Which replica gets a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaBalance {
    /// The next one.
    RoundRobin,
    /// The one with the fewest calls, as far as gates know.
    LeastInFlight,
}

/// Something happens to the upstream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpstreamChange {
    /// When.
    pub at: Nanos,
    /// To this replica; none: to all.
    pub replica: Option<u32>,
    /// What.
    pub effect: ChangeEffect,
}

/// What happens to a replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChangeEffect {
    /// It has so many slots; what is in work stays in work.
    Slots(u32),
    /// What it begins from now on takes so many times as long as at first.
    Slowdown(f64),
}

/// A stretch of the run.
#[derive(Clone, Debug)]
pub struct ScenarioPhase {
    /// In a word.
    pub name: String,
    /// Its first instant.
    pub from: Nanos,
    /// The first instant that is not in it any more.
    pub to: Nanos,
}

/// What an upstream does at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpstreamCapacity {
    /// Calls that it can answer.
    pub per_s: f64,
    /// With so many at work it does, and nobody waits.
    pub slots: u32,
    /// How long one takes that does not wait: 99 % take less. Of the slowest replica that most calls can meet.
    pub p99: Nanos,
}

/// How long answers take that nobody waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnloadedLatency {
    /// On average.
    pub mean: Nanos,
    /// 99 % take less.
    pub p99: Nanos,
}

impl UnloadedLatency {
    /// Of a distribution; a nanosecond at least.
    pub fn of(service: &Delay) -> Self {
        Self { mean: service.mean().max(Nanos(1)), p99: service.p99().max(Nanos(1)) }
    }
}

impl UpstreamModel {
    /// Slots of all replicas at first.
    pub fn all_slots(&self) -> u32 {
        self.slots * self.replicas
    }

    /// What all replicas can answer at first, per second.
    pub fn per_s(&self) -> f64 {
        f64::from(self.all_slots()) / UnloadedLatency::of(&self.service).mean.as_secs_f64()
    }
}

impl Scenario {
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
    pub fn capacity(&self, at: Nanos, plain: UnloadedLatency) -> UpstreamCapacity {
        let mut capacity = UpstreamCapacity { per_s: 0.0, slots: 0, p99: plain.p99 };
        let mut fastest = f64::INFINITY;
        for replica in 0..self.upstream.replicas {
            let (mut slots, mut slower) = (self.upstream.slots, 1.0);
            for change in self.changes.iter().take_while(|change| change.at <= at) {
                if change.replica.is_none_or(|only| only == replica) {
                    match change.effect {
                        ChangeEffect::Slots(now) => slots = now,
                        ChangeEffect::Slowdown(now) => slower = now,
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
    pub fn breakpoints(&self) -> Vec<Nanos> {
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
