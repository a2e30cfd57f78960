//! Worlds in which something happens that is no overload: nobody would have to be refused.

use super::patience;
use crate::decide::Nanos;
use crate::decide::delay::{Delay, Hump};
#[cfg(test)]
use crate::decide::dice::Dice;
use crate::simulate::world::{Change, Kind, Phase, Stall, To, Told, Whose, World};

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn s(s: u64) -> Nanos {
    Nanos::from_secs(s)
}

/// A fast upstream, a gate that is as busy, and more connections than there are places.
pub(super) fn gate_stalls(mut world: World) -> World {
    world.warmup = s(2);
    (world.upstream.slots, world.upstream.service) = (1, Delay::Exponential { mean: Nanos(50_000) });
    world.gate_cost = Nanos(20_000);
    (world.callers.users, world.callers.think, world.callers.deadline) = (200, Nanos(100_000), Nanos::SECOND);
    let stall =
        Stall { whose: Whose::Gates, every: ms(200), regular: true, length: (ms(20), ms(20)), from: s(8), to: s(13) };
    let random = Stall { regular: false, length: (ms(5), ms(50)), from: s(13), to: s(23), ..stall };
    world.stalls = vec![stall, random];
    world.even("quiet", 0.0, 8).even("regular", 0.0, 5).even("random", 0.0, 10)
}

pub(super) fn upstream_stalls(mut world: World) -> World {
    let service = Delay::Uniform(Hump { low: ms(1), high: ms(3) });
    (world.upstream.slots, world.upstream.service, world.callers.deadline) = (10, service, Nanos::SECOND);
    let length = (ms(20), ms(60));
    world.stalls =
        vec![Stall { whose: Whose::Upstream, every: ms(300), regular: false, length, from: s(20), to: s(50) }];
    world.even("quiet", 0.5, 20).even("stalls", 0.5, 30)
}

/// 200 good calls a second, and 400 whose callers have less time than most calls take, at half of the capacity.
fn beside_short(mut world: World, told: Told) -> World {
    world.upstream.service = Delay::Uniform(Hump { low: ms(10), high: ms(90) });
    world.upstream.slots = 60;
    let good = Kind { share: 1.0, patience: (Nanos::SECOND, Nanos::SECOND), told: Told::Deadline };
    let short = Kind { share: 2.0, patience: (ms(20), ms(60)), told };
    world.callers.kinds = vec![good, short];
    let load = 600.0 / world.upstream.per_s();
    world.even("mixed", load, 70)
}

pub(super) fn short_deadlines(world: World) -> World {
    beside_short(world, Told::Deadline)
}

pub(super) fn callers_leave(world: World) -> World {
    beside_short(world, Told::Nothing)
}

pub(super) fn recovery(mut world: World) -> World {
    let slower = |at_s, to| Change { at: s(at_s), replica: None, to: To::Slower(to) };
    world.upstream.service = Delay::Uniform(Hump { low: ms(10), high: ms(60) });
    world.callers.deadline = patience(&world.upstream.service);
    world.changes = vec![slower(40, 50.0), slower(42, 1.0)];
    let mut world = world.even("all", 0.5, 70);
    let phase = |name: &str, from, to| Phase { name: name.to_owned(), from: s(from), to: s(to) };
    // What began while it was slow takes up to 3 s.
    world.phases = vec![phase("before", 10, 40), phase("slow", 40, 42), phase("after", 45, 70)];
    world
}

/// Good calls beside one to three kinds whose callers have less time or little more than a call takes, by dice; at 20 to
/// 60 % of the capacity.
#[cfg(test)]
pub(in crate::simulate) fn mixed(seed: u64) -> World {
    let mut dice = Dice::new(seed, 77);
    let mut world = World { name: "mixed".to_owned(), seed, warmup: Nanos::ZERO, ..super::plain() };
    let from_ms = |ms: f64| Nanos::from_secs_f64(ms / 1e3);
    let low = 1.0 + 50.0 * dice.unit();
    let high = low * (1.0 + 9.0 * dice.unit());
    let uniform = Delay::Uniform(Hump { low: from_ms(low), high: from_ms(high) });
    let exponential = Delay::Exponential { mean: from_ms((low + high) / 2.0) };
    world.upstream.service = if dice.unit() < 0.7 { uniform } else { exponential };
    world.upstream.slots = 10 + dice.below(90) as u32;
    world.upstream.works_on = dice.unit() < 0.7;
    let told = |unit: f64| if unit < 0.5 { Told::Deadline } else { Told::Nothing };
    let good = Kind {
        share: 0.2 + 0.8 * dice.unit(),
        patience: (Nanos::SECOND, Nanos::from_secs(2)),
        told: told(dice.unit()),
    };
    world.callers.kinds = vec![good];
    for _ in 0..=dice.below(3) {
        let least = high * 1.2 * dice.unit();
        let patience = (from_ms(least), from_ms(least + high * dice.unit()));
        world.callers.kinds.push(Kind { share: 3.0 * dice.unit(), patience, told: told(dice.unit()) });
    }
    let load = 0.2 + 0.4 * dice.unit();
    world.even("mixed", load, 30)
}
