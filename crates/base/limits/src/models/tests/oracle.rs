//! A naive limiter: every accepted request is stored for good, and each model recounts them by its definition. The
//! properties compare the limiter with it.

use proptest::prelude::*;

use crate::models::{LimitModel, LimitRejection, LimitUsage, LimitWindow, Nanos, RetryTime, ServerLimiter};

/// A window, and all accepted requests: time, weight, and whether in progress.
#[derive(Clone)]
struct NaiveWindow {
    window: LimitWindow,
    accepted: Vec<(u64, u64, bool)>,
}

impl NaiveWindow {
    /// Used amount, as an exact fraction.
    fn used(&self, now: u64) -> (u128, u128) {
        let (limit, per) = (u128::from(self.window.limit()), u128::from(self.window.per().0));
        let sum = |which: &dyn Fn(&(u64, u64, bool)) -> bool| {
            self.accepted.iter().filter(|entry| which(entry)).map(|(_, weight, _)| u128::from(*weight)).sum::<u128>()
        };
        let index = |at: u64| u128::from(at) / per;
        let (now, this) = (u128::from(now), || index(now));
        match self.window.model() {
            LimitModel::SlidingLog => (sum(&|(at, ..)| now - u128::from(*at) <= per), 1),
            LimitModel::SlidingCounter => {
                let last = sum(&|(at, ..)| index(*at) + 1 == this());
                (sum(&|(at, ..)| index(*at) == this()) * per + last * (per - now % per), per)
            }
            LimitModel::AlignedWindow => (sum(&|(at, ..)| index(*at) == this()), 1),
            // Of the amount since any moment, the bucket held the limit at most, and the refill the rest.
            LimitModel::TokenBucket => {
                let since = self.accepted.iter().map(|(from, ..)| {
                    let spent = sum(&|(at, ..)| at >= from) * per;
                    spent.saturating_sub(limit * (now - u128::from(*from)))
                });
                (since.max().unwrap_or(0), per)
            }
            LimitModel::Concurrency => (sum(&|(.., open)| *open), 1),
        }
    }

    fn rounded_up(&self, now: u64) -> u64 {
        let (used, unit) = self.used(now);
        used.div_ceil(unit) as u64
    }

    fn accepts(&self, now: u64, weight: u64) -> bool {
        let (used, unit) = self.used(now);
        used + u128::from(weight) * unit <= u128::from(self.window.limit()) * unit
    }
}

fn window() -> impl Strategy<Value = LimitWindow> {
    let per = prop_oneof![1..20_u64, 900..1100_u64];
    (prop::sample::select(&LimitModel::ALL[..]), 1..8_u64, per)
        .prop_map(|(model, limit, per)| LimitWindow::new(model, limit, Nanos(per)).expect("not 0"))
}

/// Next step: a gap (bursts, steps, long gaps), then a request of a weight, or the end of one.
fn step() -> impl Strategy<Value = (u64, Option<u64>)> {
    let gap = prop_oneof![6 => Just(0), 4 => 1..10_u64, 3 => 10..400_u64, 1 => 400..5000_u64];
    (gap, prop_oneof![5 => (0..10_u64).prop_map(Some), 3 => Just(Some(1)), 1 => Just(None)])
}

/// Asserts a rejection just before the retry time, and none at it.
fn check_retry(limiter: &ServerLimiter, now: u64, weight: u64, retry: RetryTime) -> Result<(), TestCaseError> {
    if let RetryTime::After(length) = retry {
        prop_assert!(limiter.clone().judge(Nanos(now) + length, weight).is_ok(), "too early: {length:?}");
        if length > Nanos::ZERO {
            let before = Nanos(now) + length - Nanos(1);
            prop_assert!(limiter.clone().judge(before, weight).is_err(), "{length:?} is longer than needed");
        }
    } else {
        prop_assert!(limiter.clone().judge(Nanos(now + 1_000_000), weight).is_err());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_model_decides_as_a_recount_of_everything_does(
        windows in prop::collection::vec(window(), 1..4), tick in prop_oneof![Just(1_u64), 2..9_u64, Just(100)],
        start in prop_oneof![Just(0), 0..10_000_u64], steps in prop::collection::vec(step(), 1..60)
    ) {
        let mut limiter = ServerLimiter::new(&windows, Nanos(tick));
        let mut logs: Vec<NaiveWindow> = windows.iter().map(|w| NaiveWindow { window: *w, accepted: Vec::new() }).collect();
        let mut closest = vec![0; windows.len()];
        let mut now = start;
        for (gap, what) in steps {
            now += gap;
            let at = now - now % tick;
            let Some(weight) = what else {
                let open = logs[0].accepted.iter().position(|(.., open)| *open);
                if let Some(first) = open {
                    limiter.finished(logs[0].accepted[first].1);
                    logs.iter_mut().for_each(|log| log.accepted[first].2 = false);
                }
                continue;
            };
            let all = logs.iter().all(|log| log.accepts(at, weight));
            let before = limiter.clone();
            match limiter.judge(Nanos(now), weight) {
                Ok(()) => {
                    prop_assert!(all, "accepted, at {now}, weight {weight}");
                    for (log, closest) in logs.iter_mut().zip(&mut closest) {
                        log.accepted.push((at, weight, true));
                        *closest = log.rounded_up(at).max(*closest);
                    }
                }
                Err(LimitRejection { window, retry }) => {
                    prop_assert!(!all, "rejected at {now}, weight {weight}");
                    prop_assert!(!logs[window].accepts(at, weight), "the window that is named has no room");
                    let never = windows.iter().any(|window| weight > window.limit());
                    prop_assert_eq!(retry == RetryTime::Never, never);
                    check_retry(&before, now, weight, retry)?;
                }
            }
            let most: Vec<u64> = limiter.peaks().map(|(_, most)| most).collect();
            prop_assert_eq!(&most, &closest);
            for (number, standing) in limiter.usages(Nanos(now)).into_iter().enumerate() {
                let LimitUsage { window, used, remaining, more, all } = standing;
                prop_assert_eq!(window, windows[number]);
                prop_assert_eq!(used, logs[number].rounded_up(at));
                prop_assert_eq!(used + remaining, window.limit());
                let mut alone = limiter.clone();
                alone.windows = vec![alone.windows[number].clone()];
                if used > 0 {
                    check_retry(&alone, now, remaining + 1, more)?;
                    check_retry(&alone, now, window.limit(), all)?;
                } else {
                    prop_assert_eq!((more, all), (RetryTime::After(Nanos::ZERO), RetryTime::After(Nanos::ZERO)));
                }
            }
        }
    }

    /// No argument causes a panic: absurd times, time that goes back, absurd weights.
    #[test]
    fn a_limiter_survives_every_time_and_weight(
        windows in prop::collection::vec((prop::sample::select(&LimitModel::ALL[..]), 1..=LimitWindow::MAX_LIMIT, 1..u64::MAX), 1..4),
        tick in any::<u64>(), steps in prop::collection::vec((any::<u64>(), any::<u64>(), any::<bool>()), 1..40)
    ) {
        let windows: Vec<LimitWindow> = windows.into_iter().flat_map(|(m, limit, per)| LimitWindow::new(m, limit, Nanos(per))).collect();
        let mut limiter = ServerLimiter::new(&windows, Nanos(tick));
        for (now, weight, small) in steps {
            let weight = if small { weight % 1000 } else { weight };
            let _ = limiter.judge(Nanos(now), weight);
            limiter.usages(Nanos(now));
            limiter.finished(weight / 2);
        }
    }
}

#[test]
fn a_sliding_log_has_at_most_as_many_entries_as_its_limit() {
    let window = LimitWindow::read("20/1s", LimitModel::SlidingLog).expect("valid");
    let mut limiter = ServerLimiter::new(&[window], Nanos::MILLI);
    for ns in (0..60_000_000_000_u64).step_by(3_700_000) {
        let _ = limiter.judge(Nanos(ns), 1);
        let crate::models::ModelCount::SlidingLog(log) = &limiter.windows[0].count else { unreachable!() };
        assert!(log.entries() <= 20);
    }
}

#[test]
fn the_slot_of_a_burst_is_free_after_1001_whole_milliseconds() {
    let window = LimitWindow::read("20/1s", LimitModel::SlidingLog).expect("valid");
    let mut limiter = ServerLimiter::new(&[window], Nanos::MILLI);
    let sent = Nanos(5_000_900_000);
    assert!((0..20).all(|_| limiter.judge(sent, 1).is_ok()), "a burst of 20 is legal");
    let rejected = limiter.judge(sent + Nanos(99_999), 1);
    let retry = RetryTime::After(Nanos(1_001_000_000 - 900_000 - 99_999));
    assert_eq!(rejected, Err(LimitRejection { window: 0, retry }));
    assert!(limiter.judge(Nanos(6_000_999_999), 1).is_err(), "1000 ms later on a clock of whole milliseconds");
    assert!((0..20).all(|_| limiter.judge(Nanos(6_001_000_000), 1).is_ok()));
}

#[test]
fn a_request_that_one_window_rejects_counts_in_none() {
    let read = |text| LimitWindow::read(text, LimitModel::SlidingLog).expect("valid");
    let mut limiter = ServerLimiter::new(&[read("2/1s"), read("100/1m"), read("concurrency:1")], Nanos::MILLI);
    assert_eq!(limiter.judge(Nanos::ZERO, 1), Ok(()));
    let rejected = limiter.judge(Nanos::ZERO, 1);
    assert_eq!(rejected, Err(LimitRejection { window: 2, retry: RetryTime::Finished }), "one at a time");
    limiter.finished(1);
    assert_eq!(limiter.judge(Nanos::ZERO, 1), Ok(()));
    let rejected = limiter.judge(Nanos::ZERO, 3).map_err(|rejection| rejection.retry);
    assert_eq!(rejected, Err(RetryTime::Never), "of 2");
    let used: Vec<u64> = limiter.usages(Nanos::ZERO).iter().map(|standing| standing.used).collect();
    assert_eq!(used, [2, 2, 1]);
}
