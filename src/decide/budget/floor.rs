//! The part of a budget's floor that is ours.
//!
//! Of whole extra attempts there are so many in each window, as if the budget had no more. What is left over of one comes
//! back evenly, and is an attempt when it has become one; there is one such attempt at most. So in a window all gates
//! together have the floor, and one for each gate whose part is no whole number.

use super::super::Nanos;
use super::super::limit::token_bucket::Refill;
use super::super::policy::Budget;
use super::super::portion::Portion;

/// Which part counts, and what is left over of it.
#[derive(Clone, Debug)]
pub(super) struct Floor {
    of: u32,
    window: Nanos,
    portion: Portion,
    /// A larger part, and when it begins to count.
    next: Option<(Portion, Nanos)>,
    /// What was said last.
    told: Portion,
    /// Something was ours before.
    begun: bool,
    rest: Refill,
    /// When what is left over is a whole attempt, as the refill writes it.
    full: u128,
    /// Refused since the last count.
    short: u64,
    since: Nanos,
}

/// What is left over of this part of so many: a token in the time that it takes to become one.
fn rest(of: u32, window: Nanos, portion: Portion) -> Refill {
    let parts = (u64::from(of) * u64::from(portion.parts())) & ((1 << Portion::BITS) - 1);
    let left = Portion::of(parts as u32);
    Refill { limit: 1, per: window, holds: 1 }.part(left)
}

impl Floor {
    /// Nothing is ours.
    pub(super) fn new(budget: Budget) -> Self {
        let (of, window) = (budget.floor, budget.window.max(Nanos(1)));
        Self {
            of,
            window,
            portion: Portion::NONE,
            next: None,
            told: Portion::NONE,
            begun: false,
            rest: rest(of, window, Portion::NONE),
            full: 0,
            short: 0,
            since: Nanos::ZERO,
        }
    }

    pub(super) fn follow(&mut self, now: Nanos, portion: Portion) {
        let begins = !self.begun;
        self.begun |= portion > Portion::NONE;
        self.told = portion;
        self.advance(now);
        if portion <= self.portion || begins {
            self.next = None;
            self.counts(now, portion);
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
            self.counts(now, portion);
            self.next = (self.told > portion).then_some((self.told, now + self.window));
        }
    }

    fn counts(&mut self, now: Nanos, portion: Portion) {
        if portion != self.portion {
            let rest = rest(self.of, self.window, portion);
            let begins = self.portion == Portion::NONE;
            self.full = if begins { 0 } else { self.rest.becomes(&rest, self.full, now) };
            (self.portion, self.rest) = (portion, rest);
        }
    }

    /// Whole attempts in each window.
    pub(super) fn whole(&mut self, now: Nanos) -> u32 {
        self.advance(now);
        u32::try_from(self.portion.of_whole(self.of.into())).unwrap_or(u32::MAX)
    }

    /// Whether what is left over is one by now.
    pub(super) fn has_rest(&mut self, now: Nanos) -> bool {
        self.advance(now);
        self.rest.holds > 0 && self.rest.room(self.full, 1) <= now
    }

    /// Takes it, if it is.
    pub(super) fn spend_rest(&mut self, now: Nanos) -> bool {
        let is = self.has_rest(now);
        if is {
            self.full = self.rest.take(self.full, now, 1);
        } else {
            self.was_short();
        }
        is
    }

    pub(super) fn was_short(&mut self) {
        self.short += 1;
    }

    pub(super) fn wanted(&mut self, now: Nanos) -> Option<u32> {
        let elapsed = (now - self.since).max(Nanos::MILLI);
        let short = std::mem::take(&mut self.short);
        self.since = now;
        if short == 0 || self.of == 0 {
            return None;
        }
        let parts = (u128::from(short) * u128::from(self.window.0)).saturating_mul(1 << Portion::BITS)
            / (u128::from(self.of) * u128::from(elapsed.0));
        Some(self.told.parts().saturating_add(u32::try_from(parts).unwrap_or(u32::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ledger;
    use super::*;
    use proptest::prelude::*;

    const SECOND: Nanos = Nanos::SECOND;

    fn budget(floor: u32) -> Budget {
        Budget { share: 0.0, floor, window: SECOND }
    }

    fn with(floor: u32, portion: Portion) -> Ledger {
        let mut ledger = Ledger::shared(budget(floor));
        ledger.follow(Nanos::ZERO, portion);
        ledger
    }

    /// How many extra attempts are paid in these seconds, if ever more are asked for.
    fn spent(ledger: &mut Ledger, from_s: u64, seconds: u64) -> usize {
        (from_s * 100..(from_s + seconds) * 100).filter(|tick| ledger.spend(Nanos::from_millis(tick * 10))).count()
    }

    #[test]
    fn the_parts_of_a_floor_come_to_the_floor() {
        for (floor, among, expected) in [(8, 4, 2.0), (1, 4, 0.25), (10, 4, 2.5), (3, 1, 3.0)] {
            let mut ledger = with(floor, Portion::even(among));
            let per_s = spent(&mut ledger, 0, 400) as f64 / 400.0;
            // A window that slides by stretches grants a little less.
            assert!(per_s <= expected + 0.01 && per_s >= expected * 0.95, "{floor} among {among}: {per_s}");
        }
        assert_eq!(spent(&mut with(0, Portion::WHOLE), 0, 10), 0);
    }

    #[test]
    fn calls_are_counted_as_without_others() {
        let mut ledger = Ledger::shared(Budget { share: 0.5, floor: 4, window: SECOND });
        ledger.follow(Nanos::ZERO, Portion::even(2));
        (0..10).for_each(|_| ledger.call(Nanos::ZERO));
        assert_eq!(ledger.left(Nanos::ZERO), 7);
    }

    #[test]
    fn a_larger_part_counts_after_a_window() {
        let mut ledger = with(4, Portion::even(4));
        assert_eq!(ledger.left(SECOND), 1);
        ledger.follow(SECOND, Portion::WHOLE);
        ledger.follow(SECOND, Portion::even(2));
        assert_eq!(ledger.left(Nanos(2 * SECOND.0 - 1)), 1);
        assert_eq!(ledger.left(Nanos(2 * SECOND.0)), 2);
        ledger.follow(Nanos(3 * SECOND.0), Portion::NONE);
        assert_eq!(ledger.left(Nanos(3 * SECOND.0)), 0, "a smaller one at once");
    }

    #[test]
    fn who_was_refused_wants_more() {
        let mut ledger = with(4, Portion::even(4));
        assert_eq!(ledger.wanted(Nanos::ZERO), None);
        assert!(ledger.spend(Nanos::ZERO));
        assert_eq!(ledger.wanted(SECOND), None, "nothing was refused");
        assert!(ledger.spend(Nanos(2 * SECOND.0)) && !ledger.spend(Nanos(2 * SECOND.0)));
        // One more of four, in one second.
        assert_eq!(ledger.wanted(Nanos(2 * SECOND.0)), Some(32_768));
    }

    proptest! {
        #[test]
        fn no_instants_and_no_portions_upset_it(
            share: f64, floor: u32, window: u64, steps in prop::collection::vec((any::<u64>(), 0_u32..70_000), 1..40),
        ) {
            let mut ledger = Ledger::shared(Budget { share, floor, window: Nanos(window) });
            for (time, parts) in steps {
                ledger.follow(Nanos(time), Portion::of(parts));
                ledger.spend(Nanos(time / 2));
                ledger.wanted(Nanos(time / 3));
            }
        }
    }
}
