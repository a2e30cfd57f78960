//! Retry budget: a bound on all extra attempts (hedges and retries) together.
//!
//! Extra attempts help while the upstream has capacity, and overload it when it has none: then every call fails, every
//! failure causes another attempt, and the load multiplies. So in any window that ends with an extra attempt there are
//! at most a minimum and a fraction of the calls that began in it (Finagle, Linkerd, tower; SRE book, ch. 22).
//!
//! Gateways that share a budget each count their own calls, and have a [`Fraction`] of the minimum.
//!
//! An exact count takes every time in the window. This one keeps 64 intervals (`SlidingCount`) and errs on the safe
//! side: in the partly expired interval calls do not count any more and extra attempts still do. So it grants up to
//! 1/63 less than allowed, never more.

mod minimum;

use self::minimum::BudgetMinimum;
use crate::policy::BudgetRule;
use weir_base::Nanos;
use weir_base::sliding_count::SlidingCount;
use weir_limits::fraction::Fraction;

/// Source of extra attempts.
pub trait Budget {
    /// Whether an extra attempt could be made now. It is not withdrawn yet, and others may be quicker.
    fn can_withdraw(&mut self, now: Nanos) -> bool;

    /// Withdraws an extra attempt; false if there is none.
    fn withdraw(&mut self, now: Nanos) -> bool;
}

/// Budget without a limit.
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

/// Indices of the counts.
const CALLS: usize = 0;
const WITHDRAWN: usize = 1;

/// Budget of extra attempts, by the calls and extra attempts of a sliding window. Fixed memory.
///
/// A time before the latest one counts as the latest.
#[derive(Clone, Debug)]
pub struct RetryBudget {
    budget: BudgetRule,
    counts: SlidingCount<2>,
    /// Own part of the minimum, if several gateways share the budget.
    minimum: Option<BudgetMinimum>,
}

impl RetryBudget {
    /// A budget before the first call.
    pub fn new(budget: BudgetRule) -> Self {
        Self { budget, counts: SlidingCount::new(budget.window), minimum: None }
    }

    /// A budget that several gateways share; its own part of the minimum is 0 until [`Self::apply_split`].
    pub fn shared(budget: BudgetRule) -> Self {
        Self { minimum: Some(BudgetMinimum::new(budget)), ..Self::new(budget) }
    }

    /// Sets the own fraction of the minimum. An increase counts after a window, for as long as attempts of others from
    /// it count. Without effect on a budget that is not shared.
    pub fn apply_split(&mut self, now: Nanos, fraction: Fraction) {
        if let Some(minimum) = &mut self.minimum {
            minimum.apply_split(now, fraction);
        }
    }

    /// Share of the minimum that this gateway requests, in parts of a [`Fraction`]; `None` if no extra attempt was denied
    /// since the previous call.
    pub fn wanted(&mut self, now: Nanos) -> Option<u32> {
        self.minimum.as_mut()?.wanted(now)
    }

    /// Counts a call that begins.
    pub fn deposit(&mut self, now: Nanos) {
        self.counts.count(now, CALLS);
    }

    /// Withdraws an extra attempt; false if there is none.
    pub fn withdraw(&mut self, now: Nanos) -> bool {
        if self.remaining_in_window(now) > 0 {
            self.counts.count(now, WITHDRAWN);
            return true;
        }
        self.minimum.as_mut().is_some_and(|minimum| minimum.withdraw_remainder(now))
    }

    /// Extra attempts that could be made now.
    pub fn remaining(&mut self, now: Nanos) -> u32 {
        let remainder = self.minimum.as_mut().is_some_and(|minimum| minimum.has_remainder(now));
        self.remaining_in_window(now).saturating_add(u32::from(remainder))
    }

    /// Extra attempts that the window still allows, without the remainder of a shared minimum.
    fn remaining_in_window(&mut self, now: Nanos) -> u32 {
        self.counts.advance(now);
        let [calls, withdrawn] = self.counts.totals();
        let by_calls = self.budget.fraction * (calls - self.counts.partly_expired()[CALLS]) as f64;
        let minimum = self.minimum.as_mut().map_or(self.budget.min_per_window, |minimum| minimum.whole_attempts(now));
        let allowed = u64::from(minimum).saturating_add(by_calls as u64);
        u32::try_from(allowed.saturating_sub(withdrawn)).unwrap_or(u32::MAX)
    }
}

impl Budget for RetryBudget {
    fn can_withdraw(&mut self, now: Nanos) -> bool {
        let can = self.remaining(now) > 0;
        if let (false, Some(minimum)) = (can, &mut self.minimum) {
            minimum.count_rejected();
        }
        can
    }

    fn withdraw(&mut self, now: Nanos) -> bool {
        Self::withdraw(self, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Exact budget that keeps every time.
    struct NaiveBudget {
        budget: BudgetRule,
        calls: Vec<u64>,
        withdrawals: Vec<u64>,
    }

    impl NaiveBudget {
        /// Extra attempts left, with windows of `spans` for calls and for extra attempts.
        fn remaining(&self, now: u64, spans: (u64, u64)) -> f64 {
            let inside = |all: &[u64], window: u64| all.iter().filter(|at| now < window || **at > now - window).count();
            let (calls, withdrawals) = (inside(&self.calls, spans.0), inside(&self.withdrawals, spans.1));
            f64::from(self.budget.min_per_window) + (self.budget.fraction * calls as f64).floor() - withdrawals as f64
        }
    }

    #[test]
    fn by_default_an_outage_is_amplified_by_one_call_in_twenty_and_25_a_second() {
        let mut retry_budget = RetryBudget::new(BudgetRule::default());
        let mut withdrawn = 0;
        for call in 0..100_000_u64 {
            let now = Nanos::from_millis(call);
            retry_budget.deposit(now);
            withdrawn += u32::from(retry_budget.withdraw(now));
        }
        // 1,000 calls per second: 50 and the minimum of 25; the partly expired interval costs a sixtieth at most.
        assert!((7350..=7750).contains(&withdrawn), "{withdrawn}");
        assert!(retry_budget.remaining(Nanos::from_secs(1000)) == 250);
        assert_eq!(BudgetRule::default().to_string(), "5% + 250/10s");
        assert_eq!(BudgetRule { fraction: 0.07, ..BudgetRule::default() }.to_string(), "7% + 250/10s");
    }

    /// One call at a time with pairs of hedges after 150 ms or a failure, and two retries, at a service of which a tenth
    /// of the attempts fails and a tenth hangs.
    #[test]
    fn calls_in_sequence_do_not_meet_the_default() {
        use weir_base::rng::SeededRng;
        for (service_ms, max_denied) in [(2, 10), (5, 0), (20, 0), (100, 0)] {
            let mut retry_budget = RetryBudget::new(BudgetRule::default());
            let (mut now, mut denied) = (Nanos::ZERO, 0);
            let mut rng = SeededRng::new(5, service_ms);
            for _ in 0..1000 {
                retry_budget.deposit(now);
                let mut attempts = vec![rng.unit()];
                for extra in [2, 1, 1] {
                    let succeeds = attempts.iter().any(|fate| *fate >= 0.2);
                    let hangs = attempts.iter().all(|fate| *fate < 0.1);
                    now += Nanos::from_millis(if hangs && !succeeds { 150 } else { service_ms });
                    if succeeds {
                        break;
                    }
                    for _ in 0..extra {
                        denied += u32::from(!retry_budget.withdraw(now));
                        attempts.push(rng.unit());
                    }
                }
            }
            assert!(denied <= max_denied, "{denied} at {service_ms} ms");
        }
    }

    #[test]
    fn a_single_call_has_the_minimum() {
        let mut retry_budget =
            RetryBudget::new(BudgetRule { min_per_window: 2, window: Nanos::SECOND, ..BudgetRule::default() });
        let granted: Vec<bool> =
            [0, 0, 1, 900, 999, 1000, 1016, 1017, 5000].map(|ms| retry_budget.withdraw(Nanos::from_millis(ms))).into();
        // A withdrawal counts until its whole interval of 16 ms has expired.
        assert_eq!(granted, [true, true, false, false, false, false, true, true, true]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn the_budget_is_never_overdrawn_and_grants_nearly_all(
            fraction in prop_oneof![Just(0.0), Just(0.05), 0.0..5.0],
            minimum in 0_u32..4,
            window in prop_oneof![1_u64..200, 1_u64..1_000_000_000],
            steps in prop::collection::vec((0_u8..8, 0_u8..24), 1..150),
        ) {
            let budget = BudgetRule { fraction, min_per_window: minimum, window: Nanos(window) };
            let mut retry_budget = RetryBudget::new(budget);
            let mut naive = NaiveBudget { budget, calls: Vec::new(), withdrawals: Vec::new() };
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
                    retry_budget.deposit(Nanos(now));
                    naive.calls.push(now);
                } else {
                    let exact = naive.remaining(now, (window, window));
                    // Calls may expire an interval too early, extra attempts an interval too late.
                    let least = naive.remaining(now, (window.saturating_sub(length - 1).max(1), window + length));
                    let left = f64::from(retry_budget.remaining(Nanos(now)));
                    prop_assert!(left <= exact.max(0.0), "{left} of {exact}");
                    prop_assert!(left >= least, "{left}, at least {least}");
                    let granted = retry_budget.withdraw(Nanos(now));
                    prop_assert_eq!(granted, left > 0.0);
                    if granted {
                        naive.withdrawals.push(now);
                    }
                }
            }
        }

        #[test]
        fn no_times_make_it_panic(fraction: f64, minimum: u32, window: u64, times in prop::collection::vec(any::<u64>(), 1..40)) {
            let mut retry_budget = RetryBudget::new(BudgetRule { fraction, min_per_window: minimum, window: Nanos(window) });
            for time in times {
                retry_budget.deposit(Nanos(time));
                retry_budget.withdraw(Nanos(time));
            }
        }
    }
}
