//! Callers that several gates let in: the part of their rate that is ours.
//!
//! Most have the usual part. When that is another one, their buckets stay as *full* as they are: what is kept of them is
//! the instant at which they would be full again, and that does not change. It may let a caller have a part of its
//! burst once more, each time a gate comes or goes; the other way would have those who are known from of old wait.
//!
//! Callers with a part of their own are those that are short somewhere, and what they have moves to and fro. So there
//! *tokens* stay what they are, and a larger bucket has room that is empty: whatever is moved, all gates together let
//! through the burst, what comes back, and one call for each gate.

use std::collections::BTreeMap;

use super::super::Nanos;
use super::super::limit::token_bucket::Refill;
use super::super::portion::Portion;
use super::super::roster::Roster;

/// Callers that were short and have no part of their own, at most.
const MOST_SHORT: usize = 256;

/// What is known of the parts.
#[derive(Clone, Debug)]
pub(super) struct Together {
    whole: Refill,
    usual: Portion,
    /// The bucket of those with the usual part.
    refill: Refill,
    own: BTreeMap<u64, Own>,
    /// What was refused to others since the last count.
    short: BTreeMap<u64, u64>,
    since: Nanos,
    salt: u64,
}

#[derive(Clone, Debug)]
struct Own {
    portion: Portion,
    refill: Refill,
    full: u128,
    /// What came since the last count.
    asked: u64,
}

impl Together {
    /// Nothing is ours.
    pub(super) fn new(whole: Refill, salt: u64) -> Self {
        let (usual, own, short) = (Portion::NONE, BTreeMap::new(), BTreeMap::new());
        Self { whole, usual, refill: whole.part(usual), own, short, since: Nanos::ZERO, salt }
    }

    /// Where the roster has a caller with the usual part: nobody who knows its key knows that.
    pub(super) fn place(&self, key: u64) -> u64 {
        key.wrapping_mul(self.salt | 1).rotate_left(32)
    }

    /// The bucket of a caller that has a part of its own; a call of this weight has come.
    pub(super) fn own(&mut self, key: u64, weight: u64) -> Option<(Refill, &mut u128)> {
        let own = self.own.get_mut(&key)?;
        own.asked = own.asked.saturating_add(weight);
        Some((own.refill, &mut own.full))
    }

    /// A call was refused.
    pub(super) fn refused(&mut self, key: u64, weight: u64) {
        if !self.own.contains_key(&key) && (self.short.len() < MOST_SHORT || self.short.contains_key(&key)) {
            let short = self.short.entry(key).or_default();
            *short = short.saturating_add(weight);
        }
    }

    /// How long all of the rate takes for so much.
    pub(super) fn token(&self, weight: u64) -> Nanos {
        if weight > self.whole.holds {
            return Nanos::NEVER;
        }
        let takes = (u128::from(self.whole.per.0) * u128::from(weight)).div_ceil(u128::from(self.whole.limit));
        Nanos(u64::try_from(takes).unwrap_or(u64::MAX))
    }

    /// See [`super::Callers::wanted`].
    pub(super) fn wanted(&mut self, now: Nanos) -> Vec<(u64, u32)> {
        let elapsed = (now - self.since).max(Nanos::MILLI);
        self.since = now;
        let Refill { limit, per, .. } = self.whole;
        let all = u128::from(limit) * u128::from(elapsed.0);
        let parts = |weight: u64| {
            let parts = (u128::from(weight) * u128::from(per.0)).saturating_mul(1 << Portion::BITS) / all;
            u32::try_from(parts).unwrap_or(u32::MAX)
        };
        let usual = self.usual.parts();
        let short = std::mem::take(&mut self.short).into_iter();
        let short = short.map(|(key, weight)| (key, usual.saturating_add(parts(weight))));
        let own = self.own.iter_mut().map(|(key, own)| (*key, parts(std::mem::take(&mut own.asked))));
        own.chain(short).collect()
    }

    /// See [`super::Callers::follow`]. Gives the bucket of those with the usual part.
    pub(super) fn follow(
        &mut self,
        now: Nanos,
        usual: Portion,
        claims: impl Iterator<Item = (u64, Portion)>,
        full: &mut Roster<u128>,
    ) -> Refill {
        let (from, to) = (self.refill, self.whole.part(usual));
        let mut before = std::mem::take(&mut self.own);
        for (key, portion) in claims {
            let own = match before.remove(&key) {
                Some(own) if own.portion == portion => own,
                known => {
                    let (from, was, asked) = match known {
                        Some(own) => (own.refill, own.full, own.asked),
                        None => (from, (*full.of(self.place(key), |full| *full)).min(from.empty(now)), 0),
                    };
                    let refill = self.whole.part(portion);
                    Own { portion, refill, full: from.becomes(&refill, was, now), asked }
                }
            };
            self.own.insert(key, own);
        }
        for (key, own) in before {
            *full.of(self.place(key), |full| *full) = own.refill.becomes(&to, own.full, now);
        }
        (self.usual, self.refill) = (usual, to);
        to
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CallerRule, Callers};
    use super::*;
    use proptest::prelude::*;

    const RULE: CallerRule = CallerRule { limit: 100, per: Nanos::SECOND, burst: 20, entries: 64 };

    fn with(rule: CallerRule, usual: Portion) -> Callers {
        let mut callers = Callers::shared(rule, 77);
        callers.follow(Nanos::ZERO, usual, std::iter::empty());
        callers
    }

    fn accepted(callers: &mut Callers, key: u64, from_ms: u64, ms: u64) -> usize {
        (from_ms..from_ms + ms).filter(|ms| callers.allows(Nanos::from_millis(*ms), key, 1).is_ok()).count()
    }

    #[test]
    fn a_quarter_of_a_limit_has_a_quarter_of_its_rate_and_of_its_burst() {
        let mut callers = with(RULE, Portion::even(4));
        assert_eq!((0..20).filter(|_| callers.allows(Nanos::ZERO, 1, 1).is_ok()).count(), 5);
        assert_eq!(callers.allows(Nanos::ZERO, 1, 1), Err(Nanos::from_millis(40)));
        assert_eq!(accepted(&mut callers, 1, 0, 10_000), 249, "25 a second, and the next one after 10 s");
    }

    #[test]
    fn nothing_is_let_in_as_long_as_nothing_is_ours_and_the_wait_is_that_of_the_whole() {
        let mut callers = Callers::shared(RULE, 77);
        assert_eq!(callers.allows(Nanos::ZERO, 1, 1), Err(Nanos::from_millis(10)));
        assert_eq!(callers.allows(Nanos::ZERO, 1, 21), Err(Nanos::NEVER), "more than the burst");
        callers.follow(Nanos::SECOND, Portion::even(2), std::iter::empty());
        assert_eq!((0..20).filter(|_| callers.allows(Nanos::SECOND, 1, 1).is_ok()).count(), 10);
    }

    #[test]
    fn a_burst_that_has_less_than_one_call_for_each_gate_has_one() {
        let rule = CallerRule { burst: 1, ..RULE };
        let mut callers = with(rule, Portion::even(100));
        assert!(callers.allows(Nanos::ZERO, 1, 1).is_ok());
        assert_eq!(accepted(&mut callers, 1, 1, 10_000), 9, "of 100 a second nearly one");
        // It has just been emptied for a second. When there is more, it does not take that long.
        let now = Nanos::from_millis(10_010);
        assert!(callers.allows(now, 1, 1).is_ok());
        callers.follow(now, Portion::WHOLE, std::iter::empty());
        assert_eq!(callers.allows(now, 1, 1), Err(Nanos::from_millis(10)));
        assert!(callers.allows(Nanos::from_millis(10_020), 1, 1).is_ok());
    }

    #[test]
    fn what_is_wanted_is_what_came_in_where_a_caller_was_short() {
        let mut callers = with(RULE, Portion::even(4));
        callers.wanted(Nanos::ZERO);
        let came = |callers: &mut Callers, from: u64, callers_each_ms: &[(u64, u64)]| {
            for ms in from..from + 2000 {
                for (key, _) in callers_each_ms.iter().filter(|(_, each_ms)| ms % each_ms == 0) {
                    let _ = callers.allows(Nanos::from_millis(ms), *key, 1);
                }
            }
        };
        came(&mut callers, 0, &[(1, 5), (2, 100)]);
        let wanted = callers.wanted(Nanos::from_secs(2));
        let [(1, wants)] = wanted[..] else { unreachable!("{wanted:?}") };
        // 200 a second came in, of which the first few were its burst.
        assert!((f64::from(wants) / 65_536.0 - 2.0).abs() < 0.1, "{wants}");
        let claims = [(1, Portion::even(2)), (3, Portion::NONE)];
        callers.follow(Nanos::from_secs(2), Portion::even(4), claims.into_iter());
        came(&mut callers, 2000, &[(1, 10)]);
        let wanted = callers.wanted(Nanos::from_secs(4));
        assert_eq!(wanted, [(1, 65_536), (3, 0)], "all of a claim is counted, also what is let in");
    }

    #[test]
    fn tokens_stay_when_a_portion_is_another_one() {
        let mut callers = with(RULE, Portion::even(2));
        let take = |callers: &mut Callers, at: u64| {
            (0..100).take_while(|_| callers.allows(Nanos::from_millis(at), 1, 1).is_ok()).count()
        };
        let follow = |callers: &mut Callers, at: u64, portion: Option<Portion>| {
            let claims = portion.map(|portion| (1, portion));
            callers.follow(Nanos::from_millis(at), Portion::even(2), claims.into_iter());
        };
        follow(&mut callers, 0, Some(Portion::WHOLE));
        assert_eq!(take(&mut callers, 0), 10, "what the half had");
        follow(&mut callers, 100, Some(Portion::even(4)));
        assert_eq!(take(&mut callers, 100), 5, "of 10 the quarter holds 5");
        follow(&mut callers, 100, Some(Portion::WHOLE));
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
            let mut all: Vec<Callers> = (0..gates).map(|_| with(rule, Portion::even(gates as u32))).collect();
            let mut portions = vec![Portion::even(gates as u32).parts(); gates];
            let (mut now, mut accepted) = (Nanos::ZERO, Vec::new());
            for (gate, what, ms, parts) in steps {
                let gate = gate % gates;
                match what {
                    0..2 => now += Nanos::from_millis(ms * per_ms / 100),
                    2 => {
                        let others: u32 = portions.iter().sum::<u32>() - portions[gate];
                        portions[gate] = parts.min(65_536 - others);
                        // At times it goes back to the usual one, if it has no more than that.
                        let usual = Portion::even(gates as u32);
                        let is_usual = parts % 3 == 0 && portions[gate] <= usual.parts() && others <= 65_536 - usual.parts();
                        if is_usual {
                            portions[gate] = usual.parts();
                        }
                        let claim = (!is_usual).then(|| (9, Portion::of(portions[gate])));
                        all[gate].follow(now, usual, claim.into_iter());
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
            let whole = Refill { limit, per: Nanos(per), holds };
            let (from, to) = (whole.part(Portion::of(parts.0)), whole.part(Portion::of(parts.1)));
            let (now, taken) = (Nanos(now), taken.min(from.holds));
            let full = from.take(0, now, taken);
            let full = from.becomes(&to, full, now);
            let left = from.holds - taken;
            let kept = left.min(to.holds);
            prop_assert!(to.room(full, kept.saturating_sub(1)) <= now, "a token at most is lost");
            if kept < to.holds {
                prop_assert!(to.room(full, kept + 1) > now, "none is new");
            }
        }
    }
}
