//! Callers whose rate several gates share: the fraction of their buckets that this gate has.
//!
//! Most callers have the default fraction. When it changes, their buckets stay as *full* as they are: what is kept of
//! a bucket is the instant at which it is full again, and that does not change. So a caller may have a part of its
//! burst once more each time a gate joins or leaves; otherwise callers that have been known for long would wait.
//!
//! Callers with a fraction of their own are those that are short at some gate, and their fractions change often. Their
//! *tokens* stay, and what a larger bucket has more is empty: whatever is moved, all gates together let through the
//! burst, what is refilled, and one call for each gate.
//!
//! A bucket may owe tokens, after a correction. The debt moves with the tokens; that there is one is recorded apart,
//! since a bucket that was emptied with a smaller fraction looks the same.

use std::collections::{BTreeMap, BTreeSet};

use super::{BucketState, corrected, state, take};
use weir_base::Nanos;
use weir_base::set_cache::SetCache;
use weir_limits::fraction::Fraction;
use weir_limits::models::token_bucket::Refill;

/// Maximum number of callers without a bucket of their own whose rejections are counted.
const MAX_REJECTED_CALLERS: usize = 256;
/// Maximum number of callers that owe tokens; debts of further ones are forgiven.
const MAX_DEBTORS: usize = 4096;
/// Longest wait of a call that weighs more than this gate's bucket holds: the fraction follows demand within a lease,
/// and demand that does not come again is forgotten.
const MAX_WAIT_FOR_FRACTION: Nanos = Nanos::SECOND;

/// Buckets of callers, with the fraction of the rate that each caller has at this gate.
#[derive(Clone, Debug)]
pub(super) struct SharedBuckets {
    whole: Refill,
    default_fraction: Fraction,
    /// Bucket of callers with the default fraction.
    refill: Refill,
    own_buckets: BTreeMap<u64, OwnBucket>,
    /// Weight rejected to callers without a bucket of their own since the last count.
    rejected_weight: BTreeMap<u64, u64>,
    /// Callers whose buckets owe tokens, or did until lately.
    debtors: BTreeSet<u64>,
    counted_at: Nanos,
    salt: u64,
}

#[derive(Clone, Debug)]
struct OwnBucket {
    fraction: Fraction,
    refill: Refill,
    full_at: u128,
    /// Weight requested since the last count.
    requested_weight: u64,
}

impl SharedBuckets {
    /// Buckets of which this gate has nothing yet.
    pub(super) fn new(whole: Refill, salt: u64) -> Self {
        let (default_fraction, own_buckets, rejected_weight) = (Fraction::NONE, BTreeMap::new(), BTreeMap::new());
        Self {
            whole,
            default_fraction,
            refill: whole.fraction(default_fraction),
            own_buckets,
            rejected_weight,
            debtors: BTreeSet::new(),
            counted_at: Nanos::ZERO,
            salt,
        }
    }

    /// See [`super::CallerLimiter::admit`]. `latest` is the latest time of a call; `full_at` has the buckets of callers
    /// with the default fraction.
    pub(super) fn admit(
        &mut self,
        full_at: &mut SetCache<u128>,
        now: Nanos,
        latest: Nanos,
        key: u64,
        weight: u64,
    ) -> (Result<(), Nanos>, BucketState) {
        let default_refill = self.refill;
        if weight == 0 {
            return (Ok(()), state(&default_refill, 0, latest));
        }
        let (place, was_in_debt) = (self.cache_key(key), self.debtors.contains(&key));
        let (refill, full) = match self.own_bucket(key, weight) {
            Some(own_bucket) => own_bucket,
            None => (default_refill, full_at.get_or_insert(place, |full| *full)),
        };
        let empty = refill.empty_at(latest);
        let is_in_debt = was_in_debt && *full > empty;
        if !is_in_debt {
            // With a smaller fraction it may have been emptied for longer than a larger one takes to fill.
            *full = (*full).min(empty);
        }
        let taken = if weight > refill.capacity { Err(Nanos::NEVER) } else { take(&refill, full, latest, weight) };
        let state = state(&refill, *full, latest);
        if was_in_debt && !is_in_debt {
            self.debtors.remove(&key);
        }
        let taken = taken.map_err(|at| if at == Nanos::NEVER { self.wait_for(weight) } else { at - now });
        (taken.inspect_err(|_| self.rejected(key, weight)), state)
    }

    /// See [`super::CallerLimiter::correct`].
    pub(super) fn correct(
        &mut self,
        full_at: &mut SetCache<u128>,
        now: Nanos,
        key: u64,
        taken: u64,
        weight: u64,
    ) -> BucketState {
        let (default_refill, place, was_in_debt) = (self.refill, self.cache_key(key), self.debtors.contains(&key));
        let may_owe = was_in_debt || self.debtors.len() < MAX_DEBTORS;
        if let Some(own_bucket) = self.own_buckets.get_mut(&key) {
            own_bucket.requested_weight = own_bucket.requested_weight.saturating_sub(taken.saturating_sub(weight));
        }
        let (refill, full) = match self.own_bucket(key, weight.saturating_sub(taken)) {
            Some(own_bucket) => own_bucket,
            None => (default_refill, full_at.get_or_insert(place, |full| *full)),
        };
        let empty = refill.empty_at(now);
        let before = if was_in_debt { *full } else { (*full).min(empty) };
        let after = corrected(&refill, before, now, taken, weight);
        *full = if may_owe { after } else { after.min(empty) };
        let (state, owes) = (state(&refill, *full, now), *full > empty);
        if owes {
            self.debtors.insert(key);
        }
        state
    }

    /// Key of a caller without a bucket of its own in the set cache; salted, so that callers cannot choose collisions.
    fn cache_key(&self, key: u64) -> u64 {
        key.wrapping_mul(self.salt | 1).rotate_left(32)
    }

    /// Bucket of a caller with a fraction of its own, for a call of this weight.
    fn own_bucket(&mut self, key: u64, weight: u64) -> Option<(Refill, &mut u128)> {
        let own_bucket = self.own_buckets.get_mut(&key)?;
        own_bucket.requested_weight = own_bucket.requested_weight.saturating_add(weight);
        Some((own_bucket.refill, &mut own_bucket.full_at))
    }

    /// Records a rejected call.
    fn rejected(&mut self, key: u64, weight: u64) {
        if !self.own_buckets.contains_key(&key)
            && (self.rejected_weight.len() < MAX_REJECTED_CALLERS || self.rejected_weight.contains_key(&key))
        {
            let short = self.rejected_weight.entry(key).or_default();
            *short = short.saturating_add(weight);
        }
    }

    /// Wait of a call that weighs more than this gate's bucket holds: the time in which the whole rate refills as much.
    fn wait_for(&self, weight: u64) -> Nanos {
        if weight > self.whole.capacity {
            return Nanos::NEVER;
        }
        let refill_ns = (u128::from(self.whole.per.0) * u128::from(weight)).div_ceil(u128::from(self.whole.limit));
        Nanos(u64::try_from(refill_ns).unwrap_or(u64::MAX)).min(MAX_WAIT_FOR_FRACTION)
    }

    /// See [`super::CallerLimiter::demand`].
    pub(super) fn demand(&mut self, now: Nanos) -> Vec<(u64, u32)> {
        let elapsed = (now - self.counted_at).max(Nanos::MILLI);
        self.counted_at = now;
        let Refill { limit, per, .. } = self.whole;
        let all = u128::from(limit) * u128::from(elapsed.0);
        let parts = |weight: u64| {
            let parts = (u128::from(weight) * u128::from(per.0)).saturating_mul(1 << Fraction::BITS) / all;
            u32::try_from(parts).unwrap_or(u32::MAX)
        };
        let default_parts = self.default_fraction.parts();
        let short = std::mem::take(&mut self.rejected_weight).into_iter();
        let short = short.map(|(key, weight)| (key, default_parts.saturating_add(parts(weight))));
        let own_demand = self
            .own_buckets
            .iter_mut()
            .map(|(key, bucket)| (*key, parts(std::mem::take(&mut bucket.requested_weight))));
        own_demand.chain(short).collect()
    }

    /// See [`super::CallerLimiter::set_fractions`]. Returns the bucket of callers with the default fraction.
    pub(super) fn set_fractions(
        &mut self,
        now: Nanos,
        default_fraction: Fraction,
        own_fractions: impl Iterator<Item = (u64, Fraction)>,
        full: &mut SetCache<u128>,
    ) -> Refill {
        let (from, to) = (self.refill, self.whole.fraction(default_fraction));
        let mut before = std::mem::take(&mut self.own_buckets);
        for (key, fraction) in own_fractions {
            let own_bucket = match before.remove(&key) {
                Some(own_bucket) if own_bucket.fraction == fraction => own_bucket,
                known => {
                    let (from, was, requested_weight) = match known {
                        Some(own_bucket) => (own_bucket.refill, own_bucket.full_at, own_bucket.requested_weight),
                        None => {
                            let was = *full.get_or_insert(self.cache_key(key), |full| *full);
                            let owes = self.debtors.contains(&key);
                            (from, if owes { was } else { was.min(from.empty_at(now)) }, 0)
                        }
                    };
                    let refill = self.whole.fraction(fraction);
                    OwnBucket { fraction, refill, full_at: convert(&from, &refill, was, now), requested_weight }
                }
            };
            self.own_buckets.insert(key, own_bucket);
        }
        for (key, own_bucket) in before {
            *full.get_or_insert(self.cache_key(key), |full| *full) =
                convert(&own_bucket.refill, &to, own_bucket.full_at, now);
        }
        (self.default_fraction, self.refill) = (default_fraction, to);
        let mut debtors = std::mem::take(&mut self.debtors);
        debtors.retain(|key| match self.own_buckets.get(key) {
            Some(own_bucket) => own_bucket.full_at > own_bucket.refill.empty_at(now),
            None => full.get(self.cache_key(*key)).is_some_and(|full| *full > to.empty_at(now)),
        });
        self.debtors = debtors;
        to
    }
}

/// State of a bucket that becomes another one of the same limit and keeps its tokens, or what it owes.
fn convert(from: &Refill, to: &Refill, full: u128, now: Nanos) -> u128 {
    let per = u128::from(from.per.0.max(1));
    let owed = full.saturating_sub(from.empty_at(now));
    // In 65,536ths of a token, rounded down.
    let parts = ((owed / per) << Fraction::BITS) + ((owed % per) << Fraction::BITS) / per;
    from.convert(to, full, now).saturating_add(parts.saturating_mul(u128::from(to.per.0)) >> Fraction::BITS)
}

#[cfg(test)]
mod tests {
    use super::super::{CallerLimiter, CallerRule};
    use super::*;
    use proptest::prelude::*;

    const RULE: CallerRule = CallerRule { limit: 100, per: Nanos::SECOND, burst: 20, entries: 64 };

    fn with(rule: CallerRule, usual: Fraction) -> CallerLimiter {
        let mut callers = CallerLimiter::shared(rule, 77);
        callers.set_fractions(Nanos::ZERO, usual, std::iter::empty());
        callers
    }

    fn accepted(callers: &mut CallerLimiter, key: u64, from_ms: u64, ms: u64) -> usize {
        (from_ms..from_ms + ms).filter(|ms| callers.allows(Nanos::from_millis(*ms), key, 1).is_ok()).count()
    }

    #[test]
    fn a_quarter_of_a_limit_has_a_quarter_of_its_rate_and_of_its_burst() {
        let mut callers = with(RULE, Fraction::even(4));
        assert_eq!((0..20).filter(|_| callers.allows(Nanos::ZERO, 1, 1).is_ok()).count(), 5);
        assert_eq!(callers.allows(Nanos::ZERO, 1, 1), Err(Nanos::from_millis(40)));
        assert_eq!(accepted(&mut callers, 1, 0, 10_000), 249, "25 a second, and the next one after 10 s");
    }

    #[test]
    fn nothing_is_let_in_as_long_as_nothing_is_ours_and_the_wait_is_that_of_the_whole() {
        let mut callers = CallerLimiter::shared(RULE, 77);
        assert_eq!(callers.allows(Nanos::ZERO, 1, 1), Err(Nanos::from_millis(10)));
        assert_eq!(callers.allows(Nanos::ZERO, 1, 21), Err(Nanos::NEVER), "more than the burst");
        callers.set_fractions(Nanos::SECOND, Fraction::even(2), std::iter::empty());
        assert_eq!((0..20).filter(|_| callers.allows(Nanos::SECOND, 1, 1).is_ok()).count(), 10);
    }

    #[test]
    fn a_burst_that_has_less_than_one_call_for_each_gate_has_one() {
        let rule = CallerRule { burst: 1, ..RULE };
        let mut callers = with(rule, Fraction::even(100));
        assert!(callers.allows(Nanos::ZERO, 1, 1).is_ok());
        assert_eq!(accepted(&mut callers, 1, 1, 10_000), 9, "of 100 a second nearly one");
        // It has just been emptied for a second. When there is more, it does not take that long.
        let now = Nanos::from_millis(10_010);
        assert!(callers.allows(now, 1, 1).is_ok());
        callers.set_fractions(now, Fraction::WHOLE, std::iter::empty());
        assert_eq!(callers.allows(now, 1, 1), Err(Nanos::from_millis(10)));
        assert!(callers.allows(Nanos::from_millis(10_020), 1, 1).is_ok());
    }

    #[test]
    fn what_is_wanted_is_what_came_in_where_a_caller_was_short() {
        let mut callers = with(RULE, Fraction::even(4));
        callers.demand(Nanos::ZERO);
        let came = |callers: &mut CallerLimiter, from: u64, callers_each_ms: &[(u64, u64)]| {
            for ms in from..from + 2000 {
                for (key, _) in callers_each_ms.iter().filter(|(_, each_ms)| ms % each_ms == 0) {
                    let _ = callers.allows(Nanos::from_millis(ms), *key, 1);
                }
            }
        };
        came(&mut callers, 0, &[(1, 5), (2, 100)]);
        let wanted = callers.demand(Nanos::from_secs(2));
        let [(1, wants)] = wanted[..] else { unreachable!("{wanted:?}") };
        // 200 a second came in, of which the first few were its burst.
        assert!((f64::from(wants) / 65_536.0 - 2.0).abs() < 0.1, "{wants}");
        let claims = [(1, Fraction::even(2)), (3, Fraction::NONE)];
        callers.set_fractions(Nanos::from_secs(2), Fraction::even(4), claims.into_iter());
        came(&mut callers, 2000, &[(1, 10)]);
        let wanted = callers.demand(Nanos::from_secs(4));
        assert_eq!(wanted, [(1, 65_536), (3, 0)], "all of a claim is counted, also what is let in");
    }

    #[test]
    fn tokens_stay_when_a_portion_is_another_one() {
        let mut callers = with(RULE, Fraction::even(2));
        let take = |callers: &mut CallerLimiter, at: u64| {
            (0..100).take_while(|_| callers.allows(Nanos::from_millis(at), 1, 1).is_ok()).count()
        };
        let follow = |callers: &mut CallerLimiter, at: u64, portion: Option<Fraction>| {
            let claims = portion.map(|portion| (1, portion));
            callers.set_fractions(Nanos::from_millis(at), Fraction::even(2), claims.into_iter());
        };
        follow(&mut callers, 0, Some(Fraction::WHOLE));
        assert_eq!(take(&mut callers, 0), 10, "what the half had");
        follow(&mut callers, 100, Some(Fraction::even(4)));
        assert_eq!(take(&mut callers, 100), 5, "of 10 the quarter holds 5");
        follow(&mut callers, 100, Some(Fraction::WHOLE));
        assert_eq!(take(&mut callers, 100), 0);
        follow(&mut callers, 150, None);
        assert_eq!(take(&mut callers, 150), 5, "what came back at the whole rate");
        assert_eq!(take(&mut callers, 1000), 10);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        /// Portions of one caller move between gates; what one has more another has given up before.
        #[test]
        fn all_gates_together_let_through_what_one_would_and_a_call_for_each(
            gates in 1_usize..5, limit in 1_u64..50, per_ms in 1_u64..3000, burst in 1_u64..30,
            steps in prop::collection::vec((0_usize..5, 0_u8..10, 0_u64..200, 0_u32..65_536), 1..100),
        ) {
            let rule = CallerRule { limit, per: Nanos::from_millis(per_ms), burst, entries: 16 };
            let mut all: Vec<CallerLimiter> = (0..gates).map(|_| with(rule, Fraction::even(gates as u32))).collect();
            let mut portions = vec![Fraction::even(gates as u32).parts(); gates];
            let (mut now, mut accepted) = (Nanos::ZERO, Vec::new());
            for (gate, what, ms, parts) in steps {
                let gate = gate % gates;
                match what {
                    0..2 => now += Nanos::from_millis(ms * per_ms / 100),
                    2 => {
                        let others: u32 = portions.iter().sum::<u32>() - portions[gate];
                        portions[gate] = parts.min(65_536 - others);
                        // At times it goes back to the usual one, if it has no more than that.
                        let usual = Fraction::even(gates as u32);
                        let is_usual = parts % 3 == 0 && portions[gate] <= usual.parts() && others <= 65_536 - usual.parts();
                        if is_usual {
                            portions[gate] = usual.parts();
                        }
                        let claim = (!is_usual).then(|| (9, Fraction::from_parts(portions[gate])));
                        all[gate].set_fractions(now, usual, claim.into_iter());
                    }
                    _ => {
                        for _ in 0..=ms % 8 {
                            if all[gate].allows(now, 9, 1).is_ok() {
                                accepted.push(now);
                            }
                        }
                    }
                }
            }
            for (place, from) in accepted.iter().enumerate() {
                for (further, to) in accepted[place..].iter().enumerate() {
                    let came = u128::from((*to - *from).0) * u128::from(limit) / u128::from(rule.per.0);
                    let most = u128::from(burst) + came + gates as u128;
                    assert!((further as u128) < most, "{} within {:?}", further + 1, *to - *from);
                }
            }
        }

        #[test]
        fn a_bucket_that_becomes_another_one_has_the_tokens_that_it_had_as_far_as_it_holds_them(
            (limit, per, holds) in (1_u64..1 << 40, 1_u64..1 << 43, 1_u64..1 << 40),
            parts in (1_u32..=65_536, 1_u32..=65_536), now in 0_u64..1 << 50, taken in 0_u64..1 << 40,
        ) {
            let whole = Refill { limit, per: Nanos(per), capacity: holds };
            let (from, to) = (whole.fraction(Fraction::from_parts(parts.0)), whole.fraction(Fraction::from_parts(parts.1)));
            let (now, taken) = (Nanos(now), taken.min(from.capacity));
            let full = from.take(0, now, taken);
            let full = from.convert(&to, full, now);
            let left = from.capacity - taken;
            let kept = left.min(to.capacity);
            prop_assert!(to.available_at(full, kept.saturating_sub(1)) <= now, "a token at most is lost");
            if kept < to.capacity {
                prop_assert!(to.available_at(full, kept + 1) > now, "none is new");
            }
        }
    }
}
