//! What the breaker must do, said naively: every call that has ended is kept, and recounted.

use proptest::prelude::*;

use super::{Breaker, BreakerRule, Nanos, State};

/// Every call of this turn that has ended: when it began, and how it ended.
struct NaiveBreaker {
    rule: BreakerRule,
    ended: Vec<(u64, bool)>,
    until: Option<u64>,
    failed_probes: u32,
    probing: u32,
    successes: u32,
}

impl NaiveBreaker {
    /// Whether it must, and whether it may be open after what has ended: the stretch that is partly over is vague.
    fn opens(&self, now: u64) -> (bool, bool) {
        let window = self.rule.window.0;
        let edge = (now + 1).saturating_sub(window);
        let opens = |oldest: u64| {
            let inside = self.ended.iter().filter(|(began, _)| *began >= oldest);
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
    fn it_opens_rests_and_closes_as_a_recount_says(
        window in 100_u64..2000, least in 1_u64..6, share in 0.1..1.0, probes in 1_u32..4, rest in 1_u64..500,
        steps in prop::collection::vec((0_u64..300, 0_u8..8, 0_usize..9), 1..200),
    ) {
        let longest_rest = Nanos(rest * 5);
        let rule = BreakerRule { window: Nanos(window), min_calls: least, failure_fraction: share, open_time: Nanos(rest), max_open_time: longest_rest, probes };
        let mut breaker = Breaker::new(rule);
        let mut naive = NaiveBreaker { rule, ended: Vec::new(), until: None, failed_probes: 0, probing: 0, successes: 0 };
        // Passes, when they began, and in which turn of the naive one.
        let (mut open, mut turn, mut now, mut probed) = (Vec::new(), 0, 0_u64, 0_u64);
        for (later, what, which) in steps {
            now += later * u64::from(what % 3 == 0);
            if what < 3 {
                let told = breaker.allows(Nanos(now));
                match naive.until {
                    None => prop_assert!(told.is_ok()),
                    Some(until) if now < until => {
                        prop_assert_eq!(told.as_ref().err(), Some(&Nanos(until - now)));
                    }
                    Some(_) => {
                        if naive.probing == probes && now >= probed + window {
                            (naive.probing, naive.successes) = (0, 0);
                            turn += 1;
                        }
                        prop_assert_eq!(told.is_ok(), naive.probing < probes);
                        if told.is_ok() {
                            naive.probing += 1;
                            probed = now;
                        }
                    }
                }
                match told {
                    Ok(pass) => open.push((pass, now, turn)),
                    Err(wait) => prop_assert!(wait > Nanos::ZERO && wait <= longest_rest),
                }
            } else if !open.is_empty() {
                let (pass, began, of) = open.swap_remove(which % open.len());
                let ok = what % 2 == 0;
                if what == 7 {
                    naive.probing -= u32::from(of == turn && naive.until.is_some());
                    breaker.cancelled(pass);
                    continue;
                }
                breaker.ended(Nanos(now), pass, ok);
                if of != turn {
                    continue;
                }
                if naive.until.is_some() {
                    (naive.probing, naive.successes) = (naive.probing - 1, naive.successes + u32::from(ok));
                    if !ok {
                        naive.failed_probes += 1;
                        naive.open(now);
                        turn += 1;
                    } else if naive.successes == probes {
                        (naive.until, naive.failed_probes) = (None, 0);
                        naive.ended.clear();
                        turn += 1;
                    }
                } else {
                    naive.ended.push((began, ok));
                    let is_open = breaker.state(Nanos(now)) != State::Closed;
                    let (must, may) = naive.opens(now);
                    prop_assert!(is_open || ok || !must, "it must open at {now}");
                    prop_assert!(!is_open || !ok && may, "it opened at {now}");
                    if is_open {
                        naive.open(now);
                        turn += 1;
                    }
                }
            }
        }
    }

    #[test]
    fn no_rule_and_no_instants_upset_it(
        window: u64, least: u64, share: f64, rests: (u64, u64), probes: u32,
        steps in prop::collection::vec((any::<u64>(), any::<bool>()), 1..60),
    ) {
        let (rest, longest_rest) = (Nanos(rests.0), Nanos(rests.1));
        let rule = BreakerRule { window: Nanos(window), min_calls: least, failure_fraction: share, open_time: rest, max_open_time: longest_rest, probes };
        let mut breaker = Breaker::new(rule);
        for (now, ok) in steps {
            if let Ok(pass) = breaker.allows(Nanos(now)) {
                breaker.ended(Nanos(now / 2), pass, ok);
            }
        }
    }
}
