//! Tests.

pub(crate) mod oracle;

use super::*;
use weir_base::rng::SeededRng;

/// Probability that at least this fraction of `n` calls fails, where 3 in 11 do on average.
fn tail(n: u32, share: f64) -> f64 {
    let least = (share * f64::from(n)).ceil() as u32;
    let log_choose = |k: u32| (0..k).map(|i| (f64::from(n - i) / f64::from(i + 1)).ln()).sum::<f64>();
    let log = |k: u32| log_choose(k) + f64::from(k) * (3.0_f64 / 11.0).ln() + f64::from(n - k) * (8.0_f64 / 11.0).ln();
    (least..=n).map(|k| log(k).exp()).sum()
}

#[test]
fn a_service_that_fails_three_calls_of_eleven_opens_it_by_chance_in_one_window_of_a_hundred_billion() {
    let BreakerRule { min_calls: least, failure_fraction: share, .. } = BreakerRule::default();
    let worst = (least as u32..300).map(|n| tail(n, share)).fold(0.0, f64::max);
    assert!(worst < 1e-11, "{worst}");
    assert!((0.02..0.04).contains(&tail(20, 0.5)), "{}", tail(20, 0.5));
}

/// Of 11 calls, 8 succeed after 100 to 600 ms, 2 fail as fast, 1 fails after 10 s.
#[test]
fn a_service_that_fails_and_hangs_never_opens_it_at_any_rate_nor_when_traffic_stops() {
    for per_s in [2, 4, 5, 10, 100, 1000] {
        let mut breaker = Breaker::new(BreakerRule::default());
        let mut rng = SeededRng::new(7, per_s);
        let mut ends = std::collections::BTreeMap::<(Nanos, u64), (BreakerPermit, bool)>::new();
        let mut now = Nanos::ZERO;
        for call in 0..100_000_u64 {
            // After each thousandth call there are no calls for half a minute.
            now += Nanos(1_000_000_000 / per_s) + if call % 1000 == 999 { Nanos::from_secs(30) } else { Nanos::ZERO };
            while let Some(first) = ends.first_entry().filter(|first| first.key().0 <= now) {
                let ((at, _), (permit, ok)) = first.remove_entry();
                breaker.ended(at, permit, ok);
            }
            let kind = (rng.unit() * 11.0).ceil() as u32;
            let took = if kind == 11 { 10.0 } else { 0.1 + 0.5 * rng.unit() };
            let permit = breaker.allows(now).expect("closed");
            ends.insert((now + Nanos::from_secs_f64(took), call), (permit, kind <= 8));
        }
        assert_eq!(breaker.openings(), 0, "{per_s}");
    }
}

fn fails(breaker: &mut Breaker, now: Nanos, calls: u32) {
    let passes: Vec<BreakerPermit> = (0..calls).flat_map(|_| breaker.allows(now)).collect();
    passes.into_iter().for_each(|permit| breaker.ended(now, permit, false));
}

#[test]
fn open_times_double_while_probes_fail_and_one_success_closes_it() {
    let mut breaker = Breaker::new(BreakerRule::default());
    let mut now = Nanos::from_secs(100);
    fails(&mut breaker, now, 39);
    assert_eq!(breaker.state(now), State::Closed);
    fails(&mut breaker, now, 1);
    for rest in [1, 2, 4, 8, 16, 30, 30] {
        assert_eq!(breaker.state(now), State::Open);
        assert_eq!(breaker.allows(now).expect_err("open"), Nanos::from_secs(rest), "exactly");
        now += Nanos::from_secs(rest);
        assert_eq!(breaker.allows(now - Nanos(1)).expect_err("open"), Nanos(1));
        assert_eq!(breaker.state(now), State::HalfOpen);
        let probe = breaker.allows(now).expect("a probe");
        assert!(breaker.allows(now).is_err_and(|wait| wait == Nanos::SECOND), "one at a time");
        breaker.ended(now, probe, false);
    }
    now += Nanos::from_secs(30);
    let probe = breaker.allows(now).expect("a probe");
    breaker.ended(now, probe, true);
    assert_eq!((breaker.state(now), breaker.openings()), (State::Closed, 8));
    fails(&mut breaker, now, 40);
    assert_eq!(breaker.allows(now).expect_err("open"), Nanos::SECOND, "from the start");
}

#[test]
fn a_probe_without_an_outcome_does_not_leave_it_half_open() {
    let mut breaker = Breaker::new(BreakerRule { probes: 2, ..BreakerRule::default() });
    fails(&mut breaker, Nanos::ZERO, 40);
    let now = Nanos::SECOND;
    let (one, two) = (breaker.allows(now).expect("a probe"), breaker.allows(now).expect("another"));
    assert!(breaker.allows(now).is_err());
    breaker.cancelled(one);
    let three = breaker.allows(now).expect("in its place");
    // The permits of these two are never returned.
    let lost = now + Nanos::from_secs(10);
    assert_eq!(breaker.allows(lost - Nanos(1)).expect_err("half open"), Nanos(1));
    let four = breaker.allows(lost).expect("in their place");
    breaker.ended(lost, two, false);
    breaker.ended(lost, three, true);
    assert_eq!(breaker.state(lost), State::HalfOpen, "their news is too old");
    let five = breaker.allows(lost).expect("the second of two");
    breaker.ended(lost, four, true);
    breaker.ended(lost, five, true);
    assert_eq!(breaker.state(lost), State::Closed);
}

#[test]
fn calls_that_began_before_it_opened_do_not_open_it_again() {
    let mut breaker = Breaker::new(BreakerRule::default());
    let old: Vec<BreakerPermit> = (0..500).flat_map(|_| breaker.allows(Nanos::ZERO)).collect();
    fails(&mut breaker, Nanos::MILLI, 40);
    let now = Nanos::from_secs(2);
    let probe = breaker.allows(now).expect("a probe");
    breaker.ended(now, probe, true);
    old.into_iter().for_each(|permit| breaker.ended(now, permit, false));
    assert_eq!(breaker.state(now), State::Closed);
}

#[test]
fn an_invalid_rule_is_reported_with_its_remedy() {
    let rule = BreakerRule::default();
    assert_eq!(rule.validation_error(), None);
    let faults = [
        BreakerRule { window: Nanos::ZERO, ..rule },
        BreakerRule { min_calls: 0, ..rule },
        BreakerRule { failure_fraction: 1.5, ..rule },
        BreakerRule { open_time: Nanos::ZERO, ..rule },
        BreakerRule { max_open_time: Nanos::MILLI, ..rule },
        BreakerRule { probes: 0, ..rule },
    ];
    let told = faults.map(|rule| rule.validation_error().map(|fault| fault.to_string()).unwrap_or_default());
    assert_eq!(
        told,
        [
            "a window of 0ns is too short; make it longer than an attempt may take, e.g. 10s",
            "min_calls is 0; make it at least 1, e.g. 40",
            "a failure threshold of 1.5 is not possible; make it above 0 and 1 at most, e.g. 0.8",
            "an open_time of 0ns is too short; make it longer, e.g. 1s",
            "max_open_time (1ms) is shorter than open_time (1s); make it 1s at least",
            "without probes the circuit never closes again; make it 1 at least",
        ]
    );
}
