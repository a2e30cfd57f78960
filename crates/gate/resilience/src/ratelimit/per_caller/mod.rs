//! Rate limit per caller.
//!
//! One caller's loop must not use up the capacity for all. So each has a token bucket, which is refilled evenly
//! ([`weir_limits::models`] has the other models of limits): in any interval a caller gets at most the burst plus the
//! refill of that interval. A rejection carries the wait after which the same call would be allowed, to the nanosecond.
//!
//! Callers are identified by a hash of a header or an address, and their number is unbounded. Memory is fixed: 24 bytes
//! for each of `entries`. A caller whose bucket is full is evicted first; after those, the one whose bucket lacks the
//! fewest tokens. An eviction gives away no more than these tokens; the oldest entry could lack a whole burst. So names
//! that are used once, which lack a token each, evict one another and not the caller that is at its limit.
//!
//! Where several gates share the rate, each has a [`Fraction`] of it, and of what a bucket holds; `shared.rs` says
//! how tokens are kept when the fraction changes.
//!
//! Half the entries should do for all callers that lack something at the same time: places belong to sets, and with
//! more than that some sets are full before the others. A hash must be seeded; `set_cache.rs` says why.

mod shared;

use self::shared::SharedBuckets;
use weir_base::Nanos;
use weir_base::fault::Fault;
use weir_base::set_cache::SetCache;
use weir_limits::fraction::Fraction;
use weir_limits::models::token_bucket::Refill;
use weir_limits::models::{LimitModel, LimitWindow};

/// Rate limit of each caller: `limit` per `per` on average, `burst` at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerRule {
    /// Tokens that come back in `per`; at least 1.
    pub limit: u64,
    /// The time in which they come back.
    pub per: Nanos,
    /// Capacity of a bucket, in tokens; at least 1.
    pub burst: u64,
    /// Callers that are remembered at the same time, rounded up to 16 times a power of two.
    pub entries: usize,
}

impl CallerRule {
    /// The most entries that there can be: 400 MB of them.
    pub const MAX_ENTRIES: usize = 1 << 24;

    /// `limit` in `per`, all of it at once if need be; 65,536 callers are remembered (1.5 MB).
    pub fn new(limit: u64, per: Nanos) -> Self {
        Self { limit, per, burst: limit, entries: 1 << 16 }
    }

    /// Fault of the first invalid field; `None` if the rule is valid.
    pub fn fault(&self) -> Option<Fault> {
        let Self { limit, per, burst, entries } = *self;
        if let Err(what) = LimitWindow::new(LimitModel::TokenBucket, limit, per) {
            Some(Fault::new(what, "write it as e.g. 100/1s"))
        } else if !(1..=LimitWindow::MAX_LIMIT).contains(&burst) {
            Some(Fault::new(
                format!("a burst of {burst} is not possible"),
                format!("make it 1 at least and {} at most", LimitWindow::MAX_LIMIT),
            ))
        } else if !(1..=Self::MAX_ENTRIES).contains(&entries) {
            let what = format!("{entries} callers cannot be remembered");
            Some(Fault::new(what, format!("make it 1 at least and {} at most, e.g. 65536", Self::MAX_ENTRIES)))
        } else {
            None
        }
    }
}

/// State of a caller's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketState {
    /// Capacity, in tokens.
    pub capacity: u64,
    /// Whole tokens in it.
    pub tokens: u64,
    /// Time until it is full, if nothing is taken.
    pub full_in: Nanos,
}

/// The buckets of all callers. Nothing is allocated once it is made.
#[derive(Clone, Debug)]
pub struct CallerLimiter {
    refill: Refill,
    /// When each bucket is full again, as [`Refill`] writes it.
    full_at: SetCache<u128>,
    latest: Nanos,
    /// State of a rate that several gates share.
    shared: Option<Box<SharedBuckets>>,
}

impl CallerLimiter {
    /// All buckets are full. A limit, length or burst of 0 counts as 1.
    pub fn new(rule: CallerRule) -> Self {
        let refill = Refill { limit: rule.limit.max(1), per: rule.per.max(Nanos(1)), capacity: rule.burst.max(1) };
        Self { refill, full_at: SetCache::new(rule.entries), latest: Nanos::ZERO, shared: None }
    }

    /// The same, where several gates share the rate: this gate has nothing of it until [`Self::set_fractions`]. Keys
    /// have to be the same at all gates; `salt` is this one's own.
    pub fn shared(rule: CallerRule, salt: u64) -> Self {
        let callers = Self::new(rule);
        let shared = Some(Box::new(SharedBuckets::new(callers.refill, salt)));
        Self { refill: callers.refill.fraction(Fraction::NONE), shared, ..callers }
    }

    /// Sets the fraction of each caller's rate that this gate has from now on: the default one, and those of callers
    /// that have their own, in order of their keys. No effect without a shared rate.
    pub fn set_fractions(
        &mut self,
        now: Nanos,
        default_fraction: Fraction,
        own_fractions: impl Iterator<Item = (u64, Fraction)>,
    ) {
        self.latest = self.latest.max(now);
        if let Some(shared) = &mut self.shared {
            self.refill = shared.set_fractions(self.latest, default_fraction, own_fractions, &mut self.full_at);
        }
    }

    /// Demand of callers since the previous call, in parts of a [`Fraction`]: of those with a fraction of their own,
    /// and of those that were rejected.
    pub fn demand(&mut self, now: Nanos) -> Vec<(u64, u32)> {
        self.shared.as_mut().map_or_else(Vec::new, |shared| shared.demand(now))
    }

    /// Whether the caller with this key may send a call of this weight now; if so, it is paid. A weight of 0 is always
    /// allowed. A time before the latest counts as the latest.
    ///
    /// # Errors
    /// After which time it would be allowed, and not a nanosecond earlier, if nothing else came from this caller until
    /// then; [`Nanos::NEVER`] if it weighs more than the burst. Where several gates share the rate, that holds while this
    /// gate's fraction does not change. If the call weighs more than this gate's bucket holds: the time in which the whole
    /// rate refills as much, and a second at most, since the fraction grows for callers that come again.
    pub fn allows(&mut self, now: Nanos, key: u64, weight: u64) -> Result<(), Nanos> {
        self.admit(now, key, weight).0
    }

    /// As [`Self::allows`], with the state of the caller's bucket afterwards: where several gates share the rate, of the
    /// bucket at this gate.
    pub fn admit(&mut self, now: Nanos, key: u64, weight: u64) -> (Result<(), Nanos>, BucketState) {
        self.latest = self.latest.max(now);
        let Some(shared) = &mut self.shared else {
            // More than a bucket holds, and nothing, is decided without a place in the memory of callers.
            if weight == 0 || weight > self.refill.capacity {
                let full = self.full_at.get(key).copied().unwrap_or_default();
                let taken = if weight == 0 { Ok(()) } else { Err(Nanos::NEVER) };
                return (taken, state(&self.refill, full, self.latest));
            }
            // An unknown caller has a full bucket and is not rejected, so a rejection never evicts another caller.
            let full = self.full_at.get_or_insert(key, |full| *full);
            let taken = take(&self.refill, full, self.latest, weight).map_err(|at| at - now);
            return (taken, state(&self.refill, *full, self.latest));
        };
        shared.admit(&mut self.full_at, now, self.latest, key, weight)
    }
}

impl CallerLimiter {
    /// Corrects what a call has taken by what it turned out to weigh, and returns the caller's bucket: the difference
    /// comes back, or is taken also if it is not there, so that the caller waits until the bucket is no longer empty.
    /// Where several gates share the rate, that is the bucket at this gate.
    pub fn correct(&mut self, now: Nanos, key: u64, taken: u64, weight: u64) -> BucketState {
        self.latest = self.latest.max(now);
        if let Some(shared) = &mut self.shared {
            return shared.correct(&mut self.full_at, self.latest, key, taken, weight);
        }
        let full = self.full_at.get_or_insert(key, |full| *full);
        *full = corrected(&self.refill, *full, self.latest, taken, weight);
        state(&self.refill, *full, self.latest)
    }
}

fn state(refill: &Refill, full: u128, now: Nanos) -> BucketState {
    let capacity = refill.capacity;
    let full_in = refill.available_at(full, capacity) - now;
    BucketState { capacity, tokens: capacity.saturating_sub(refill.used(full, now)), full_in }
}

/// Corrects a bucket from which `taken` tokens were taken in place of `weight`.
fn corrected(refill: &Refill, full: u128, now: Nanos, taken: u64, weight: u64) -> u128 {
    if weight > taken {
        return refill.take(full, now, weight - taken);
    }
    full.saturating_sub(u128::from(taken - weight) * u128::from(refill.per.0))
}

/// Takes so much out of a bucket, or says when it is there.
fn take(refill: &Refill, full: &mut u128, now: Nanos, weight: u64) -> Result<(), Nanos> {
    let room = refill.available_at(*full, weight);
    if room > now {
        return Err(room);
    }
    *full = refill.take(*full, now, weight);
    Ok(())
}

#[cfg(test)]
mod tests {
    mod debts;

    use super::*;
    use proptest::prelude::*;
    use weir_base::rng::SeededRng;

    /// All that a caller was ever allowed.
    #[derive(Clone, Default)]
    struct NaiveCaller(Vec<(u64, u64)>);

    impl NaiveCaller {
        /// In any span that ends now, the burst and what came back in it are the most.
        fn allows(&self, rule: CallerRule, now: u64, weight: u64) -> bool {
            let (limit, per, burst) = (u128::from(rule.limit), u128::from(rule.per.0), u128::from(rule.burst));
            let spent =
                |from: u64| self.0.iter().filter(|(at, _)| *at >= from).map(|(_, w)| u128::from(*w)).sum::<u128>();
            self.0
                .iter()
                .map(|(from, _)| *from)
                .chain([now])
                .all(|from| (spent(from) + u128::from(weight)) * per <= burst * per + limit * u128::from(now - from))
        }
    }

    #[test]
    fn a_burst_goes_through_and_then_the_rate() {
        let mut callers = CallerLimiter::new(CallerRule { burst: 5, ..CallerRule::new(3, Nanos::SECOND) });
        assert!((0..5).all(|_| callers.allows(Nanos::ZERO, 1, 1).is_ok()));
        assert_eq!(callers.allows(Nanos::ZERO, 1, 1), Err(Nanos(333_333_334)), "a third of a second, rounded up");
        assert_eq!(callers.allows(Nanos::ZERO, 1, 6), Err(Nanos::NEVER), "more than the burst");
        assert_eq!(callers.allows(Nanos::ZERO, 1, 0), Ok(()));
        assert_eq!(callers.allows(Nanos::ZERO, 2, 5), Ok(()), "another caller");
        let allowed = (0..10_000_u64).filter(|ms| callers.allows(Nanos::from_millis(*ms), 1, 1).is_ok()).count();
        assert_eq!(allowed, 29, "3 a second, the next one after 10 s");
    }

    #[test]
    fn a_bucket_has_what_is_left_of_it() {
        let mut callers = CallerLimiter::new(CallerRule { burst: 5, ..CallerRule::new(2, Nanos::SECOND) });
        let state = |tokens, ms| BucketState { capacity: 5, tokens, full_in: Nanos::from_millis(ms) };
        assert_eq!(callers.admit(Nanos::ZERO, 1, 3), (Ok(()), state(2, 1500)));
        assert_eq!(callers.admit(Nanos::from_millis(400), 1, 3), (Err(Nanos::from_millis(100)), state(2, 1100)));
        assert_eq!(callers.admit(Nanos::from_millis(400), 1, 6), (Err(Nanos::NEVER), state(2, 1100)));
        assert_eq!(callers.admit(Nanos::from_millis(500), 1, 0), (Ok(()), state(3, 1000)));
        assert_eq!(callers.admit(Nanos::from_secs(9), 1, 0), (Ok(()), state(5, 0)));
        assert_eq!(callers.admit(Nanos::from_secs(9), 2, 6), (Err(Nanos::NEVER), state(5, 0)), "an unknown caller");
    }

    #[test]
    fn a_million_callers_take_no_more_memory_and_push_out_nobody_who_is_at_its_limit() {
        let mut callers = CallerLimiter::new(CallerRule { entries: 1024, ..CallerRule::new(10, Nanos::SECOND) });
        let places = callers.full_at.values().count();
        let mut rng = SeededRng::new(3, 3);
        let (mut now, mut allowed) = (Nanos::ZERO, 0);
        for _ in 0..1_000_000 {
            now += Nanos(10_000);
            assert_eq!(callers.allows(now, rng.bits(), 1), Ok(()), "callers do not pay for one another");
            allowed += u32::from(callers.allows(now, 42, 1).is_ok());
        }
        assert_eq!(callers.full_at.values().count(), places);
        // 10 s at 10 a second, and the burst.
        assert!((109..=110).contains(&allowed), "{allowed}");
    }

    #[test]
    fn a_rule_that_cannot_be_meant_is_told_with_its_remedy() {
        let rule = CallerRule::new(100, Nanos::SECOND);
        assert_eq!(rule.fault(), None);
        let faults = [
            CallerRule { limit: 0, ..rule },
            CallerRule { per: Nanos::ZERO, ..rule },
            CallerRule { burst: 0, ..rule },
            CallerRule { entries: 0, ..rule },
        ];
        let errors = faults.map(|rule| rule.fault().map(|fault| fault.to_string()).unwrap_or_default());
        assert_eq!(
            errors,
            [
                "a limit of 0 is not possible; it is at least 1 and at most 999999999999999; write it as e.g. 100/1s",
                "a limit needs a length of time, e.g. 20/1s; write it as e.g. 100/1s",
                "a burst of 0 is not possible; make it 1 at least and 999999999999999 at most",
                "0 callers cannot be remembered; make it 1 at least and 16777216 at most, e.g. 65536",
            ]
        );
    }

    #[test]
    fn a_correction_gives_back_or_takes_what_is_not_there() {
        let mut callers = CallerLimiter::new(CallerRule::new(10, Nanos::SECOND));
        assert_eq!(callers.allows(Nanos::ZERO, 1, 10), Ok(()));
        assert_eq!(callers.correct(Nanos::ZERO, 1, 10, 4).tokens, 6);
        assert_eq!(callers.correct(Nanos::ZERO, 1, 4, 30).tokens, 0);
        // Twenty that were not there, and one.
        assert_eq!(callers.allows(Nanos::ZERO, 1, 1), Err(Nanos::from_millis(2100)));
        assert_eq!(
            callers.correct(Nanos::ZERO, 1, 30, 0),
            BucketState { capacity: 10, tokens: 10, full_in: Nanos::ZERO }
        );
        let mut shared = CallerLimiter::shared(CallerRule::new(10, Nanos::SECOND), 5);
        shared.set_fractions(Nanos::ZERO, Fraction::WHOLE, std::iter::empty());
        assert_eq!(shared.allows(Nanos::ZERO, 1, 10), Ok(()));
        assert_eq!(shared.correct(Nanos::ZERO, 1, 10, 7).tokens, 3);
    }

    proptest! {
        /// A caller whose calls turn out to weigh less has no token less than one who took that at once, and no more than
        /// that by what was held meanwhile.
        #[test]
        fn corrected_calls_are_as_if_they_had_weighed_that(
            calls in prop::collection::vec((0_u64..400, 1_u64..9, 0_u64..9), 1..40),
        ) {
            let rule = CallerRule { burst: 1000, ..CallerRule::new(7, Nanos::SECOND) };
            let (mut estimated, mut known) = (CallerLimiter::new(rule), CallerLimiter::new(rule));
            let mut now = Nanos::ZERO;
            let mut held = Vec::new();
            for (gap, estimate, less) in calls {
                now += Nanos::from_millis(gap);
                let weight = estimate.saturating_sub(less).max(1);
                prop_assert_eq!(estimated.allows(now, 1, estimate), Ok(()));
                prop_assert_eq!(known.allows(now, 1, weight), Ok(()));
                held.push((estimate, weight));
            }
            let most: u64 = held.iter().map(|(estimate, weight)| estimate - weight).sum();
            held.into_iter().for_each(|(estimate, weight)| {
                estimated.correct(now, 1, estimate, weight);
            });
            let tokens = |callers: &mut CallerLimiter| callers.admit(now, 1, 0).1.tokens;
            let (after, expected) = (tokens(&mut estimated), tokens(&mut known));
            prop_assert!((expected..=expected + most).contains(&after), "{after} {expected}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        /// Up to 16 callers have a place each; of 40 some are forgotten, which can only be to their advantage.
        #[test]
        fn every_span_has_the_burst_and_the_rate_at_most_and_the_wait_is_exact(
            limit in 1_u64..9, per in prop_oneof![1_u64..20, 900_u64..1100], burst in 1_u64..12, many: bool,
            steps in prop::collection::vec((0_u64..6, 0_u64..400, 0_u64..40, 0_u64..13), 1..150),
        ) {
            let rule = CallerRule { limit, per: Nanos(per), burst, entries: 16 };
            let mut callers = CallerLimiter::new(rule);
            let mut naive = vec![NaiveCaller::default(); 40];
            let mut now = 0;
            for (gap, later, key, weight) in steps {
                now += if gap == 0 { later } else { gap / 3 };
                let key = if many { key } else { key % 16 };
                let known = &mut naive[key as usize];
                let expected = known.allows(rule, now, weight) || weight == 0;
                let before = callers.clone();
                match callers.allows(Nanos(now), key, weight) {
                    Ok(()) => {
                        prop_assert!(expected || many, "allowed, at {now}");
                        known.0.push((now, weight));
                    }
                    Err(wait) => {
                        prop_assert!(!expected, "rejected, at {now}");
                        prop_assert_eq!(wait == Nanos::NEVER, weight > burst);
                        if wait != Nanos::NEVER {
                            let at = Nanos(now) + wait;
                            let allowed = |at: Nanos| before.clone().allows(at, key, weight).is_ok();
                            prop_assert!(allowed(at), "{wait:?} is too short");
                            prop_assert!(!allowed(at - Nanos(1)), "{wait:?} is too long");
                        }
                    }
                }
            }
        }

        #[test]
        fn no_rule_and_no_instants_upset_it(
            rule: (u64, u64, u64), steps in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 1..60),
        ) {
            let (limit, per, burst) = rule;
            let mut callers = CallerLimiter::new(CallerRule { limit, per: Nanos(per), burst, entries: 1 });
            for (now, key, weight) in steps {
                let _ = callers.allows(Nanos(now), key % 20, weight >> (weight % 64));
            }
        }
    }
}
