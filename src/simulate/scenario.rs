//! Worlds with names. Loads are told as multiples of what the upstream can take at first.

use super::score::HeadlineMetric;
use super::world::{
    CallerModel, ChangeEffect, ReplicaBalance, RetryModel, Scenario, ScenarioPhase, UnloadedLatency, UpstreamChange,
    UpstreamModel,
};
use crate::decide::Nanos;
use crate::decide::delay::{Delay, DelayRange};
use crate::decide::schedule::{Arrivals, LoadStage};
use crate::decide::station::StationOverflow;

mod noise;

#[cfg(test)]
pub(super) use noise::mixed;
use noise::{callers_leave, gate_stalls, recovery, short_deadlines, upstream_stalls};

/// Who gives no deadline waits for so many times as long as 99 % of unhindered calls take.
pub const DEFAULT_DEADLINE_RATIO: f64 = 4.0;

/// A name, what it is about, and what makes it.
type ScenarioEntry = (&'static str, &'static str, fn(Scenario) -> Scenario);

const SCENARIOS: [ScenarioEntry; 22] = [
    ("step-down", "half of the slots are gone, while a little more comes than all could take", step_down),
    ("step-up", "twice as many slots, while more comes than they can take", step_up),
    ("slower-service", "each call takes twice as long, with as many slots", slower_service),
    ("ramp", "from nothing to three times the capacity and back", ramp),
    ("flash-crowd", "half of the capacity, then ten times the capacity for 30 s, then half again", flash_crowd),
    (
        "slow-replica",
        "one replica of five gets five times slower, first with room for all, then with too much",
        slow_replica,
    ),
    ("two-humped", "a fast kind of calls and a slow one, that nobody can tell apart", two_humped),
    ("low-traffic", "two calls a second for three minutes, then twice the capacity", low_traffic),
    (
        "retry-storm",
        "10 s of three times the capacity, and whoever has no answer asks again at once, up to five times",
        retry_storm,
    ),
    ("long-overload", "twice the capacity for ten minutes, then calm", long_overload),
    ("bursts", "2 s of three times the capacity, 2 s of next to nothing, again and again", bursts),
    ("fails-fast", "the upstream refuses what it has no slot for", fails_fast),
    (
        "many-gates",
        "a hundred gates that know nothing of each other, a million calls a second, ten times the capacity",
        many_gates,
    ),
    ("eighty-percent", "80 % of the capacity for ten minutes: nobody would have to be refused", eighty_percent),
    ("priorities", "three times the capacity, calls of four priorities; high and critical ones would fit", priorities),
    ("cold-start", "ten times the capacity from the first moment on", cold_start),
    ("deadline", "twice the capacity, from callers who wait for a second", deadline),
    (
        "gate-stalls",
        "200 connections in a closed loop; then the gate's process stands still for 20 ms five times a second, then for 5 \
         to 50 ms by chance",
        gate_stalls,
    ),
    (
        "upstream-stalls",
        "half of the capacity at an upstream of milliseconds; then it stands still for 20 to 60 ms some times a second",
        upstream_stalls,
    ),
    (
        "short-deadlines",
        "half of the capacity, of calls of 10 to 90 ms; the callers of two in three have 20 to 60 ms",
        short_deadlines,
    ),
    ("callers-leave", "the same, but those others say nothing of their patience and break off", callers_leave),
    ("recovery", "2 s of an upstream that is 50 times slower, then as before", recovery),
];

/// The names of all scenarios.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.into_iter().map(|(name, _, _)| name)
}

/// What it is about, in a sentence.
pub fn description(name: &str) -> Option<&'static str> {
    SCENARIOS.into_iter().find(|scenario| scenario.0 == name).map(|(_, about, _)| about)
}

/// The world of that name.
pub fn by_name(name: &str) -> Option<Scenario> {
    let (name, _, make) = SCENARIOS.into_iter().find(|scenario| scenario.0 == name)?;
    Some(make(Scenario { name: name.to_owned(), ..default_scenario() }))
}

/// A service of 50 slots whose calls take 100 to 600 ms; nobody calls yet.
pub fn default_scenario() -> Scenario {
    let service = Delay::Uniform(DelayRange { low: Nanos::from_millis(100), high: Nanos::from_millis(600) });
    Scenario {
        name: "own".to_owned(),
        seed: 1,
        callers: CallerModel {
            stages: Vec::new(),
            arrivals: Arrivals::Poisson,
            deadline: default_deadline(&service),
            priorities: [0.0, 1.0, 0.0, 0.0],
            retry: None,
            kinds: Vec::new(),
            users: 0,
            think_time: Nanos::ZERO,
        },
        gates: 1,
        upstream: UpstreamModel {
            replicas: 1,
            slots: 50,
            service,
            overflow: StationOverflow::Reject { queue: usize::MAX },
            continues_abandoned_work: true,
            balance: ReplicaBalance::LeastInFlight,
        },
        changes: Vec::new(),
        stalls: Vec::new(),
        gate_cost: Nanos::ZERO,
        phases: Vec::new(),
        warmup: Nanos::from_secs(10),
        headline: HeadlineMetric::Goodput,
        series_step: Nanos::from_millis(500),
    }
}

/// For how long callers wait if nobody says.
pub fn default_deadline(service: &Delay) -> Nanos {
    Nanos::from_secs_f64(UnloadedLatency::of(service).p99.as_secs_f64() * DEFAULT_DEADLINE_RATIO)
}

impl Scenario {
    /// Adds a phase of this length: the load goes from one multiple of the upstream's capacity to another.
    pub fn with_phase(mut self, name: &str, from: f64, to: f64, length: Nanos) -> Self {
        let start = self.length();
        let capacity = self.upstream.per_s();
        self.callers.stages.push(LoadStage { from_per_s: from * capacity, to_per_s: to * capacity, length });
        // The warm-up belongs to no phase.
        let (from, to) = (start.max(self.warmup), start + length);
        if from < to {
            self.phases.push(ScenarioPhase { name: name.to_owned(), from, to });
        }
        self
    }

    fn with_constant_load(self, name: &str, load: f64, seconds: u64) -> Self {
        self.with_phase(name, load, load, Nanos::from_secs(seconds))
    }

    fn with_change(mut self, at_s: u64, replica: Option<u32>, to: ChangeEffect) -> Self {
        self.changes.push(UpstreamChange { at: Nanos::from_secs(at_s), replica, effect: to });
        self
    }
}

fn step_down(world: Scenario) -> Scenario {
    world.with_constant_load("all slots", 1.2, 40).with_constant_load("half", 1.2, 40).with_change(
        40,
        None,
        ChangeEffect::Slots(25),
    )
}

fn step_up(mut world: Scenario) -> Scenario {
    world.upstream.slots = 25;
    world.with_constant_load("few slots", 3.0, 40).with_constant_load("twice", 3.0, 40).with_change(
        40,
        None,
        ChangeEffect::Slots(50),
    )
}

fn slower_service(world: Scenario) -> Scenario {
    world.with_constant_load("fast", 1.2, 40).with_constant_load("slow", 1.2, 40).with_change(
        40,
        None,
        ChangeEffect::Slowdown(2.0),
    )
}

fn ramp(mut world: Scenario) -> Scenario {
    world.warmup = Nanos::ZERO;
    let length = Nanos::from_secs(60);
    world.with_phase("up", 0.0, 3.0, length).with_phase("down", 3.0, 0.0, length)
}

fn flash_crowd(world: Scenario) -> Scenario {
    world
        .with_constant_load("before", 0.5, 40)
        .with_constant_load("crowd", 10.0, 30)
        .with_constant_load("after", 0.5, 30)
}

fn slow_replica(mut world: Scenario) -> Scenario {
    (world.upstream.replicas, world.upstream.slots) = (5, 10);
    world
        .with_constant_load("all fast", 0.7, 40)
        .with_constant_load("one slow", 0.7, 40)
        .with_constant_load("too much", 1.5, 40)
        .with_change(40, Some(0), ChangeEffect::Slowdown(5.0))
}

fn two_humped(mut world: Scenario) -> Scenario {
    let hump = |low, high| DelayRange { low: Nanos::from_millis(low), high: Nanos::from_millis(high) };
    let service = Delay::Bimodal { first: hump(50, 100), second: hump(400, 900), second_fraction: 0.2 };
    world.callers.deadline = default_deadline(&service);
    world.upstream.service = service;
    world.with_constant_load("room for all", 0.8, 60).with_constant_load("too much", 2.0, 60)
}

fn low_traffic(world: Scenario) -> Scenario {
    let low = 2.0 / world.upstream.per_s();
    world.with_constant_load("low", low, 180).with_constant_load("too much", 2.0, 40)
}

fn retry_storm(mut world: Scenario) -> Scenario {
    world.callers.retry =
        Some(RetryModel { max_retries: 5, first_wait: Nanos::from_millis(100), honors_retry_after: false });
    world
        .with_constant_load("before", 0.8, 30)
        .with_constant_load("storm", 3.0, 10)
        .with_constant_load("after", 0.8, 40)
}

fn long_overload(world: Scenario) -> Scenario {
    world
        .with_constant_load("start", 0.5, 20)
        .with_constant_load("overload", 2.0, 600)
        .with_constant_load("calm", 0.5, 60)
}

fn bursts(world: Scenario) -> Scenario {
    let mut world =
        (0..20).fold(world, |world, _| world.with_constant_load("on", 3.0, 2).with_constant_load("off", 0.1, 2));
    world.phases = vec![ScenarioPhase { name: "bursts".to_owned(), from: world.warmup, to: world.length() }];
    world
}

fn fails_fast(mut world: Scenario) -> Scenario {
    world.upstream.overflow = StationOverflow::Reject { queue: 0 };
    world.with_constant_load("overload", 2.0, 60)
}

fn many_gates(mut world: Scenario) -> Scenario {
    world.gates = 100;
    let service = Delay::Uniform(DelayRange { low: Nanos::from_millis(3), high: Nanos::from_millis(17) });
    world.callers.deadline = default_deadline(&service);
    // 100,000 calls a second.
    (world.upstream.slots, world.upstream.service) = (1000, service);
    (world.warmup, world.series_step) = (Nanos::SECOND, Nanos::from_millis(100));
    world.with_constant_load("overload", 10.0, 5)
}

fn eighty_percent(world: Scenario) -> Scenario {
    world.with_constant_load("overall", 0.8, 610)
}

fn priorities(mut world: Scenario) -> Scenario {
    // High and critical calls are 0.75 of the capacity together.
    world.callers.priorities = [0.25, 0.5, 0.15, 0.1];
    world.headline = HeadlineMetric::Critical;
    world.with_constant_load("overload", 3.0, 70)
}

fn cold_start(mut world: Scenario) -> Scenario {
    world.warmup = Nanos::ZERO;
    world.with_constant_load("overload", 10.0, 30)
}

fn deadline(mut world: Scenario) -> Scenario {
    world.callers.deadline = Nanos::SECOND;
    world.with_constant_load("overload", 2.0, 60)
}
