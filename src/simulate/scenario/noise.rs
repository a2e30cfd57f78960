//! Worlds in which something happens that is no overload: nobody would have to be refused.

use super::default_deadline;
use crate::decide::Nanos;
use crate::decide::delay::{Delay, DelayRange};
#[cfg(test)]
use crate::decide::dice::Dice;
use crate::simulate::world::{
    CallerKind, ChangeEffect, DeadlineSignal, Scenario, ScenarioPhase, StallModel, StallTarget, UpstreamChange,
};

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn s(s: u64) -> Nanos {
    Nanos::from_secs(s)
}

/// A fast upstream, a gate that is as busy, and more connections than there are places.
pub(super) fn gate_stalls(mut world: Scenario) -> Scenario {
    world.warmup = s(2);
    (world.upstream.slots, world.upstream.service) = (1, Delay::Exponential { mean: Nanos(50_000) });
    world.gate_cost = Nanos(20_000);
    (world.callers.users, world.callers.think_time, world.callers.deadline) = (200, Nanos(100_000), Nanos::SECOND);
    let stall = StallModel {
        target: StallTarget::Gates,
        period: ms(200),
        regular: true,
        length: (ms(20), ms(20)),
        from: s(8),
        to: s(13),
    };
    let random = StallModel { regular: false, length: (ms(5), ms(50)), from: s(13), to: s(23), ..stall };
    world.stalls = vec![stall, random];
    world
        .with_constant_load("quiet", 0.0, 8)
        .with_constant_load("regular", 0.0, 5)
        .with_constant_load("random", 0.0, 10)
}

pub(super) fn upstream_stalls(mut world: Scenario) -> Scenario {
    let service = Delay::Uniform(DelayRange { low: ms(1), high: ms(3) });
    (world.upstream.slots, world.upstream.service, world.callers.deadline) = (10, service, Nanos::SECOND);
    let length = (ms(20), ms(60));
    world.stalls = vec![StallModel {
        target: StallTarget::Upstream,
        period: ms(300),
        regular: false,
        length,
        from: s(20),
        to: s(50),
    }];
    world.with_constant_load("quiet", 0.5, 20).with_constant_load("stalls", 0.5, 30)
}

/// 200 good calls a second, and 400 whose callers have less time than most calls take, at half of the capacity.
fn with_short_deadline_callers(mut world: Scenario, told: DeadlineSignal) -> Scenario {
    world.upstream.service = Delay::Uniform(DelayRange { low: ms(10), high: ms(90) });
    world.upstream.slots = 60;
    let good = CallerKind {
        weight: 1.0,
        deadline_range: (Nanos::SECOND, Nanos::SECOND),
        deadline_signal: DeadlineSignal::Sent,
    };
    let short = CallerKind { weight: 2.0, deadline_range: (ms(20), ms(60)), deadline_signal: told };
    world.callers.kinds = vec![good, short];
    let load = 600.0 / world.upstream.per_s();
    world.with_constant_load("mixed", load, 70)
}

pub(super) fn short_deadlines(world: Scenario) -> Scenario {
    with_short_deadline_callers(world, DeadlineSignal::Sent)
}

pub(super) fn callers_leave(world: Scenario) -> Scenario {
    with_short_deadline_callers(world, DeadlineSignal::Absent)
}

pub(super) fn recovery(mut world: Scenario) -> Scenario {
    let slower = |at_s, to| UpstreamChange { at: s(at_s), replica: None, effect: ChangeEffect::Slowdown(to) };
    world.upstream.service = Delay::Uniform(DelayRange { low: ms(10), high: ms(60) });
    world.callers.deadline = default_deadline(&world.upstream.service);
    world.changes = vec![slower(40, 50.0), slower(42, 1.0)];
    let mut world = world.with_constant_load("all", 0.5, 70);
    let phase = |name: &str, from, to| ScenarioPhase { name: name.to_owned(), from: s(from), to: s(to) };
    // What began while it was slow takes up to 3 s.
    world.phases = vec![phase("before", 10, 40), phase("slow", 40, 42), phase("after", 45, 70)];
    world
}

/// Good calls beside one to three kinds whose callers have less time or little more than a call takes, by dice; at 20 to
/// 60 % of the capacity.
#[cfg(test)]
pub(in crate::simulate) fn mixed(seed: u64) -> Scenario {
    let mut dice = Dice::new(seed, 77);
    let mut world = Scenario { name: "mixed".to_owned(), seed, warmup: Nanos::ZERO, ..super::default_scenario() };
    let from_ms = |ms: f64| Nanos::from_secs_f64(ms / 1e3);
    let low = 1.0 + 50.0 * dice.unit();
    let high = low * (1.0 + 9.0 * dice.unit());
    let uniform = Delay::Uniform(DelayRange { low: from_ms(low), high: from_ms(high) });
    let exponential = Delay::Exponential { mean: from_ms((low + high) / 2.0) };
    world.upstream.service = if dice.unit() < 0.7 { uniform } else { exponential };
    world.upstream.slots = 10 + dice.below(90) as u32;
    world.upstream.continues_abandoned_work = dice.unit() < 0.7;
    let told = |unit: f64| if unit < 0.5 { DeadlineSignal::Sent } else { DeadlineSignal::Absent };
    let good = CallerKind {
        weight: 0.2 + 0.8 * dice.unit(),
        deadline_range: (Nanos::SECOND, Nanos::from_secs(2)),
        deadline_signal: told(dice.unit()),
    };
    world.callers.kinds = vec![good];
    for _ in 0..=dice.below(3) {
        let least = high * 1.2 * dice.unit();
        let patience = (from_ms(least), from_ms(least + high * dice.unit()));
        world.callers.kinds.push(CallerKind {
            weight: 3.0 * dice.unit(),
            deadline_range: patience,
            deadline_signal: told(dice.unit()),
        });
    }
    let load = 0.2 + 0.4 * dice.unit();
    world.with_constant_load("mixed", load, 30)
}
