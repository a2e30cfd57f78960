//! The part of a budget's floor that is ours.
//!
//! Of whole extra attempts there are so many in each window, as if the budget had no more. What is left over of one comes
//! back evenly, and is an attempt when it has become one; there is one such attempt at most. So in a window all gates
//! together have the floor, and one for each gate whose part is no whole number.

use super::super::Nanos;
use super::super::limit::token_bucket::Refill;
use super::super::policy::BudgetRule;
use super::super::portion::Fraction;

/// Which part counts, and what is left over of it.
#[derive(Clone, Debug)]
pub(super) struct BudgetMinimum {
    total: u32,
    window: Nanos,
    fraction: Fraction,
    /// A larger part, and when it begins to count.
    next: Option<(Fraction, Nanos)>,
    /// What was said last.
    latest: Fraction,
    /// Something was ours before.
    begun: bool,
    remainder: Refill,
    /// When what is left over is a whole attempt, as the refill writes it.
    refilled_at: u128,
    /// Refused since the last count.
    rejected: u64,
    counted_since: Nanos,
}

/// What is left over of this part of so many: a token in the time that it takes to become one.
fn remainder_refill(of: u32, window: Nanos, portion: Fraction) -> Refill {
    let parts = (u64::from(of) * u64::from(portion.parts())) & ((1 << Fraction::BITS) - 1);
    let left = Fraction::from_parts(parts as u32);
    Refill { limit: 1, per: window, capacity: 1 }.fraction(left)
}

impl BudgetMinimum {
    /// Nothing is ours.
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

    pub(super) fn apply_split(&mut self, now: Nanos, portion: Fraction) {
        let begins = !self.begun;
        self.begun |= portion > Fraction::NONE;
        self.latest = portion;
        self.advance(now);
        if portion <= self.fraction || begins {
            self.next = None;
            self.apply(now, portion);
        } else {
            // The least of what was said within the window.
            let (least, at) = self.next.unwrap_or((portion, now + self.window));
            self.next = Some((least.min(portion), at));
        }
    }

    fn advance(&mut self, now: Nanos) {
        if let Some((portion, at)) = self.next
            && at <= now
        {
            self.apply(now, portion);
            self.next = (self.latest > portion).then_some((self.latest, now + self.window));
        }
    }

    fn apply(&mut self, now: Nanos, portion: Fraction) {
        if portion != self.fraction {
            let rest = remainder_refill(self.total, self.window, portion);
            let begins = self.fraction == Fraction::NONE;
            self.refilled_at = if begins { 0 } else { self.remainder.convert(&rest, self.refilled_at, now) };
            (self.fraction, self.remainder) = (portion, rest);
        }
    }

    /// Whole attempts in each window.
    pub(super) fn whole_attempts(&mut self, now: Nanos) -> u32 {
        self.advance(now);
        u32::try_from(self.fraction.of_whole(self.total.into())).unwrap_or(u32::MAX)
    }

    /// Whether what is left over is one by now.
    pub(super) fn has_remainder(&mut self, now: Nanos) -> bool {
        self.advance(now);
        self.remainder.capacity > 0 && self.remainder.available_at(self.refilled_at, 1) <= now
    }

    /// Takes it, if it is.
    pub(super) fn withdraw_remainder(&mut self, now: Nanos) -> bool {
        let is = self.has_remainder(now);
        if is {
            self.refilled_at = self.remainder.take(self.refilled_at, now, 1);
        } else {
            self.count_rejected();
        }
        is
    }

    pub(super) fn count_rejected(&mut self) {
        self.rejected += 1;
    }

    pub(super) fn wanted(&mut self, now: Nanos) -> Option<u32> {
        let elapsed = (now - self.counted_since).max(Nanos::MILLI);
        let short = std::mem::take(&mut self.rejected);
        self.counted_since = now;
        if short == 0 || self.total == 0 {
            return None;
        }
        let parts = (u128::from(short) * u128::from(self.window.0)).saturating_mul(1 << Fraction::BITS)
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

    fn budget(floor: u32) -> BudgetRule {
        BudgetRule { fraction: 0.0, min_per_window: floor, window: SECOND }
    }

    fn with(floor: u32, portion: Fraction) -> RetryBudget {
        let mut ledger = RetryBudget::shared(budget(floor));
        ledger.apply_split(Nanos::ZERO, portion);
        ledger
    }

    /// How many extra attempts are paid in these seconds, if ever more are asked for.
    fn spent(ledger: &mut RetryBudget, from_s: u64, seconds: u64) -> usize {
        (from_s * 100..(from_s + seconds) * 100).filter(|tick| ledger.withdraw(Nanos::from_millis(tick * 10))).count()
    }

    #[test]
    fn the_parts_of_a_floor_come_to_the_floor() {
        for (floor, among, expected) in [(8, 4, 2.0), (1, 4, 0.25), (10, 4, 2.5), (3, 1, 3.0)] {
            let mut ledger = with(floor, Fraction::even(among));
            let per_s = spent(&mut ledger, 0, 400) as f64 / 400.0;
            // A window that slides by stretches grants a little less.
            assert!(per_s <= expected + 0.01 && per_s >= expected * 0.95, "{floor} among {among}: {per_s}");
        }
        assert_eq!(spent(&mut with(0, Fraction::WHOLE), 0, 10), 0);
    }

    #[test]
    fn calls_are_counted_as_without_others() {
        let mut ledger = RetryBudget::shared(BudgetRule { fraction: 0.5, min_per_window: 4, window: SECOND });
        ledger.apply_split(Nanos::ZERO, Fraction::even(2));
        (0..10).for_each(|_| ledger.deposit(Nanos::ZERO));
        assert_eq!(ledger.remaining(Nanos::ZERO), 7);
    }

    #[test]
    fn a_larger_part_counts_after_a_window() {
        let mut ledger = with(4, Fraction::even(4));
        assert_eq!(ledger.remaining(SECOND), 1);
        ledger.apply_split(SECOND, Fraction::WHOLE);
        ledger.apply_split(SECOND, Fraction::even(2));
        assert_eq!(ledger.remaining(Nanos(2 * SECOND.0 - 1)), 1);
        assert_eq!(ledger.remaining(Nanos(2 * SECOND.0)), 2);
        ledger.apply_split(Nanos(3 * SECOND.0), Fraction::NONE);
        assert_eq!(ledger.remaining(Nanos(3 * SECOND.0)), 0, "a smaller one at once");
    }

    #[test]
    fn who_was_refused_wants_more() {
        let mut ledger = with(4, Fraction::even(4));
        assert_eq!(ledger.wanted(Nanos::ZERO), None);
        assert!(ledger.withdraw(Nanos::ZERO));
        assert_eq!(ledger.wanted(SECOND), None, "nothing was refused");
        assert!(ledger.withdraw(Nanos(2 * SECOND.0)) && !ledger.withdraw(Nanos(2 * SECOND.0)));
        // One more of four, in one second.
        assert_eq!(ledger.wanted(Nanos(2 * SECOND.0)), Some(32_768));
    }

    proptest! {
        #[test]
        fn no_instants_and_no_portions_upset_it(
            share: f64, floor: u32, window: u64, steps in prop::collection::vec((any::<u64>(), 0_u32..70_000), 1..40),
        ) {
            let mut ledger = RetryBudget::shared(BudgetRule { fraction: share, min_per_window: floor, window: Nanos(window) });
            for (time, parts) in steps {
                ledger.apply_split(Nanos(time), Fraction::from_parts(parts));
                ledger.withdraw(Nanos(time / 2));
                ledger.wanted(Nanos(time / 3));
            }
        }
    }
}
