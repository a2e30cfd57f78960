//! Own part of a shared budget's minimum.
//!
//! Its whole attempts are available in each window, as if the budget had no others. The fractional remainder is a token
//! bucket of capacity 1. So in a window all gateways together have the minimum, plus one for each gateway whose part is
//! fractional.

use crate::policy::BudgetRule;
use weir_base::Nanos;
use weir_limits::fraction::Fraction;
use weir_limits::models::token_bucket::Refill;

/// Own part of a minimum, and its fractional remainder.
#[derive(Clone, Debug)]
pub(super) struct BudgetMinimum {
    total: u32,
    window: Nanos,
    fraction: Fraction,
    /// Increased fraction, and when it begins to count.
    next: Option<(Fraction, Nanos)>,
    /// Last fraction that was set.
    latest: Fraction,
    /// Whether the fraction has ever been above 0.
    begun: bool,
    remainder: Refill,
    /// Time at which the remainder is a whole attempt, in the notation of [`Refill`].
    refilled_at: u128,
    /// Denied attempts since `counted_since`.
    rejected: u64,
    counted_since: Nanos,
}

/// Refill of the fractional remainder: one token in the time in which it adds up to an attempt.
fn remainder_refill(total: u32, window: Nanos, fraction: Fraction) -> Refill {
    let parts = (u64::from(total) * u64::from(fraction.parts())) & ((1 << Fraction::BITS) - 1);
    let left = Fraction::from_parts(parts as u32);
    Refill { limit: 1, per: window, capacity: 1 }.fraction(left)
}

impl BudgetMinimum {
    /// A part of 0.
    pub(super) fn new(budget: BudgetRule) -> Self {
        let (total, window) = (budget.min_per_window, budget.window.max(Nanos(1)));
        Self {
            total,
            window,
            fraction: Fraction::NONE,
            next: None,
            latest: Fraction::NONE,
            begun: false,
            remainder: remainder_refill(total, window, Fraction::NONE),
            refilled_at: 0,
            rejected: 0,
            counted_since: Nanos::ZERO,
        }
    }

    /// Sets the fraction: a decrease at once, an increase after a window.
    pub(super) fn apply_split(&mut self, now: Nanos, fraction: Fraction) {
        let first = !self.begun;
        self.begun |= fraction > Fraction::NONE;
        self.latest = fraction;
        self.advance(now);
        if fraction <= self.fraction || first {
            self.next = None;
            self.apply(now, fraction);
        } else {
            // The smallest fraction that was set within the window.
            let (smallest, at) = self.next.unwrap_or((fraction, now + self.window));
            self.next = Some((smallest.min(fraction), at));
        }
    }

    fn advance(&mut self, now: Nanos) {
        if let Some((fraction, at)) = self.next
            && at <= now
        {
            self.apply(now, fraction);
            self.next = (self.latest > fraction).then_some((self.latest, now + self.window));
        }
    }

    fn apply(&mut self, now: Nanos, fraction: Fraction) {
        if fraction != self.fraction {
            let remainder = remainder_refill(self.total, self.window, fraction);
            let first = self.fraction == Fraction::NONE;
            self.refilled_at = if first { 0 } else { self.remainder.convert(&remainder, self.refilled_at, now) };
            (self.fraction, self.remainder) = (fraction, remainder);
        }
    }

    /// Whole attempts per window.
    pub(super) fn whole_attempts(&mut self, now: Nanos) -> u32 {
        self.advance(now);
        u32::try_from(self.fraction.of_whole(self.total.into())).unwrap_or(u32::MAX)
    }

    /// Whether the remainder is a whole attempt now.
    pub(super) fn has_remainder(&mut self, now: Nanos) -> bool {
        self.advance(now);
        self.remainder.capacity > 0 && self.remainder.available_at(self.refilled_at, 1) <= now
    }

    /// Withdraws the remainder's attempt; false if there is none.
    pub(super) fn withdraw_remainder(&mut self, now: Nanos) -> bool {
        let available = self.has_remainder(now);
        if available {
            self.refilled_at = self.remainder.take(self.refilled_at, now, 1);
        } else {
            self.count_rejected();
        }
        available
    }

    pub(super) fn count_rejected(&mut self) {
        self.rejected += 1;
    }

    /// Fraction, in parts, that would have allowed all attempts since the last call; `None` if none was denied.
    pub(super) fn wanted(&mut self, now: Nanos) -> Option<u32> {
        let elapsed = (now - self.counted_since).max(Nanos::MILLI);
        let denied = std::mem::take(&mut self.rejected);
        self.counted_since = now;
        if denied == 0 || self.total == 0 {
            return None;
        }
        let parts = (u128::from(denied) * u128::from(self.window.0)).saturating_mul(1 << Fraction::BITS)
            / (u128::from(self.total) * u128::from(elapsed.0));
        Some(self.latest.parts().saturating_add(u32::try_from(parts).unwrap_or(u32::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::RetryBudget;
    use super::*;
    use proptest::prelude::*;

    const SECOND: Nanos = Nanos::SECOND;

    fn budget(minimum: u32) -> BudgetRule {
        BudgetRule { fraction: 0.0, min_per_window: minimum, window: SECOND }
    }

    fn with(minimum: u32, fraction: Fraction) -> RetryBudget {
        let mut retry_budget = RetryBudget::shared(budget(minimum));
        retry_budget.apply_split(Nanos::ZERO, fraction);
        retry_budget
    }

    /// Extra attempts withdrawn in these seconds under endless demand.
    fn spent(retry_budget: &mut RetryBudget, from_s: u64, seconds: u64) -> usize {
        (from_s * 100..(from_s + seconds) * 100)
            .filter(|tick| retry_budget.withdraw(Nanos::from_millis(tick * 10)))
            .count()
    }

    #[test]
    fn all_parts_of_a_minimum_add_up_to_it() {
        for (minimum, among, expected) in [(8, 4, 2.0), (1, 4, 0.25), (10, 4, 2.5), (3, 1, 3.0)] {
            let mut retry_budget = with(minimum, Fraction::even(among));
            let per_s = spent(&mut retry_budget, 0, 400) as f64 / 400.0;
            // A window that slides by intervals grants a little less.
            assert!(per_s <= expected + 0.01 && per_s >= expected * 0.95, "{minimum} among {among}: {per_s}");
        }
        assert_eq!(spent(&mut with(0, Fraction::WHOLE), 0, 10), 0);
    }

    #[test]
    fn calls_count_as_in_an_unshared_budget() {
        let mut retry_budget = RetryBudget::shared(BudgetRule { fraction: 0.5, min_per_window: 4, window: SECOND });
        retry_budget.apply_split(Nanos::ZERO, Fraction::even(2));
        (0..10).for_each(|_| retry_budget.deposit(Nanos::ZERO));
        assert_eq!(retry_budget.remaining(Nanos::ZERO), 7);
    }

    #[test]
    fn an_increase_counts_after_a_window() {
        let mut retry_budget = with(4, Fraction::even(4));
        assert_eq!(retry_budget.remaining(SECOND), 1);
        retry_budget.apply_split(SECOND, Fraction::WHOLE);
        retry_budget.apply_split(SECOND, Fraction::even(2));
        assert_eq!(retry_budget.remaining(Nanos(2 * SECOND.0 - 1)), 1);
        assert_eq!(retry_budget.remaining(Nanos(2 * SECOND.0)), 2);
        retry_budget.apply_split(Nanos(3 * SECOND.0), Fraction::NONE);
        assert_eq!(retry_budget.remaining(Nanos(3 * SECOND.0)), 0, "a decrease counts at once");
    }

    #[test]
    fn denied_attempts_raise_the_demand() {
        let mut retry_budget = with(4, Fraction::even(4));
        assert_eq!(retry_budget.wanted(Nanos::ZERO), None);
        assert!(retry_budget.withdraw(Nanos::ZERO));
        assert_eq!(retry_budget.wanted(SECOND), None, "none was denied");
        assert!(retry_budget.withdraw(Nanos(2 * SECOND.0)) && !retry_budget.withdraw(Nanos(2 * SECOND.0)));
        // One more than four, in one second.
        assert_eq!(retry_budget.wanted(Nanos(2 * SECOND.0)), Some(32_768));
    }

    proptest! {
        #[test]
        fn no_times_and_no_fractions_make_it_panic(
            share: f64, minimum: u32, window: u64, steps in prop::collection::vec((any::<u64>(), 0_u32..70_000), 1..40),
        ) {
            let mut retry_budget = RetryBudget::shared(BudgetRule { fraction: share, min_per_window: minimum, window: Nanos(window) });
            for (time, parts) in steps {
                retry_budget.apply_split(Nanos(time), Fraction::from_parts(parts));
                retry_budget.withdraw(Nanos(time / 2));
                retry_budget.wanted(Nanos(time / 3));
            }
        }
    }
}
