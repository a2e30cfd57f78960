//! Named scenarios. Loads are multiples of the upstream's initial capacity.

use super::world::{
    CallerModel, ChangeEffect, HeadlineMetric, RetryModel, Scenario, ScenarioPhase, UnloadedLatency, UpstreamChange,
    UpstreamModel,
};
use weir_base::Nanos;
use weir_pace::schedule::{Arrivals, LoadStage};
use weir_workload::delay::{Delay, DelayRange};

mod heavy;
mod noise;

#[cfg(test)]
pub(super) use heavy::{heavy, heavy_work};
use heavy::{heavy_caller, heavy_route};
#[cfg(test)]
pub(super) use noise::mixed;
use noise::{callers_leave, gate_stalls, recovery, short_deadlines, upstream_stalls};

/// Default deadline of callers as a multiple of the unloaded p99.
const DEFAULT_DEADLINE_RATIO: f64 = 4.0;

/// Name, description and constructor of a scenario.
type ScenarioEntry = (&'static str, &'static str, fn(Scenario) -> Scenario);

const SCENARIOS: [ScenarioEntry; 24] = [
    ("step-down", "1.2 times the capacity; after 40 s half of the slots are gone", step_down),
    ("step-up", "3 times the capacity; after 40 s twice as many slots", step_up),
    ("slower-service", "1.2 times the capacity; after 40 s each call takes twice as long", slower_service),
    ("ramp", "from 0 to 3 times the capacity and back", ramp),
    ("flash-crowd", "half of the capacity, then 10 times the capacity for 30 s, then half again", flash_crowd),
    (
        "slow-replica",
        "one replica of five gets five times slower, first below the capacity, then above it",
        slow_replica,
    ),
    ("bimodal", "fast and slow calls that the gate cannot tell apart", bimodal),
    ("low-traffic", "2 calls per second for three minutes, then twice the capacity", low_traffic),
    (
        "retry-storm",
        "3 times the capacity for 10 s; calls without a response are retried soon, up to 5 times",
        retry_storm,
    ),
    ("long-overload", "twice the capacity for ten minutes, then half of it", long_overload),
    ("bursts", "3 times the capacity for 2 s and a tenth of it for 2 s, in turn", bursts),
    ("fails-fast", "twice the capacity; the upstream rejects at once what exceeds its slots", fails_fast),
    ("many-gates", "100 independent gateways, a million calls per second, 10 times the capacity", many_gates),
    ("eighty-percent", "80% of the capacity for ten minutes: no call has to be rejected", eighty_percent),
    ("priorities", "3 times the capacity, calls of four priorities; high and critical ones fit together", priorities),
    ("cold-start", "10 times the capacity from the start", cold_start),
    ("deadline", "twice the capacity, from callers with a deadline of 1 s", deadline),
    (
        "gate-stalls",
        "200 connections in a closed loop; the gateway's process stalls for 20 ms five times per second, then for 5 to \
         50 ms at random",
        gate_stalls,
    ),
    (
        "upstream-stalls",
        "half of the capacity, calls of 1 to 3 ms; the upstream stalls for 20 to 60 ms, three times per second",
        upstream_stalls,
    ),
    (
        "short-deadlines",
        "half of the capacity, calls of 10 to 90 ms; two in three callers have a deadline of 20 to 60 ms",
        short_deadlines,
    ),
    ("callers-leave", "as short-deadlines, but these callers send no deadline and disconnect", callers_leave),
    ("recovery", "half of the capacity; the upstream is 50 times slower for 2 s", recovery),
    (
        "heavy-route",
        "a route with 2% of the calls takes 60% of the time, and all together 1.5 times the capacity",
        heavy_route,
    ),
    (
        "heavy-caller",
        "one of 41 callers takes 60% of the time with 2% of the calls, which claim to be critical",
        heavy_caller,
    ),
];

/// Names of all scenarios.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.into_iter().map(|(name, _, _)| name)
}

/// Description of a scenario, in one sentence.
pub fn description(name: &str) -> Option<&'static str> {
    SCENARIOS.into_iter().find(|scenario| scenario.0 == name).map(|(_, description, _)| description)
}

/// Scenario of that name.
pub fn by_name(name: &str) -> Option<Scenario> {
    let (name, _, make) = SCENARIOS.into_iter().find(|scenario| scenario.0 == name)?;
    Some(make(Scenario { name: name.to_owned(), ..default_scenario() }))
}

/// Base of all scenarios, without a name: 50 slots with service times of 100 to 600 ms, and no load yet.
pub(crate) fn default_scenario() -> Scenario {
    let service = Delay::Uniform(DelayRange { low: Nanos::from_millis(100), high: Nanos::from_millis(600) });
    Scenario {
        name: String::new(),
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
            max_queue: usize::MAX,
            continues_abandoned_work: true,
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

/// Default deadline of callers, by the service time of the upstream.
fn default_deadline(service: &Delay) -> Nanos {
    Nanos::from_secs_f64(UnloadedLatency::of(service).p99.as_secs_f64() * DEFAULT_DEADLINE_RATIO)
}

impl Scenario {
    /// Scenario with one more phase, whose load goes from one multiple of the capacity to another.
    pub(crate) fn with_phase(mut self, name: &str, from: f64, to: f64, length: Nanos) -> Self {
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

fn step_down(scenario: Scenario) -> Scenario {
    scenario.with_constant_load("all slots", 1.2, 40).with_constant_load("half", 1.2, 40).with_change(
        40,
        None,
        ChangeEffect::Slots(25),
    )
}

fn step_up(mut scenario: Scenario) -> Scenario {
    scenario.upstream.slots = 25;
    scenario.with_constant_load("few slots", 3.0, 40).with_constant_load("twice", 3.0, 40).with_change(
        40,
        None,
        ChangeEffect::Slots(50),
    )
}

fn slower_service(scenario: Scenario) -> Scenario {
    scenario.with_constant_load("fast", 1.2, 40).with_constant_load("slow", 1.2, 40).with_change(
        40,
        None,
        ChangeEffect::Slowdown(2.0),
    )
}

fn ramp(mut scenario: Scenario) -> Scenario {
    scenario.warmup = Nanos::ZERO;
    let length = Nanos::from_secs(60);
    scenario.with_phase("up", 0.0, 3.0, length).with_phase("down", 3.0, 0.0, length)
}

fn flash_crowd(scenario: Scenario) -> Scenario {
    scenario
        .with_constant_load("before", 0.5, 40)
        .with_constant_load("crowd", 10.0, 30)
        .with_constant_load("after", 0.5, 30)
}

fn slow_replica(mut scenario: Scenario) -> Scenario {
    (scenario.upstream.replicas, scenario.upstream.slots) = (5, 10);
    scenario
        .with_constant_load("all fast", 0.7, 40)
        .with_constant_load("one slow", 0.7, 40)
        .with_constant_load("too much", 1.5, 40)
        .with_change(40, Some(0), ChangeEffect::Slowdown(5.0))
}

fn bimodal(mut scenario: Scenario) -> Scenario {
    let range = |low, high| DelayRange { low: Nanos::from_millis(low), high: Nanos::from_millis(high) };
    let service = Delay::Bimodal { first: range(50, 100), second: range(400, 900), second_fraction: 0.2 };
    scenario.callers.deadline = default_deadline(&service);
    scenario.upstream.service = service;
    scenario.with_constant_load("room for all", 0.8, 60).with_constant_load("too much", 2.0, 60)
}

fn low_traffic(scenario: Scenario) -> Scenario {
    let low = 2.0 / scenario.upstream.per_s();
    scenario.with_constant_load("low", low, 180).with_constant_load("too much", 2.0, 40)
}

fn retry_storm(mut scenario: Scenario) -> Scenario {
    scenario.callers.retry = Some(RetryModel { max_retries: 5, first_wait: Nanos::from_millis(100) });
    scenario
        .with_constant_load("before", 0.8, 30)
        .with_constant_load("storm", 3.0, 10)
        .with_constant_load("after", 0.8, 40)
}

fn long_overload(scenario: Scenario) -> Scenario {
    scenario
        .with_constant_load("start", 0.5, 20)
        .with_constant_load("overload", 2.0, 600)
        .with_constant_load("calm", 0.5, 60)
}

fn bursts(scenario: Scenario) -> Scenario {
    let mut scenario = (0..20)
        .fold(scenario, |scenario, _| scenario.with_constant_load("on", 3.0, 2).with_constant_load("off", 0.1, 2));
    scenario.phases = vec![ScenarioPhase { name: "bursts".to_owned(), from: scenario.warmup, to: scenario.length() }];
    scenario
}

fn fails_fast(mut scenario: Scenario) -> Scenario {
    scenario.upstream.max_queue = 0;
    scenario.with_constant_load("overload", 2.0, 60)
}

fn many_gates(mut scenario: Scenario) -> Scenario {
    scenario.gates = 100;
    let service = Delay::Uniform(DelayRange { low: Nanos::from_millis(3), high: Nanos::from_millis(17) });
    scenario.callers.deadline = default_deadline(&service);
    // Capacity: 100,000 calls per second.
    (scenario.upstream.slots, scenario.upstream.service) = (1000, service);
    (scenario.warmup, scenario.series_step) = (Nanos::SECOND, Nanos::from_millis(100));
    scenario.with_constant_load("overload", 10.0, 5)
}

fn eighty_percent(scenario: Scenario) -> Scenario {
    scenario.with_constant_load("overall", 0.8, 610)
}

fn priorities(mut scenario: Scenario) -> Scenario {
    // High and critical calls are 0.75 of the capacity together.
    scenario.callers.priorities = [0.25, 0.5, 0.15, 0.1];
    scenario.headline = HeadlineMetric::Critical;
    scenario.with_constant_load("overload", 3.0, 70)
}

fn cold_start(mut scenario: Scenario) -> Scenario {
    scenario.warmup = Nanos::ZERO;
    scenario.with_constant_load("overload", 10.0, 30)
}

fn deadline(mut scenario: Scenario) -> Scenario {
    scenario.callers.deadline = Nanos::SECOND;
    scenario.with_constant_load("overload", 2.0, 60)
}
