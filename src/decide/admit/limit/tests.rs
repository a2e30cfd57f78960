//! The bend of curves that are known.

use super::map::LatencyCurve;
use super::{AdaptiveLimit, Options};
use crate::decide::Nanos;
use crate::decide::admit::{ServiceSample, Slots};
use crate::decide::dice::Dice;

const MS: f64 = 1e6;

/// Fills a map: `beside` goes up and down between two numbers, and each takes as long as `time` says of it and a draw.
fn drawn(from: f64, to: f64, samples: u64, time: impl Fn(f64, f64) -> f64) -> LatencyCurve {
    let dice = Dice::new(7, 1);
    let mut map = LatencyCurve::default();
    for at in 0..samples {
        let beside = (from + (to - from) * dice.unit_at(2 * at)).round();
        map.add(beside, time(beside, dice.unit_at(2 * at + 1)));
    }
    map
}

fn knee(map: &LatencyCurve, steep: f64) -> Option<f64> {
    map.knee(super::MAX_TIME_FACTOR, steep, None, true).map(|knee| knee.in_flight)
}

fn is_near(found: Option<f64>, expected: f64) -> bool {
    found.is_some_and(|found| (found / expected - 1.0).abs() < 0.12)
}

fn uniform(unit: f64) -> f64 {
    (50.0 + 100.0 * unit) * MS
}

fn exponential(unit: f64) -> f64 {
    -unit.ln() * 100.0 * MS
}

#[test]
fn a_queue_before_slots_bends_at_the_slots() {
    for slots in [10.0, 50.0, 400.0] {
        let waits = |beside: f64| (beside / slots - 1.0).max(0.0) * 100.0 * MS;
        let map = drawn(0.4 * slots, 1.8 * slots, 20_000, |beside, unit| waits(beside) + uniform(unit));
        assert!(is_near(knee(&map, 1.0), slots), "{slots}: {:?}", knee(&map, 1.0));
    }
}

#[test]
fn a_shared_processor_bends_where_it_is_full() {
    let map = drawn(20.0, 90.0, 20_000, |beside, unit| (beside / 50.0).max(1.0) * uniform(unit));
    assert!(is_near(knee(&map, 1.0), 50.0), "{:?}", knee(&map, 1.0));
}

#[test]
fn times_that_differ_much_bend_there_too() {
    let wait = |beside: f64| (beside / 50.0 - 1.0).max(0.0) * 100.0 * MS;
    let map = drawn(20.0, 90.0, 20_000, |beside, unit| (wait(beside) + exponential(unit)).min(160.0 * MS));
    // As they count up to twice the usual time, which is 80 ms, their mean of 100 ms is steeper.
    assert!(is_near(knee(&map, 1.25), 50.0), "{:?}", knee(&map, 1.25));
}

#[test]
fn a_few_slow_ones_make_the_bend_steep_and_do_not_move_it() {
    let waits = |beside: f64| (beside / 50.0 - 1.0).max(0.0) * 60.0 * MS;
    let service = |unit: f64| if unit < 0.1 { 500.0 * MS } else { 10.0 * MS };
    let map = drawn(20.0, 58.0, 20_000, |beside, unit| (waits(beside) + service(unit)).min(22.0 * MS));
    assert!(is_near(knee(&map, 5.5), 50.0), "{:?}", knee(&map, 5.5));
    assert!(knee(&map, 1.0).is_some_and(|at| at < 44.0), "taken for a flat one it is found far too low");
}

#[test]
fn what_takes_as_long_beside_many_does_not_bend() {
    for (time, steep) in [(uniform as fn(f64) -> f64, 1.0), (exponential, 1.25), (|_| 100.0 * MS, 1.0)] {
        let map = drawn(1.0, 500.0, 20_000, |_, unit| time(unit).min(200.0 * MS));
        assert_eq!(knee(&map, steep), None);
    }
}

#[test]
fn a_service_that_has_become_slower_is_believed_soon() {
    let mut map = drawn(40.0, 50.0, 5000, |_, unit| uniform(unit));
    let dice = Dice::new(8, 1);
    for at in 0..150 {
        map.add(40.0 + 10.0 * dice.unit_at(2 * at), 2.0 * uniform(dice.unit_at(2 * at + 1)));
    }
    let base = map.no_load_ns().unwrap_or(0.0);
    // Without doubt the 5000 that came before would still outweigh these by far.
    assert!(base > 150.0 * MS, "{base}");
}

#[test]
fn an_upstream_that_answers_nobody_in_time_gets_less_and_less() {
    let mut limit = AdaptiveLimit::new(Options::default(), Nanos::ZERO);
    let room = Slots::new(limit.limit());
    assert!((0..1000).all(|_| room.try_acquire(0)));
    for ms in 1000..60_000 {
        let now = Nanos::from_millis(ms);
        let beside = limit.limit().min(ms as u32 - 999);
        let sample = ServiceSample {
            started: now - Nanos::SECOND,
            in_flight_at_start: beside,
            lag: Nanos::ZERO,
            read_delay: Nanos::ZERO,
        };
        limit.learn(now, &sample, Nanos::SECOND, true, &room);
    }
    assert!(limit.limit() < 100, "{}", limit.limit());
}
