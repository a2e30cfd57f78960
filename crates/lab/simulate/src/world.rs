//! Scenario of a simulation: callers, gates, upstream, and changes over time.

use serde::Serialize;

use weir_base::Nanos;
use weir_pace::schedule::{Arrivals, LoadStage};
use weir_resilience::admission::Priority;
use weir_workload::delay::Delay;

/// All that a run depends on, except for the limiter.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Name of the scenario.
    pub name: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Callers.
    pub callers: CallerModel,
    /// Number of independent gates; callers choose one at random.
    pub gates: u32,
    /// Service behind the gates.
    pub upstream: UpstreamModel,
    /// Changes of the upstream, in order of time.
    pub changes: Vec<UpstreamChange>,
    /// Stalls of processes, which are not overload.
    pub stalls: Vec<StallModel>,
    /// CPU time of a gate per arrival and per completion. All gates share one processor.
    pub gate_cost: Nanos,
    /// Phases with metrics of their own.
    pub phases: Vec<ScenarioPhase>,
    /// Initial time excluded from the score.
    pub warmup: Nanos,
    /// Metric that decides the scenario.
    pub headline: HeadlineMetric,
    /// Resolution of the time series, a multiple of 100 ms.
    pub series_step: Nanos,
}

/// Metric that decides a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadlineMetric {
    /// Responses in time, of all servable calls.
    #[default]
    Goodput,
    /// Responses in time to critical calls, of all critical calls.
    Critical,
}

/// Callers: an open loop of arrivals independent of responses, and a closed loop of users.
#[derive(Clone, Debug)]
pub struct CallerModel {
    /// Arrival rate of the open loop over time; the run ends with the last stage.
    pub stages: Vec<LoadStage>,
    /// Arrival process of the open loop.
    pub arrivals: Arrivals,
    /// Deadline of a call, sent to the gate; the caller gives up at it.
    pub deadline: Nanos,
    /// Weights of the priorities, from low to critical.
    pub priorities: [f64; 4],
    /// Retries of calls without a response; none: no retries.
    pub retry: Option<RetryModel>,
    /// Kinds of callers with deadlines of their own; empty: all calls have `deadline`.
    pub kinds: Vec<CallerKind>,
    /// Users of the closed loop: each sends the next call after a response, rejection or timeout, ...
    pub users: u32,
    /// ... and this think time.
    pub think_time: Nanos,
}

/// Times of which each is as likely, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Shortest time.
    pub shortest: Nanos,
    /// Longest time; not less than the shortest.
    pub longest: Nanos,
}

impl TimeRange {
    /// The same time always.
    pub const fn constant(time: Nanos) -> Self {
        Self { shortest: time, longest: time }
    }

    /// Time at a fraction of the range.
    pub(super) fn at(self, fraction: f64) -> Nanos {
        self.shortest + Nanos(((self.longest - self.shortest).0 as f64 * fraction) as u64)
    }
}

/// Kind of callers with a range of deadlines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallerKind {
    /// Weight of this kind.
    pub weight: f64,
    /// Deadlines, uniformly distributed.
    pub deadline_range: TimeRange,
    /// Whether the gate gets the deadline.
    pub deadline_signal: DeadlineSignal,
    /// Who the callers are, and what their calls cost.
    pub work: KindWork,
}

/// Origins of a kind's calls, and the work that they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KindWork {
    /// Number of the first route.
    pub route: u64,
    /// Number of routes, used equally.
    pub routes: u64,
    /// Number of callers; 0: each call has a caller of its own, as if callers changed their names.
    pub callers: u64,
    /// Multiple of the upstream's service time from `heavy_from` until `heavy_until`; otherwise 1.
    pub factor: f64,
    /// Time from which calls are heavy.
    pub heavy_from: Nanos,
    /// Time from which they are as others again.
    pub heavy_until: Nanos,
    /// Priority that the callers claim; none: drawn by weight.
    pub priority: Option<Priority>,
}

impl Default for KindWork {
    /// 40 callers on four routes, with calls of the usual service time.
    fn default() -> Self {
        Self {
            route: 0,
            routes: 4,
            callers: 40,
            factor: 1.0,
            heavy_from: Nanos::ZERO,
            heavy_until: Nanos::NEVER,
            priority: None,
        }
    }
}

/// Way in which a gate learns of a caller's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadlineSignal {
    /// Sent with the call.
    Sent,
    /// Not sent: the caller disconnects at its deadline.
    Absent,
}

/// Stalls of a process caused by its host, e.g. by CPU contention, virtualization or swapping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StallModel {
    /// Process that stalls.
    pub target: StallTarget,
    /// Time between the starts of two stalls, exact or mean.
    pub period: Nanos,
    /// Whether `period` is exact; otherwise gaps are exponentially distributed.
    pub regular: bool,
    /// Length of a stall, uniformly distributed.
    pub length: TimeRange,
    /// Start of the stalls.
    pub from: Nanos,
    /// End of the stalls.
    pub to: Nanos,
}

/// Process that a stall stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StallTarget {
    /// All gates: events are handled after the stall.
    Gates,
    /// All replicas: calls in service take longer by the stall.
    Upstream,
}

/// Retries of callers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryModel {
    /// Maximum retries per call.
    pub max_retries: u32,
    /// Mean wait before the first retry; it doubles with each further one.
    pub first_wait: Nanos,
}

/// Upstream service: replicas with a fixed number of slots each. A call is sent to the replica with the fewest in flight.
#[derive(Clone, Debug)]
pub struct UpstreamModel {
    /// Number of replicas.
    pub replicas: u32,
    /// Concurrent calls per replica.
    pub slots: u32,
    /// Service time of a call.
    pub service: Delay,
    /// Maximum queued calls per replica; others are rejected. Queued calls are served first in, first out.
    pub max_queue: usize,
    /// Whether abandoned calls are served to the end, as in most services.
    pub continues_abandoned_work: bool,
}

/// Change of the upstream at a point in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpstreamChange {
    /// Time of the change.
    pub at: Nanos,
    /// Replica that changes; none: all.
    pub replica: Option<u32>,
    /// New slots or service times.
    pub effect: ChangeEffect,
}

/// Effect of a change on a replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChangeEffect {
    /// New number of slots; calls in service are not cancelled.
    Slots(u32),
    /// Factor on the initial service time, for calls that start from now on.
    Slowdown(f64),
}

/// Phase of a run, with metrics of its own.
#[derive(Clone, Debug)]
pub struct ScenarioPhase {
    /// Name of the phase.
    pub name: String,
    /// Start, inclusive.
    pub from: Nanos,
    /// End, exclusive.
    pub to: Nanos,
}

/// Capacity of the upstream at a point in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpstreamCapacity {
    /// Calls served per second.
    pub per_s: f64,
    /// Slots of all replicas: the optimal number in flight.
    pub slots: u32,
    /// Unloaded p99 of the fastest replica.
    pub p99: Nanos,
}

/// Response times of an unloaded upstream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnloadedLatency {
    /// Mean.
    pub mean: Nanos,
    /// 99th percentile.
    pub p99: Nanos,
}

impl UnloadedLatency {
    /// Mean and p99 of a service time, at least 1 ns each.
    pub fn of(service: &Delay) -> Self {
        Self { mean: service.mean().max(Nanos(1)), p99: service.p99().max(Nanos(1)) }
    }
}

impl UpstreamModel {
    /// Initial slots of all replicas.
    pub fn all_slots(&self) -> u32 {
        self.slots * self.replicas
    }

    /// Initial capacity of all replicas, in calls per second.
    pub fn per_s(&self) -> f64 {
        f64::from(self.all_slots()) / UnloadedLatency::of(&self.service).mean.as_secs_f64()
    }
}

impl Scenario {
    /// Duration of the run.
    pub fn length(&self) -> Nanos {
        self.callers.stages.iter().fold(Nanos::ZERO, |sum, stage| sum + stage.length)
    }

    /// Expected first attempts per second at a point in time.
    pub fn offered_per_s(&self, at: Nanos) -> f64 {
        let mut from = Nanos::ZERO;
        for stage in &self.callers.stages {
            let to = from + stage.length;
            if at < to {
                let fraction = (at - from).as_secs_f64() / stage.length.as_secs_f64();
                return stage.from_per_s + (stage.to_per_s - stage.from_per_s) * fraction;
            }
            from = to;
        }
        0.0
    }

    /// Capacity at a point in time; `unloaded` is that of the initial service time.
    pub fn capacity(&self, at: Nanos, unloaded: UnloadedLatency) -> UpstreamCapacity {
        let mut capacity = UpstreamCapacity { per_s: 0.0, slots: 0, p99: unloaded.p99 };
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
            capacity.per_s += f64::from(slots) / (unloaded.mean.as_secs_f64() * slower);
            fastest = fastest.min(slower);
        }
        capacity.p99 = Nanos::from_secs_f64(unloaded.p99.as_secs_f64() * fastest);
        capacity
    }

    /// Times at which rate or capacity jump, and each second of a ramp: between two of them both are nearly constant.
    pub fn breakpoints(&self) -> Vec<Nanos> {
        let mut breakpoints: Vec<Nanos> = self.changes.iter().map(|change| change.at).collect();
        let mut from = Nanos::ZERO;
        for stage in &self.callers.stages {
            let to = from + stage.length;
            breakpoints.push(from);
            if stage.from_per_s != stage.to_per_s {
                let mut at = from + Nanos::SECOND;
                while at < to {
                    breakpoints.push(at);
                    at += Nanos::SECOND;
                }
            }
            from = to;
        }
        breakpoints.push(from);
        breakpoints.retain(|at| *at <= from);
        breakpoints.sort_unstable();
        breakpoints.dedup();
        breakpoints
    }
}
