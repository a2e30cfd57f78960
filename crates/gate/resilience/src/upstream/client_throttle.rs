//! Client-side throttling: a fraction of the calls is not sent to an upstream that rejects calls for overload.
//!
//! A rejection costs the upstream something, too: with enough callers it does nothing else. So a fraction of the calls
//! is dropped before it is sent, by the formula of Google's "Site Reliability Engineering" (2016, ch. 21, "Client-Side
//! Throttling"): of all requests of a window, `max(0, (requests - k * accepts) / (requests + 1))`. The upstream then
//! gets about `k` times what it accepts: enough to notice when it accepts more. Gateways need no coordination: each
//! decides by its own calls.
//!
//! Two differences from the book: a request counts when its outcome is known, not when it is sent, since otherwise the
//! first second of a slow upstream would look like rejections. And a fraction of the requests is always sent, since
//! nothing else shows that the upstream has recovered.
//!
//! The cost: after a recovery calls are dropped until accepted ones outweigh the rejections of the window; after an
//! outage that was longer than the window, for about two windows (tested below). A smaller `k` drops more, including
//! calls that would have been accepted while the upstream rejects a few.

use weir_base::Nanos;
use weir_base::fault::Fault;
use weir_base::sliding_count::SlidingCount;

/// Configuration of the throttle of an upstream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThrottleRule {
    /// Requests sent per request accepted; at least 1.
    pub k: f64,
    /// Length of the window over which requests are counted.
    pub window: Nanos,
    /// Maximum fraction of dropped requests, 0 to below 1.
    pub max_fraction: f64,
    /// Requests in the window below which none is dropped.
    pub min_requests: u64,
}

impl Default for ThrottleRule {
    /// Twice the accepted requests, over 10 s; at least one request in ten is sent.
    fn default() -> Self {
        Self { k: 2.0, window: Nanos::from_secs(10), max_fraction: 0.9, min_requests: 20 }
    }
}

impl ThrottleRule {
    /// Fault of an invalid rule.
    pub fn validation_error(&self) -> Option<Fault> {
        let Self { k, window, max_fraction: most, .. } = self;
        if !(*k >= 1.0 && k.is_finite()) {
            let what = format!("a k of {k} would drop calls that the upstream accepts");
            Some(Fault::new(what, "make it 1 at least, e.g. 2"))
        } else if *window == Nanos::ZERO {
            Some(Fault::new(format!("a window of {window} is too short"), "make it longer, e.g. 30s"))
        } else if !(0.0..1.0).contains(most) {
            let what = format!("with a maximum drop fraction of {most} a recovered upstream is never detected");
            Some(Fault::new(what, "make it 0 at least and below 1, e.g. 0.9"))
        } else {
            None
        }
    }
}

/// Beginning or end of a time in which requests are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThrottleChange {
    /// The first request was dropped.
    Began {
        /// Requests that the upstream rejected within the window.
        rejected: u64,
        /// All requests with an outcome within the window.
        requests: u64,
        /// Length of the window.
        window: Nanos,
    },
    /// None was dropped for a window.
    Ended {
        /// Number of dropped requests.
        dropped: u64,
        /// Time from the first to the last one.
        length: Nanos,
    },
}

impl ThrottleChange {
    /// Line of a log, without the name of the upstream.
    pub fn line(&self) -> String {
        match self {
            Self::Began { rejected, requests, window } => {
                format!("throttling: {rejected} of {requests} attempts within {window} got 429 or 503")
            }
            Self::Ended { dropped: 1, .. } => "throttling ended: 1 call was not sent".to_owned(),
            Self::Ended { dropped, length } => {
                format!("throttling ended after {length}: {dropped} calls were not sent")
            }
        }
    }
}

/// Time in which requests are dropped: from the first one to a window after the last one.
#[derive(Clone, Copy, Debug)]
struct ThrottlingTime {
    began: Nanos,
    latest: Nanos,
    dropped: u64,
}

/// Indices of the counts.
const ACCEPTED: usize = 0;
const REJECTED: usize = 1;

/// Throttle of one upstream. Memory is fixed; nothing is allocated.
#[derive(Clone, Debug)]
pub struct Throttle {
    rule: ThrottleRule,
    counts: SlidingCount<2>,
    throttling: Option<ThrottlingTime>,
    began: Option<ThrottleChange>,
}

impl Throttle {
    /// A throttle without requests; it drops none.
    pub fn new(rule: ThrottleRule) -> Self {
        Self { rule, counts: SlidingCount::new(rule.window), throttling: None, began: None }
    }

    /// Whether a request may be sent; `draw` is uniform in [0, 1). The outcome of a sent request is reported by
    /// [`Self::accepted`] or [`Self::rejected`]; a cancelled one is not reported.
    pub fn allows(&mut self, now: Nanos, draw: f64) -> bool {
        let dropped = draw < self.dropped_fraction(now);
        if dropped {
            self.note_drop(now);
            self.counts.count(now, REJECTED);
        }
        !dropped
    }

    fn note_drop(&mut self, now: Nanos) {
        if let Some(time) = &mut self.throttling {
            (time.latest, time.dropped) = (time.latest.max(now), time.dropped + 1);
            return;
        }
        let [accepted, rejected] = self.counts.totals();
        self.throttling = Some(ThrottlingTime { began: now, latest: now, dropped: 1 });
        self.began = Some(ThrottleChange::Began { rejected, requests: accepted + rejected, window: self.rule.window });
    }

    /// Beginning of the throttling, if it began since the last call of this.
    pub fn take_beginning(&mut self) -> Option<ThrottleChange> {
        self.began.take()
    }

    /// Time at which the throttling ends if no further request is dropped; None while none is dropped.
    pub fn quiet_at(&self) -> Option<Nanos> {
        self.throttling.map(|time| time.latest + self.rule.window)
    }

    /// Ends the throttling if none was dropped for a window.
    pub fn end_if_quiet(&mut self, now: Nanos) -> Option<ThrottleChange> {
        self.quiet_at().filter(|quiet| *quiet <= now)?;
        let ThrottlingTime { began, latest, dropped } = self.throttling.take()?;
        Some(ThrottleChange::Ended { dropped, length: latest - began })
    }

    /// Records a request that the upstream did not reject for overload, with or without a response.
    pub fn accepted(&mut self, now: Nanos) {
        self.counts.count(now, ACCEPTED);
    }

    /// Records a rejection for overload.
    pub fn rejected(&mut self, now: Nanos) {
        self.counts.count(now, REJECTED);
    }

    /// Fraction of requests that is dropped now, in [0, 1).
    pub fn dropped_fraction(&mut self, now: Nanos) -> f64 {
        self.counts.advance(now);
        let [accepted, rejected] = self.counts.totals();
        let requests = accepted + rejected;
        if requests < self.rule.min_requests {
            return 0.0;
        }
        let excess = (requests as f64 - self.rule.k * accepted as f64) / (requests as f64 + 1.0);
        excess.max(0.0).min(self.rule.max_fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_base::rng::SeededRng;

    /// Calls at a rate to an upstream that accepts a number per second (in ten windows) and responds after 200 ms.
    /// Returns sent and accepted calls, second by second.
    fn run(throttle: &mut Throttle, rate: u64, seconds: u64, accepts_per_s: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        let mut rng = SeededRng::new(1, 1);
        let mut responses = std::collections::VecDeque::new();
        let mut capacity = 0;
        let mut by_second = vec![(0, 0); seconds as usize];
        for call in 0..rate * seconds {
            let now = Nanos(call * 1_000_000_000 / rate);
            let second = (now.0 / 1_000_000_000) as usize;
            if call % (rate / 10) == 0 {
                capacity = accepts_per_s(second as u64) / 10;
            }
            while let Some((_, accepted)) = responses.pop_front_if(|(at, _)| *at <= now) {
                if accepted { throttle.accepted(now) } else { throttle.rejected(now) }
            }
            if throttle.allows(now, 1.0 - rng.unit()) {
                responses.push_back((now + Nanos::from_millis(200), capacity > 0));
                by_second[second].0 += 1;
                by_second[second].1 += u64::from(capacity > 0);
                capacity = capacity.saturating_sub(1);
            }
        }
        by_second
    }

    #[test]
    fn an_upstream_that_accepts_all_gets_all() {
        let mut throttle = Throttle::new(ThrottleRule::default());
        let by_second = run(&mut throttle, 1000, 40, |_| 1000);
        assert!(by_second.iter().all(|one| *one == (1000, 1000)), "{by_second:?}");
    }

    #[test]
    fn an_overloaded_upstream_gets_about_k_times_what_it_accepts() {
        for k in [1.5, 2.0, 3.0] {
            let mut throttle = Throttle::new(ThrottleRule { k, ..ThrottleRule::default() });
            let by_second = run(&mut throttle, 1000, 120, |_| 200);
            let (sent, accepted) = by_second[60..].iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
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
            let by_second = run(&mut throttle, 500, 6 * window, |second| if second < 3 * window { 0 } else { 500 });
            let down = &by_second[2 * window as usize..3 * window as usize];
            let sent = down.iter().map(|one| one.0).sum::<u64>() as f64 / (500 * window) as f64;
            assert!((0.08..0.12).contains(&sent), "one in ten goes through: {sent}");
            let back = by_second[3 * window as usize..].iter().position(|one| one.0 >= 475);
            assert!(back.is_some_and(|second| second as u64 <= 2 * window), "{back:?} s");
        }
    }

    #[test]
    fn throttling_begins_with_the_first_drop_and_ends_a_window_after_the_last_one() {
        let at = Nanos::from_millis;
        let mut throttle = Throttle::new(ThrottleRule { min_requests: 2, ..ThrottleRule::default() });
        throttle.accepted(at(0));
        (0..4).for_each(|n| throttle.rejected(at(n)));
        assert_eq!((throttle.allows(at(5), 0.99), throttle.take_beginning(), throttle.quiet_at()), (true, None, None));
        assert!(!throttle.allows(at(6), 0.0));
        let line = throttle.take_beginning().map(|change| change.line());
        assert_eq!(line.as_deref(), Some("throttling: 4 of 5 attempts within 10s got 429 or 503"));
        assert!(!throttle.allows(at(2006), 0.0));
        assert_eq!((throttle.take_beginning(), throttle.quiet_at()), (None, Some(at(12_006))));
        assert_eq!(throttle.end_if_quiet(at(12_005)), None);
        let line = throttle.end_if_quiet(at(12_006)).map(|change| change.line());
        assert_eq!(line.as_deref(), Some("throttling ended after 2s: 2 calls were not sent"));
        assert_eq!((throttle.end_if_quiet(at(99_000)), throttle.quiet_at()), (None, None));
    }

    #[test]
    fn an_invalid_rule_is_reported_with_its_remedy() {
        let rule = ThrottleRule::default();
        assert_eq!(rule.validation_error(), None);
        let faults = [
            ThrottleRule { k: 0.5, ..rule },
            ThrottleRule { k: f64::NAN, ..rule },
            ThrottleRule { window: Nanos::ZERO, ..rule },
            ThrottleRule { max_fraction: 1.0, ..rule },
        ];
        let errors = faults.map(|rule| rule.validation_error().map(|fault| fault.to_string()).unwrap_or_default());
        assert_eq!(
            errors,
            [
                "a k of 0.5 would drop calls that the upstream accepts; make it 1 at least, e.g. 2",
                "a k of NaN would drop calls that the upstream accepts; make it 1 at least, e.g. 2",
                "a window of 0ns is too short; make it longer, e.g. 30s",
                "with a maximum drop fraction of 1 a recovered upstream is never detected; \
                 make it 0 at least and below 1, e.g. 0.9",
            ]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        /// A partly expired interval may count or not: the fraction lies between the two.
        #[test]
        fn the_fraction_is_that_of_a_recount(
            k in 1.0..4.0, most in 0.0..1.0, floor in 0_u64..10, window in 100_u64..10_000,
            steps in prop::collection::vec((0_u64..400, 0_u8..6, 0.0..1.0), 1..150),
        ) {
            let mut throttle = Throttle::new(ThrottleRule { k, window: Nanos(window), max_fraction: most, min_requests: floor });
            let (mut log, mut now) = (Vec::new(), 0_u64);
            for (later, what, draw) in steps {
                now += later * window / 1000;
                // A partly expired interval may count whole, or in part.
                let share = |oldest: u64| {
                    let inside = log.iter().filter(|(at, _)| *at >= oldest);
                    let (n, a) = inside.fold((0_u64, 0_u64), |(n, a), (_, ok)| (n + 1, a + u64::from(*ok)));
                    if n < floor { 0.0 } else { ((n as f64 - k * a as f64) / (n as f64 + 1.0)).max(0.0).min(most) }
                };
                let edge = (now + 1).saturating_sub(window);
                let possible: Vec<f64> = (edge.saturating_sub(window.div_ceil(63))..=edge).map(share).collect();
                let dropped = throttle.dropped_fraction(Nanos(now));
                let is_one = possible.iter().any(|share| (share - dropped).abs() < 1e-12);
                prop_assert!(is_one, "{dropped} is none of {possible:?}");
                match what {
                    0..3 => {
                        let allowed = throttle.allows(Nanos(now), draw);
                        prop_assert_eq!(allowed, draw >= dropped);
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
        fn no_rule_and_no_times_make_it_panic(
            k: f64, max_fraction: f64, min_requests: u64, window: u64,
            steps in prop::collection::vec((any::<u64>(), any::<f64>()), 1..40),
        ) {
            let mut throttle = Throttle::new(ThrottleRule { k, window: Nanos(window), max_fraction, min_requests });
            for (now, draw) in steps {
                throttle.allows(Nanos(now), draw);
                throttle.rejected(Nanos(now / 2));
                throttle.accepted(Nanos(now / 3));
            }
        }
    }
}
