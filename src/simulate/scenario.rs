//! Worlds with names. Loads are told as multiples of what the upstream can take at first.

use super::score::Headline;
use super::world::{Balance, Callers, Change, Phase, Retry, To, Unhindered, Upstream, World};
use crate::decide::Nanos;
use crate::decide::delay::{Delay, Hump};
use crate::decide::schedule::{Arrivals, Stage};
use crate::decide::station::Overflow;

mod noise;

#[cfg(test)]
pub(super) use noise::mixed;
use noise::{callers_leave, gate_stalls, recovery, short_deadlines, upstream_stalls};

/// Who gives no deadline waits for so many times as long as 99 % of unhindered calls take.
pub const PATIENCE: f64 = 4.0;

/// A name, what it is about, and what makes it.
type Named = (&'static str, &'static str, fn(World) -> World);

const ALL: [Named; 22] = [
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
    ALL.into_iter().map(|(name, _, _)| name)
}

/// What it is about, in a sentence.
pub fn about(name: &str) -> Option<&'static str> {
    ALL.into_iter().find(|scenario| scenario.0 == name).map(|(_, about, _)| about)
}

/// The world of that name.
pub fn named(name: &str) -> Option<World> {
    let (name, _, make) = ALL.into_iter().find(|scenario| scenario.0 == name)?;
    Some(make(World { name: name.to_owned(), ..plain() }))
}

/// A service of 50 slots whose calls take 100 to 600 ms; nobody calls yet.
pub fn plain() -> World {
    let service = Delay::Uniform(Hump { low: Nanos::from_millis(100), high: Nanos::from_millis(600) });
    World {
        name: "own".to_owned(),
        seed: 1,
        callers: Callers {
            stages: Vec::new(),
            arrivals: Arrivals::Poisson,
            deadline: patience(&service),
            priorities: [0.0, 1.0, 0.0, 0.0],
            retry: None,
            kinds: Vec::new(),
            users: 0,
            think: Nanos::ZERO,
        },
        gates: 1,
        upstream: Upstream {
            replicas: 1,
            slots: 50,
            service,
            overflow: Overflow::Refuse { queue: usize::MAX },
            works_on: true,
            balance: Balance::LeastInFlight,
        },
        changes: Vec::new(),
        stalls: Vec::new(),
        gate_cost: Nanos::ZERO,
        phases: Vec::new(),
        warmup: Nanos::from_secs(10),
        headline: Headline::Goodput,
        step: Nanos::from_millis(500),
    }
}

/// For how long callers wait if nobody says.
pub fn patience(service: &Delay) -> Nanos {
    Nanos::from_secs_f64(Unhindered::of(service).p99.as_secs_f64() * PATIENCE)
}

impl World {
    /// Adds a phase of this length: the load goes from one multiple of the upstream's capacity to another.
    pub fn then(mut self, name: &str, from: f64, to: f64, length: Nanos) -> Self {
        let start = self.length();
        let capacity = self.upstream.per_s();
        self.callers.stages.push(Stage { from_per_s: from * capacity, to_per_s: to * capacity, length });
        // The warm-up belongs to no phase.
        let (from, to) = (start.max(self.warmup), start + length);
        if from < to {
            self.phases.push(Phase { name: name.to_owned(), from, to });
        }
        self
    }

    fn even(self, name: &str, load: f64, seconds: u64) -> Self {
        self.then(name, load, load, Nanos::from_secs(seconds))
    }

    fn change(mut self, at_s: u64, replica: Option<u32>, to: To) -> Self {
        self.changes.push(Change { at: Nanos::from_secs(at_s), replica, to });
        self
    }
}

fn step_down(world: World) -> World {
    world.even("all slots", 1.2, 40).even("half", 1.2, 40).change(40, None, To::Slots(25))
}

fn step_up(mut world: World) -> World {
    world.upstream.slots = 25;
    world.even("few slots", 3.0, 40).even("twice", 3.0, 40).change(40, None, To::Slots(50))
}

fn slower_service(world: World) -> World {
    world.even("fast", 1.2, 40).even("slow", 1.2, 40).change(40, None, To::Slower(2.0))
}

fn ramp(mut world: World) -> World {
    world.warmup = Nanos::ZERO;
    let length = Nanos::from_secs(60);
    world.then("up", 0.0, 3.0, length).then("down", 3.0, 0.0, length)
}

fn flash_crowd(world: World) -> World {
    world.even("before", 0.5, 40).even("crowd", 10.0, 30).even("after", 0.5, 30)
}

fn slow_replica(mut world: World) -> World {
    (world.upstream.replicas, world.upstream.slots) = (5, 10);
    world.even("all fast", 0.7, 40).even("one slow", 0.7, 40).even("too much", 1.5, 40).change(
        40,
        Some(0),
        To::Slower(5.0),
    )
}

fn two_humped(mut world: World) -> World {
    let hump = |low, high| Hump { low: Nanos::from_millis(low), high: Nanos::from_millis(high) };
    let service = Delay::TwoHumped { first: hump(50, 100), second: hump(400, 900), second_share: 0.2 };
    world.callers.deadline = patience(&service);
    world.upstream.service = service;
    world.even("room for all", 0.8, 60).even("too much", 2.0, 60)
}

fn low_traffic(world: World) -> World {
    let low = 2.0 / world.upstream.per_s();
    world.even("low", low, 180).even("too much", 2.0, 40)
}

fn retry_storm(mut world: World) -> World {
    world.callers.retry = Some(Retry { times: 5, after: Nanos::from_millis(100), obeys: false });
    world.even("before", 0.8, 30).even("storm", 3.0, 10).even("after", 0.8, 40)
}

fn long_overload(world: World) -> World {
    world.even("start", 0.5, 20).even("overload", 2.0, 600).even("calm", 0.5, 60)
}

fn bursts(world: World) -> World {
    let mut world = (0..20).fold(world, |world, _| world.even("on", 3.0, 2).even("off", 0.1, 2));
    world.phases = vec![Phase { name: "bursts".to_owned(), from: world.warmup, to: world.length() }];
    world
}

fn fails_fast(mut world: World) -> World {
    world.upstream.overflow = Overflow::Refuse { queue: 0 };
    world.even("overload", 2.0, 60)
}

fn many_gates(mut world: World) -> World {
    world.gates = 100;
    let service = Delay::Uniform(Hump { low: Nanos::from_millis(3), high: Nanos::from_millis(17) });
    world.callers.deadline = patience(&service);
    // 100,000 calls a second.
    (world.upstream.slots, world.upstream.service) = (1000, service);
    (world.warmup, world.step) = (Nanos::SECOND, Nanos::from_millis(100));
    world.even("overload", 10.0, 5)
}

fn eighty_percent(world: World) -> World {
    world.even("overall", 0.8, 610)
}

fn priorities(mut world: World) -> World {
    // High and critical calls are 0.75 of the capacity together.
    world.callers.priorities = [0.25, 0.5, 0.15, 0.1];
    world.headline = Headline::Critical;
    world.even("overload", 3.0, 70)
}

fn cold_start(mut world: World) -> World {
    world.warmup = Nanos::ZERO;
    world.even("overload", 10.0, 30)
}

fn deadline(mut world: World) -> World {
    world.callers.deadline = Nanos::SECOND;
    world.even("overload", 2.0, 60)
}
