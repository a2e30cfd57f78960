//! Property tests of the breaker against a naive model that keeps and recounts all ended calls.

use proptest::prelude::*;

use crate::upstream::circuit_breaker::{Breaker, BreakerRule, Nanos, State};

/// Model: start and outcome of each ended call of this generation.
struct NaiveBreaker {
    rule: BreakerRule,
    ended: Vec<(u64, bool)>,
    until: Option<u64>,
    failed_probes: u32,
    probing: u32,
    successes: u32,
}

impl NaiveBreaker {
    /// Whether it must open, and whether it may: the partly expired interval may count or not.
    fn opens(&self, now: u64) -> (bool, bool) {
        let window = self.rule.window.0;
        let edge = (now + 1).saturating_sub(window);
        let opens = |oldest: u64| {
            let inside = self.ended.iter().filter(|(started, _)| *started >= oldest);
            let (n, failed) = inside.fold((0_u64, 0_u64), |(n, f), (_, ok)| (n + 1, f + u64::from(!ok)));
            n >= self.rule.min_calls && failed as f64 >= self.rule.failure_fraction * n as f64
        };
        let all: Vec<bool> = (edge.saturating_sub(window.div_ceil(63))..=edge).map(opens).collect();
        (all.iter().all(|one| *one), all.iter().any(|one| *one))
    }

    fn open(&mut self, now: u64) {
        let rest = self.rule.open_time.0.saturating_mul(1 << self.failed_probes.min(20)).min(self.rule.max_open_time.0);
        self.until = Some(now + rest);
        (self.probing, self.successes) = (0, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn it_opens_and_closes_as_the_model_does(
        window in 100_u64..2000, least in 1_u64..6, share in 0.1..1.0, probes in 1_u32..4, rest in 1_u64..500,
        steps in prop::collection::vec((0_u64..300, 0_u8..8, 0_usize..9), 1..200),
    ) {
        let longest_rest = Nanos(rest * 5);
        let rule = BreakerRule { window: Nanos(window), min_calls: least, failure_fraction: share, open_time: Nanos(rest), max_open_time: longest_rest, probes };
        let mut breaker = Breaker::new(rule);
        let mut naive = NaiveBreaker { rule, ended: Vec::new(), until: None, failed_probes: 0, probing: 0, successes: 0 };
        // Permits with their start, and the generation of the model.
        let (mut open, mut generation, mut now, mut probed) = (Vec::new(), 0, 0_u64, 0_u64);
        for (later, what, which) in steps {
            now += later * u64::from(what % 3 == 0);
            if what < 3 {
                let allowed = breaker.allows(Nanos(now));
                match naive.until {
                    None => prop_assert!(allowed.is_ok()),
                    Some(until) if now < until => {
                        prop_assert_eq!(allowed.as_ref().err(), Some(&Nanos(until - now)));
                    }
                    Some(_) => {
                        if naive.probing == probes && now >= probed + window {
                            (naive.probing, naive.successes) = (0, 0);
                            generation += 1;
                        }
                        prop_assert_eq!(allowed.is_ok(), naive.probing < probes);
                        if allowed.is_ok() {
                            naive.probing += 1;
                            probed = now;
                        }
                    }
                }
                match allowed {
                    Ok(permit) => open.push((permit, now, generation)),
                    Err(wait) => prop_assert!(wait > Nanos::ZERO && wait <= longest_rest),
                }
            } else if !open.is_empty() {
                let (permit, started, of) = open.swap_remove(which % open.len());
                let ok = what % 2 == 0;
                if what == 7 {
                    naive.probing -= u32::from(of == generation && naive.until.is_some());
                    breaker.cancelled(permit);
                    continue;
                }
                breaker.ended(Nanos(now), permit, ok);
                if of != generation {
                    continue;
                }
                if naive.until.is_some() {
                    (naive.probing, naive.successes) = (naive.probing - 1, naive.successes + u32::from(ok));
                    if !ok {
                        naive.failed_probes += 1;
                        naive.open(now);
                        generation += 1;
                    } else if naive.successes == probes {
                        (naive.until, naive.failed_probes) = (None, 0);
                        naive.ended.clear();
                        generation += 1;
                    }
                } else {
                    naive.ended.push((started, ok));
                    let is_open = breaker.state(Nanos(now)) != State::Closed;
                    let (must, may) = naive.opens(now);
                    prop_assert!(is_open || ok || !must, "it must open at {now}");
                    prop_assert!(!is_open || !ok && may, "it opened at {now}");
                    if is_open {
                        naive.open(now);
                        generation += 1;
                    }
                }
            }
        }
    }

    #[test]
    fn no_rule_and_no_times_make_it_panic(
        window: u64, least: u64, share: f64, rests: (u64, u64), probes: u32,
        steps in prop::collection::vec((any::<u64>(), any::<bool>()), 1..60),
    ) {
        let (rest, longest_rest) = (Nanos(rests.0), Nanos(rests.1));
        let rule = BreakerRule { window: Nanos(window), min_calls: least, failure_fraction: share, open_time: rest, max_open_time: longest_rest, probes };
        let mut breaker = Breaker::new(rule);
        for (now, ok) in steps {
            if let Ok(permit) = breaker.allows(Nanos(now)) {
                breaker.ended(Nanos(now / 2), permit, ok);
            }
        }
    }
}
