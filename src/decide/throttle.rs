//! Which calls an upstream that says that it is overloaded is spared.
//!
//! To say "too many" costs an upstream something, too. With enough callers it does nothing else, and takes fewer calls
//! than it could. So part of the calls is dropped on this side, by the formula of Google's "Site Reliability
//! Engineering" (2016, ch. 21, "Client-Side Throttling"): of all requests of a window, `max(0, (requests - k * accepts)
//! / (requests + 1))`. The upstream then gets about `k` times what it takes: enough to notice when it takes more. Who
//! drops is told by nobody; each gate sees by its own calls, and the sum behaves.
//!
//! Two things differ from the book. A request counts once its fate is known, not when it is sent: otherwise the first
//! second of all that is slow, before anything was answered, would look like a refusal of everything. And a share of
//! the requests always goes through, since those are the only way to find out.
//!
//! What it costs: when the upstream is well again, calls are dropped for some time more, until what was accepted makes
//! up for the refusals that the window remembers; after an outage longer than the window, in which everything was
//! refused, for about two windows (a test holds that). A small `k` drops more, and drops calls that would have been
//! taken while the upstream refuses a few.

use super::Nanos;
use super::stretches::SlidingCount;

/// How much is dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThrottleRule {
    /// The upstream gets so many times what it takes; at least 1.
    pub k: f64,
    /// Requests are remembered so long.
    pub window: Nanos,
    /// The greatest share that is dropped, below 1.
    pub max_fraction: f64,
    /// Nothing is dropped while the window has fewer requests.
    pub min_requests: u64,
}

impl Default for ThrottleRule {
    /// Twice what it takes, by the last 10 s; one call in ten always goes through.
    fn default() -> Self {
        Self { k: 2.0, window: Nanos::from_secs(10), max_fraction: 0.9, min_requests: 20 }
    }
}

impl ThrottleRule {
    /// What is wrong with it, and the remedy.
    pub fn validation_error(&self) -> Option<(String, String)> {
        let Self { k, window, max_fraction: most, .. } = self;
        if !(*k >= 1.0 && k.is_finite()) {
            Some((format!("a k of {k} would drop calls that the upstream takes"), "make it 1 at least, e.g. 2".into()))
        } else if *window == Nanos::ZERO {
            Some((format!("a window of {window} remembers nothing"), "make it longer, e.g. 30s".into()))
        } else if !(0.0..1.0).contains(most) {
            let what =
                format!("with {most} as the greatest share dropped, nobody finds out that the upstream is well again");
            Some((what, "make it 0 at least and below 1, e.g. 0.9".into()))
        } else {
            None
        }
    }
}

/// The kinds that are counted.
const ACCEPTED: usize = 0;
const REJECTED: usize = 1;

/// What one upstream made of the requests of a window's length. Memory is fixed, and nothing is allocated.
#[derive(Clone, Debug)]
pub struct Throttle {
    rule: ThrottleRule,
    counts: SlidingCount<2>,
}

impl Throttle {
    /// Nothing is known yet, and nothing dropped.
    pub fn new(rule: ThrottleRule) -> Self {
        Self { rule, counts: SlidingCount::new(rule.window) }
    }

    /// Whether a request may be sent. `roll` is a draw that is uniform in [0, 1). A request that was let through has to
    /// be told of by [`Self::accepted`] or [`Self::rejected`], or was given up and says nothing.
    pub fn allows(&mut self, now: Nanos, roll: f64) -> bool {
        let dropped = roll < self.dropped_fraction(now);
        if dropped {
            self.counts.count(now, REJECTED);
        }
        !dropped
    }

    /// The upstream took a request: its answer, if there is one, does not say that there are too many.
    pub fn accepted(&mut self, now: Nanos) {
        self.counts.count(now, ACCEPTED);
    }

    /// The upstream answered that there are too many.
    pub fn rejected(&mut self, now: Nanos) {
        self.counts.count(now, REJECTED);
    }

    /// The share of requests that is dropped now, in [0, 1).
    pub fn dropped_fraction(&mut self, now: Nanos) -> f64 {
        self.counts.advance(now);
        let [accepted, refused] = self.counts.totals();
        let requests = accepted + refused;
        if requests < self.rule.min_requests {
            return 0.0;
        }
        let share = (requests as f64 - self.rule.k * accepted as f64) / (requests as f64 + 1.0);
        share.max(0.0).min(self.rule.max_fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::super::dice::Dice;
    use super::*;
    use proptest::prelude::*;

    /// Calls at this rate to an upstream that takes so many per second (it counts anew ten times a second); each answer
    /// takes 200 ms. Per second: how many were sent, and how many accepted.
    fn run(throttle: &mut Throttle, rate: u64, seconds: u64, takes: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        let mut dice = Dice::new(1, 1);
        let mut answers = std::collections::VecDeque::new();
        let mut room = 0;
        let mut told = vec![(0, 0); seconds as usize];
        for call in 0..rate * seconds {
            let now = Nanos(call * 1_000_000_000 / rate);
            let second = (now.0 / 1_000_000_000) as usize;
            if call % (rate / 10) == 0 {
                room = takes(second as u64) / 10;
            }
            while let Some((_, accepted)) = answers.pop_front_if(|(at, _)| *at <= now) {
                if accepted { throttle.accepted(now) } else { throttle.rejected(now) }
            }
            if throttle.allows(now, 1.0 - dice.unit()) {
                answers.push_back((now + Nanos::from_millis(200), room > 0));
                told[second].0 += 1;
                told[second].1 += u64::from(room > 0);
                room = room.saturating_sub(1);
            }
        }
        told
    }

    #[test]
    fn an_upstream_that_takes_everything_gets_everything() {
        let mut throttle = Throttle::new(ThrottleRule::default());
        let told = run(&mut throttle, 1000, 40, |_| 1000);
        assert!(told.iter().all(|one| *one == (1000, 1000)), "{told:?}");
    }

    #[test]
    fn an_overloaded_upstream_gets_about_k_times_what_it_takes() {
        for k in [1.5, 2.0, 3.0] {
            let mut throttle = Throttle::new(ThrottleRule { k, ..ThrottleRule::default() });
            let told = run(&mut throttle, 1000, 120, |_| 200);
            let (sent, accepted) = told[60..].iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            let ratio = sent as f64 / accepted as f64;
            assert!((ratio / k - 1.0).abs() < 0.05, "{ratio} for {k}");
            assert!(accepted >= 60 * 195, "what it takes it gets: {accepted}");
        }
    }

    #[test]
    fn two_windows_after_an_outage_calls_flow_as_before() {
        for window in [10, 30] {
            let mut throttle =
                Throttle::new(ThrottleRule { window: Nanos::from_secs(window), ..ThrottleRule::default() });
            let told = run(&mut throttle, 500, 6 * window, |second| if second < 3 * window { 0 } else { 500 });
            let down = &told[2 * window as usize..3 * window as usize];
            let sent = down.iter().map(|one| one.0).sum::<u64>() as f64 / (500 * window) as f64;
            assert!((0.08..0.12).contains(&sent), "one in ten goes through: {sent}");
            let back = told[3 * window as usize..].iter().position(|one| one.0 >= 475);
            assert!(back.is_some_and(|second| second as u64 <= 2 * window), "{back:?} s");
        }
    }

    #[test]
    fn a_rule_that_cannot_be_meant_is_told_with_its_remedy() {
        let rule = ThrottleRule::default();
        assert_eq!(rule.validation_error(), None);
        let faults = [
            ThrottleRule { k: 0.5, ..rule },
            ThrottleRule { k: f64::NAN, ..rule },
            ThrottleRule { window: Nanos::ZERO, ..rule },
            ThrottleRule { max_fraction: 1.0, ..rule },
        ];
        let told = faults
            .map(|rule| rule.validation_error().map(|(what, remedy)| format!("{what}; {remedy}")).unwrap_or_default());
        assert_eq!(
            told,
            [
                "a k of 0.5 would drop calls that the upstream takes; make it 1 at least, e.g. 2",
                "a k of NaN would drop calls that the upstream takes; make it 1 at least, e.g. 2",
                "a window of 0ns remembers nothing; make it longer, e.g. 30s",
                "with 1 as the greatest share dropped, nobody finds out that the upstream is well again; \
                 make it 0 at least and below 1, e.g. 0.9",
            ]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        /// What happened in the stretch that is partly over may count or not: the share lies between the two.
        #[test]
        fn the_share_is_that_of_a_recount(
            k in 1.0..4.0, most in 0.0..1.0, floor in 0_u64..10, window in 100_u64..10_000,
            steps in prop::collection::vec((0_u64..400, 0_u8..6, 0.0..1.0), 1..150),
        ) {
            let mut throttle = Throttle::new(ThrottleRule { k, window: Nanos(window), max_fraction: most, min_requests: floor });
            let (mut log, mut now) = (Vec::new(), 0_u64);
            for (later, what, roll) in steps {
                now += later * window / 1000;
                // The stretch that is partly over may be counted whole, or in part.
                let share = |oldest: u64| {
                    let inside = log.iter().filter(|(at, _)| *at >= oldest);
                    let (n, a) = inside.fold((0_u64, 0_u64), |(n, a), (_, ok)| (n + 1, a + u64::from(*ok)));
                    if n < floor { 0.0 } else { ((n as f64 - k * a as f64) / (n as f64 + 1.0)).max(0.0).min(most) }
                };
                let edge = (now + 1).saturating_sub(window);
                let possible: Vec<f64> = (edge.saturating_sub(window.div_ceil(63))..=edge).map(share).collect();
                let told = throttle.dropped_fraction(Nanos(now));
                let is_one = possible.iter().any(|share| (share - told).abs() < 1e-12);
                prop_assert!(is_one, "{told} is none of {possible:?}");
                match what {
                    0..3 => {
                        let allowed = throttle.allows(Nanos(now), roll);
                        prop_assert_eq!(allowed, roll >= told);
                        if !allowed {
                            log.push((now, false));
                        }
                    }
                    3 => {
                        throttle.accepted(Nanos(now));
                        log.push((now, true));
                    }
                    _ => {
                        throttle.rejected(Nanos(now));
                        log.push((now, false));
                    }
                }
            }
        }

        #[test]
        fn no_rule_and_no_instants_upset_it(
            k: f64, most: f64, floor: u64, window: u64,
            steps in prop::collection::vec((any::<u64>(), any::<f64>()), 1..40),
        ) {
            let mut throttle = Throttle::new(ThrottleRule { k, window: Nanos(window), max_fraction: most, min_requests: floor });
            for (now, roll) in steps {
                throttle.allows(Nanos(now), roll);
                throttle.rejected(Nanos(now / 2));
                throttle.accepted(Nanos(now / 3));
            }
        }
    }
}
