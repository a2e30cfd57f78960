//! Scenarios without overload: stalls, short deadlines, disconnecting callers. No call has to be rejected.

use super::default_deadline;
use crate::world::{
    CallerKind, ChangeEffect, DeadlineSignal, KindWork, Scenario, ScenarioPhase, StallModel, StallTarget, TimeRange,
    UpstreamChange,
};
use weir_base::Nanos;
#[cfg(test)]
use weir_base::rng::SeededRng;
use weir_workload::delay::{Delay, DelayRange};

pub(super) fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn s(s: u64) -> Nanos {
    Nanos::from_secs(s)
}

/// Fast upstream, a nearly saturated gate, and more connections than slots.
pub(super) fn gate_stalls(mut scenario: Scenario) -> Scenario {
    scenario.warmup = s(2);
    (scenario.upstream.slots, scenario.upstream.service) = (1, Delay::Exponential { mean: Nanos(50_000) });
    scenario.gate_cost = Nanos(20_000);
    (scenario.callers.users, scenario.callers.think_time, scenario.callers.deadline) =
        (200, Nanos(100_000), Nanos::SECOND);
    let stall = StallModel {
        target: StallTarget::Gates,
        period: ms(200),
        regular: true,
        length: TimeRange::constant(ms(20)),
        from: s(8),
        to: s(13),
    };
    let random = StallModel {
        regular: false,
        length: TimeRange { shortest: ms(5), longest: ms(50) },
        from: s(13),
        to: s(23),
        ..stall
    };
    scenario.stalls = vec![stall, random];
    scenario
        .with_constant_load("quiet", 0.0, 8)
        .with_constant_load("regular", 0.0, 5)
        .with_constant_load("random", 0.0, 10)
}

pub(super) fn upstream_stalls(mut scenario: Scenario) -> Scenario {
    let service = Delay::Uniform(DelayRange { low: ms(1), high: ms(3) });
    (scenario.upstream.slots, scenario.upstream.service, scenario.callers.deadline) = (10, service, Nanos::SECOND);
    let length = TimeRange { shortest: ms(20), longest: ms(60) };
    scenario.stalls = vec![StallModel {
        target: StallTarget::Upstream,
        period: ms(300),
        regular: false,
        length,
        from: s(20),
        to: s(50),
    }];
    scenario.with_constant_load("quiet", 0.5, 20).with_constant_load("stalls", 0.5, 30)
}

/// 200 calls per second with a long deadline, and 400 with one shorter than most service times, at half of the
/// capacity.
fn with_short_deadline_callers(mut scenario: Scenario, signal: DeadlineSignal) -> Scenario {
    scenario.upstream.service = Delay::Uniform(DelayRange { low: ms(10), high: ms(90) });
    scenario.upstream.slots = 60;
    let good = CallerKind {
        weight: 1.0,
        deadline_range: TimeRange::constant(Nanos::SECOND),
        deadline_signal: DeadlineSignal::Sent,
        work: KindWork::default(),
    };
    let deadline_range = TimeRange { shortest: ms(20), longest: ms(60) };
    let short = CallerKind { weight: 2.0, deadline_range, deadline_signal: signal, ..good };
    scenario.callers.kinds = vec![good, short];
    let load = 600.0 / scenario.upstream.per_s();
    scenario.with_constant_load("mixed", load, 70)
}

pub(super) fn short_deadlines(scenario: Scenario) -> Scenario {
    with_short_deadline_callers(scenario, DeadlineSignal::Sent)
}

pub(super) fn callers_leave(scenario: Scenario) -> Scenario {
    with_short_deadline_callers(scenario, DeadlineSignal::Absent)
}

pub(super) fn recovery(mut scenario: Scenario) -> Scenario {
    let slower = |at_s, to| UpstreamChange { at: s(at_s), replica: None, effect: ChangeEffect::Slowdown(to) };
    scenario.upstream.service = Delay::Uniform(DelayRange { low: ms(10), high: ms(60) });
    scenario.callers.deadline = default_deadline(&scenario.upstream.service);
    scenario.changes = vec![slower(40, 50.0), slower(42, 1.0)];
    let mut scenario = scenario.with_constant_load("all", 0.5, 70);
    let phase = |name: &str, from, to| ScenarioPhase { name: name.to_owned(), from: s(from), to: s(to) };
    // Calls that started during the slow phase take up to 3 s.
    scenario.phases = vec![phase("before", 10, 40), phase("slow", 40, 42), phase("after", 45, 70)];
    scenario
}

/// Random mix of calls with long deadlines and one to three kinds with deadlines around the service time, at 20 to 60%
/// of the capacity.
#[cfg(test)]
pub(crate) fn mixed(seed: u64) -> Scenario {
    let mut rng = SeededRng::new(seed, 77);
    let mut scenario = Scenario { name: "mixed".to_owned(), seed, warmup: Nanos::ZERO, ..super::default_scenario() };
    let from_ms = |ms: f64| Nanos::from_secs_f64(ms / 1e3);
    let low = 1.0 + 50.0 * rng.unit();
    let high = low * (1.0 + 9.0 * rng.unit());
    let uniform = Delay::Uniform(DelayRange { low: from_ms(low), high: from_ms(high) });
    let exponential = Delay::Exponential { mean: from_ms((low + high) / 2.0) };
    scenario.upstream.service = if rng.unit() < 0.7 { uniform } else { exponential };
    scenario.upstream.slots = 10 + rng.below(90) as u32;
    scenario.upstream.continues_abandoned_work = rng.unit() < 0.7;
    let signal = |unit: f64| if unit < 0.5 { DeadlineSignal::Sent } else { DeadlineSignal::Absent };
    let good = CallerKind {
        weight: 0.2 + 0.8 * rng.unit(),
        deadline_range: TimeRange { shortest: Nanos::SECOND, longest: Nanos::from_secs(2) },
        deadline_signal: signal(rng.unit()),
        work: KindWork::default(),
    };
    scenario.callers.kinds = vec![good];
    for _ in 0..=rng.below(3) {
        let shortest = high * 1.2 * rng.unit();
        let longest = from_ms(shortest + high * rng.unit());
        let deadline_range = TimeRange { shortest: from_ms(shortest), longest };
        scenario.callers.kinds.push(CallerKind {
            weight: 3.0 * rng.unit(),
            deadline_range,
            deadline_signal: signal(rng.unit()),
            ..good
        });
    }
    let load = 0.2 + 0.4 * rng.unit();
    scenario.with_constant_load("mixed", load, 30)
}
