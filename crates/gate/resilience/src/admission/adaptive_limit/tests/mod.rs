//! The knee of known curves, and the limit of an upstream without responses.

use super::map::{Knee, LatencyCurve};
use super::{AdaptiveLimit, Options};
use crate::admission::{ServiceSample, Slots};
use weir_base::Nanos;
use weir_base::rng::SeededRng;

const MS: f64 = 1e6;

/// Curve of random samples: concurrency uniform in `from..to`, and `time` of the concurrency and a uniform draw.
fn drawn(from: f64, to: f64, samples: u64, time: impl Fn(f64, f64) -> f64) -> LatencyCurve {
    let rng = SeededRng::new(7, 1);
    let mut curve = LatencyCurve::default();
    for at in 0..samples {
        let in_flight = (from + (to - from) * rng.unit_at(2 * at)).round();
        curve.add(in_flight, time(in_flight, rng.unit_at(2 * at + 1)));
    }
    curve
}

fn knee(curve: &LatencyCurve, steepness: f64) -> Option<f64> {
    curve.knee(super::MAX_TIME_FACTOR, steepness, None, true).map(|knee| knee.in_flight)
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
fn a_queue_in_front_of_slots_has_its_knee_at_the_slots() {
    for slots in [10.0, 50.0, 400.0] {
        let waits = |in_flight: f64| (in_flight / slots - 1.0).max(0.0) * 100.0 * MS;
        let curve = drawn(0.4 * slots, 1.8 * slots, 20_000, |in_flight, unit| waits(in_flight) + uniform(unit));
        assert!(is_near(knee(&curve, 1.0), slots), "{slots}: {:?}", knee(&curve, 1.0));
    }
}

#[test]
fn a_shared_processor_has_its_knee_where_it_is_full() {
    let curve = drawn(20.0, 90.0, 20_000, |in_flight, unit| (in_flight / 50.0).max(1.0) * uniform(unit));
    assert!(is_near(knee(&curve, 1.0), 50.0), "{:?}", knee(&curve, 1.0));
}

#[test]
fn times_that_vary_much_have_the_same_knee() {
    let wait = |in_flight: f64| (in_flight / 50.0 - 1.0).max(0.0) * 100.0 * MS;
    let curve = drawn(20.0, 90.0, 20_000, |in_flight, unit| (wait(in_flight) + exponential(unit)).min(160.0 * MS));
    // Times count up to twice the typical 80 ms, so with a mean of 100 ms the curve is steeper.
    assert!(is_near(knee(&curve, 1.25), 50.0), "{:?}", knee(&curve, 1.25));
}

#[test]
fn a_few_slow_calls_make_the_curve_steeper_and_do_not_move_the_knee() {
    let waits = |in_flight: f64| (in_flight / 50.0 - 1.0).max(0.0) * 60.0 * MS;
    let service = |unit: f64| if unit < 0.1 { 500.0 * MS } else { 10.0 * MS };
    let curve = drawn(20.0, 58.0, 20_000, |in_flight, unit| (waits(in_flight) + service(unit)).min(22.0 * MS));
    assert!(is_near(knee(&curve, 5.5), 50.0), "{:?}", knee(&curve, 5.5));
    assert!(knee(&curve, 1.0).is_some_and(|at| at < 44.0), "with a steepness of 1 the knee is far too low");
}

#[test]
fn times_independent_of_concurrency_have_no_knee() {
    for (time, steepness) in [(uniform as fn(f64) -> f64, 1.0), (exponential, 1.25), (|_| 100.0 * MS, 1.0)] {
        let curve = drawn(1.0, 500.0, 20_000, |_, unit| time(unit).min(200.0 * MS));
        assert_eq!(knee(&curve, steepness), None);
    }
}

#[test]
fn a_slower_service_is_detected_soon() {
    let mut curve = drawn(40.0, 50.0, 5000, |_, unit| uniform(unit));
    let rng = SeededRng::new(8, 1);
    for at in 0..150 {
        curve.add(40.0 + 10.0 * rng.unit_at(2 * at), 2.0 * uniform(rng.unit_at(2 * at + 1)));
    }
    let base = curve.no_load_ns().unwrap_or(0.0);
    // Without that the 5,000 earlier samples would still outweigh these by far.
    assert!(base > 150.0 * MS, "{base}");
}

/// A hundred constant times of 100 ms at ten calls in flight, and one time at 90; the deviation of a time is then 2 ms.
fn with_one_at_90(ms: f64) -> LatencyCurve {
    let mut curve = LatencyCurve::default();
    (0..100).for_each(|_| curve.add(10.0, 100.0 * MS));
    curve.add(90.0, ms * MS);
    curve
}

#[test]
fn a_known_knee_stays_within_two_deviations_of_the_best_one() {
    let curve = with_one_at_90(180.0);
    let known = |in_flight| curve.knee(super::MAX_TIME_FACTOR, 1.0, Some(Knee { in_flight }), true);
    // 180 ms are those of a knee at 50; at 51.2 they would be 175.8 ms, and at 53 they would be 169.8 ms.
    assert_eq!(known(51.2), Some(Knee { in_flight: 51.2 }));
    assert!(known(53.0).is_some_and(|knee| (49.0..51.0).contains(&knee.in_flight)), "{:?}", known(53.0));
}

#[test]
fn a_new_knee_needs_more_evidence_than_a_known_one_and_most_while_slots_are_free() {
    let found = |ms: f64, before: Option<f64>, pressed| {
        let before = before.map(|in_flight| Knee { in_flight });
        with_one_at_90(ms).knee(super::MAX_TIME_FACTOR, 1.0, before, pressed).is_some()
    };
    for (ms, known, new, while_free) in [
        (103.0, false, false, false),
        (106.0, true, false, false),
        (112.0, true, true, false),
        (120.0, true, true, true),
    ] {
        assert_eq!(
            [found(ms, Some(80.0), true), found(ms, None, true), found(ms, None, false)],
            [known, new, while_free],
            "{ms}"
        );
    }
}

#[test]
fn the_gradient_of_an_overloaded_upstream_is_two_thirds() {
    let mut limit = AdaptiveLimit::new(Options::default(), Nanos::ZERO);
    let slots = Slots::new(limit.limit());
    let at = |limit: &mut AdaptiveLimit, ms: u64, in_flight_at_start: u32, time: Nanos| {
        let now = Nanos::from_millis(ms) + time;
        let started = Nanos::from_millis(ms);
        let sample = ServiceSample { started, in_flight_at_start, lag: Nanos::ZERO, read_delay: Nanos::ZERO };
        limit.learn(now, &sample, time, false, &slots);
    };
    (0..200).for_each(|n| at(&mut limit, 5 * n, 1, Nanos::from_millis(10)));
    assert!((limit.gradient() - 1.0).abs() < 0.01, "{}", limit.gradient());
    (200..700).for_each(|n| at(&mut limit, 5 * n, 5, Nanos::from_millis(100)));
    assert!((limit.gradient() - 2.0 / 3.0).abs() < 0.01, "{}", limit.gradient());
}

#[test]
fn the_limit_falls_while_no_response_comes_in_time() {
    let mut limit = AdaptiveLimit::new(Options::default(), Nanos::ZERO);
    let slots = Slots::new(limit.limit());
    assert!((0..1000).all(|_| slots.try_acquire(0)));
    for ms in 1000..60_000 {
        let now = Nanos::from_millis(ms);
        let in_flight = limit.limit().min(ms as u32 - 999);
        let sample = ServiceSample {
            started: now - Nanos::SECOND,
            in_flight_at_start: in_flight,
            lag: Nanos::ZERO,
            read_delay: Nanos::ZERO,
        };
        limit.learn(now, &sample, Nanos::SECOND, true, &slots);
    }
    assert!(limit.limit() < 100, "{}", limit.limit());
}
