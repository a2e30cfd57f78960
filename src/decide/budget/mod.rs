//! What all extra attempts together may come to.
//!
//! Copies and retries help while the upstream has room, and bury it when it has none: then every call fails, every
//! failure asks for another attempt, and the load multiplies. So extra attempts, of whatever reason, are paid from one
//! ledger: in any window that ends with one of them they are at most a floor and a share of the calls that began in it.
//!
//! Where several gates share a budget, each counts its own calls, and has a [`Fraction`] of the floor.
//!
//! To know that exactly takes every instant of the window. The ledger keeps 64 stretches of it (`stretches.rs`) and errs
//! on the safe side: of the stretch that is partly over, the calls do not count any more and the extra attempts still
//! do. It therefore grants up to 1/63 less than it could, and never more.

mod floor;

use self::floor::BudgetMinimum;
use super::Nanos;
use super::policy::BudgetRule;
use super::portion::Fraction;
use super::stretches::SlidingCount;

/// Pays for extra attempts.
pub trait Budget {
    /// Whether one more extra attempt could be made now. Nothing is paid yet, and others may be quicker.
    fn can_withdraw(&mut self, now: Nanos) -> bool;

    /// Whether one more extra attempt may be made now; if so, it is paid.
    fn withdraw(&mut self, now: Nanos) -> bool;
}

/// There is no budget.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl Budget for Unlimited {
    fn can_withdraw(&mut self, _: Nanos) -> bool {
        true
    }

    fn withdraw(&mut self, _: Nanos) -> bool {
        true
    }
}

/// The kinds that are counted.
const CALLS: usize = 0;
const WITHDRAWN: usize = 1;

/// The calls and the extra attempts of a window's length, in fixed memory.
///
/// A time before the latest counts as the latest.
#[derive(Clone, Debug)]
pub struct RetryBudget {
    budget: BudgetRule,
    counts: SlidingCount<2>,
    /// If others pay from the same budget.
    minimum: Option<BudgetMinimum>,
}

impl RetryBudget {
    /// Nothing has happened yet.
    pub fn new(budget: BudgetRule) -> Self {
        Self { budget, counts: SlidingCount::new(budget.window), minimum: None }
    }

    /// The same, where several gates share the budget: nothing of its floor is ours until [`Self::apply_split`] says so.
    pub fn shared(budget: BudgetRule) -> Self {
        Self { minimum: Some(BudgetMinimum::new(budget)), ..Self::new(budget) }
    }

    /// From now on this portion of the floor is ours. If it is more than before, what is more counts after a window,
    /// as what somebody else spent of it counts so long. Does nothing to a ledger that is not shared.
    pub fn apply_split(&mut self, now: Nanos, portion: Fraction) {
        if let Some(floor) = &mut self.minimum {
            floor.apply_split(now, portion);
        }
    }

    /// What of the floor could be used, in the parts of a portion, if extra attempts were refused since this was asked
    /// last.
    pub fn wanted(&mut self, now: Nanos) -> Option<u32> {
        self.minimum.as_mut()?.wanted(now)
    }

    /// A call began.
    pub fn deposit(&mut self, now: Nanos) {
        self.counts.count(now, CALLS);
    }

    /// Whether one more extra attempt may be made now; if so, it is paid.
    pub fn withdraw(&mut self, now: Nanos) -> bool {
        if self.remaining_in_window(now) > 0 {
            self.counts.count(now, WITHDRAWN);
            return true;
        }
        self.minimum.as_mut().is_some_and(|floor| floor.withdraw_remainder(now))
    }

    /// How many more could be made now.
    pub fn remaining(&mut self, now: Nanos) -> u32 {
        let rest = self.minimum.as_mut().is_some_and(|floor| floor.has_remainder(now));
        self.remaining_in_window(now).saturating_add(u32::from(rest))
    }

    /// How many more the window allows.
    fn remaining_in_window(&mut self, now: Nanos) -> u32 {
        self.counts.advance(now);
        let [calls, spent] = self.counts.totals();
        let share = self.budget.fraction * (calls - self.counts.partly_expired()[CALLS]) as f64;
        let floor = self.minimum.as_mut().map_or(self.budget.min_per_window, |floor| floor.whole_attempts(now));
        let allowed = u64::from(floor).saturating_add(share as u64);
        u32::try_from(allowed.saturating_sub(spent)).unwrap_or(u32::MAX)
    }
}

impl Budget for RetryBudget {
    fn can_withdraw(&mut self, now: Nanos) -> bool {
        let may = self.remaining(now) > 0;
        if let (false, Some(floor)) = (may, &mut self.minimum) {
            floor.count_rejected();
        }
        may
    }

    fn withdraw(&mut self, now: Nanos) -> bool {
        Self::withdraw(self, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Keeps every instant.
    struct NaiveBudget {
        budget: BudgetRule,
        calls: Vec<u64>,
        spends: Vec<u64>,
    }

    impl NaiveBudget {
        /// What could be spent now if the window were `window` long, counting `lost` calls less.
        fn remaining(&self, now: u64, spans: (u64, u64)) -> f64 {
            let inside = |all: &[u64], window: u64| all.iter().filter(|at| now < window || **at > now - window).count();
            let (calls, spends) = (inside(&self.calls, spans.0), inside(&self.spends, spans.1));
            f64::from(self.budget.min_per_window) + (self.budget.fraction * calls as f64).floor() - spends as f64
        }
    }

    #[test]
    fn by_default_one_call_in_twenty_may_have_an_extra_attempt() {
        let mut ledger = RetryBudget::new(BudgetRule::default());
        let mut spent = 0;
        for call in 0..100_000_u64 {
            let now = Nanos::from_millis(call);
            ledger.deposit(now);
            spent += u32::from(ledger.withdraw(now));
        }
        // 1000 calls a second: 50 and the floor; a window's partly counted stretch costs one at most.
        assert!((4900..=5100).contains(&spent), "{spent}");
        assert!(ledger.remaining(Nanos::from_secs(1000)) == 1);
    }

    #[test]
    fn a_call_that_comes_alone_has_the_floor() {
        let mut ledger = RetryBudget::new(BudgetRule { min_per_window: 2, ..BudgetRule::default() });
        let granted: Vec<bool> =
            [0, 0, 1, 900, 999, 1000, 1016, 1017, 5000].map(|ms| ledger.withdraw(Nanos::from_millis(ms))).into();
        // What was spent counts until its whole stretch of 16 ms is over.
        assert_eq!(granted, [true, true, false, false, false, false, true, true, true]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn the_ledger_is_never_overdrawn_and_grants_nearly_all(
            share in prop_oneof![Just(0.0), Just(0.05), 0.0..5.0],
            floor in 0_u32..4,
            window in prop_oneof![1_u64..200, 1_u64..1_000_000_000],
            steps in prop::collection::vec((0_u8..8, 0_u8..24), 1..150),
        ) {
            let budget = BudgetRule { fraction: share, min_per_window: floor, window: Nanos(window) };
            let mut ledger = RetryBudget::new(budget);
            let mut naive = NaiveBudget { budget, calls: Vec::new(), spends: Vec::new() };
            let length = window.div_ceil(63);
            let mut now = 0_u64;
            for (jump, kind) in steps {
                now += match jump {
                    0..4 => 0,
                    4 => 1,
                    5 => window / 70,
                    6 => window / 3,
                    _ => window.saturating_mul(u64::from(kind % 3)) + 1,
                };
                if kind < 14 {
                    ledger.deposit(Nanos(now));
                    naive.calls.push(now);
                } else {
                    let exact = naive.remaining(now, (window, window));
                    // Calls may be forgotten a stretch too early, extra attempts a stretch too late.
                    let least = naive.remaining(now, (window.saturating_sub(length - 1).max(1), window + length));
                    let left = f64::from(ledger.remaining(Nanos(now)));
                    prop_assert!(left <= exact.max(0.0), "{left} of {exact}");
                    prop_assert!(left >= least, "{left}, at least {least}");
                    let granted = ledger.withdraw(Nanos(now));
                    prop_assert_eq!(granted, left > 0.0);
                    if granted {
                        naive.spends.push(now);
                    }
                }
            }
        }

        #[test]
        fn no_instants_upset_it(share: f64, floor: u32, window: u64, times in prop::collection::vec(any::<u64>(), 1..40)) {
            let mut ledger = RetryBudget::new(BudgetRule { fraction: share, min_per_window: floor, window: Nanos(window) });
            for time in times {
                ledger.deposit(Nanos(time));
                ledger.withdraw(Nanos(time));
            }
        }
    }
}
