//! How much of a stated limit is believed.

use super::Nanos;

/// What is refused did not fit: the limit may be no more than what was counted before it, and that is believed, but no
/// less than half (of a [high](HIGH_LIMIT) limit a quarter). If that is refused, too, somebody else spends from it, or it is much
/// lower than was stated. Then what went through between the two refusals, over the time between them, is believed, or
/// half where too little went through to tell.
///
/// What was refused is remembered. Belief grows half of the way there at a time, a quarter of what is missing beyond; a
/// refusal after that takes it back to what was good. Each refusal doubles the time without one that it takes to grow, and
/// each growth that was good halves it: a limit that was stated too high is run into a few times, and no more, and one that
/// was only busy is soon believed again. A refusal is a small part of what goes through a high limit, so it grows sooner.
#[derive(Clone, Copy, Debug)]
pub(super) struct LimitEstimate {
    stated: u64,
    /// What the server has said it is.
    reported: u64,
    current: u64,
    /// What was good before it grew; 0 if that is not known.
    last_good: u64,
    /// What was believed when something was refused last; no more than that is likely.
    last_rejected: u64,
    /// What the last refusal may take it down to.
    min: u64,
    /// How long it must have been good before the next growth; and at least.
    growth_interval: Nanos,
    min_growth_interval: Nanos,
    changed_at: Nanos,
}

/// Of a limit this high a rejection is a small part, and half of it is much.
pub(super) const HIGH_LIMIT: u64 = 200;
/// A limit that was believed too high is believed less for so many of its windows at first, or until so much went through.
const MAX_GROWTH_WINDOWS: u64 = 60;
const GROWTH_REQUESTS: u64 = 1200;

impl LimitEstimate {
    /// Of a limit per so long.
    pub(super) fn new(stated: u64, per: Nanos) -> Self {
        let windows = (GROWTH_REQUESTS / stated.max(1)).clamp(1, MAX_GROWTH_WINDOWS);
        let growth_interval = Nanos(per.max(Nanos::SECOND).0.saturating_mul(windows));
        Self {
            stated,
            reported: u64::MAX,
            current: stated,
            last_good: 0,
            last_rejected: u64::MAX,
            min: stated,
            growth_interval,
            min_growth_interval: growth_interval,
            changed_at: Nanos::ZERO,
        }
    }

    /// In [1, stated].
    pub(super) fn current(&self) -> u64 {
        self.current
    }

    /// The server has refused what would have been more than `counted`; `measured`: so much has gone through per window
    /// since the refusal before.
    pub(super) fn rejected(&mut self, now: Nanos, counted: u64, measured: Option<u64>) {
        let lower = (self.current - 1).max(1);
        let half = (self.current / if self.stated >= HIGH_LIMIT { 4 } else { 2 }).max(1);
        self.last_rejected = self.current;
        if self.last_good > 0 && self.last_good < self.current {
            (self.current, self.min) = (self.last_good, self.last_good);
        } else if let Some(measured) = measured {
            (self.current, self.min) = (measured.clamp(half, lower), half);
        } else if self.current < self.max() {
            let less = if self.stated >= HIGH_LIMIT { self.current - self.current / 10 } else { half };
            let lower = if self.min < self.current && self.stated < HIGH_LIMIT { self.min } else { less };
            (self.current, self.min) = (lower, lower);
        } else {
            (self.current, self.min) = (lower, half);
        }
        self.last_good = 0;
        self.changed_at = now;
        self.growth_interval = self.growth_interval + self.growth_interval;
        if measured.is_none() {
            self.also_rejected(now, counted);
        }
    }

    /// So was another that had been sent before the refusal at `first`.
    pub(super) fn also_rejected(&mut self, first: Nanos, counted: u64) {
        if self.changed_at == first {
            self.current = self.current.min(counted.max(self.min));
        }
    }

    /// The most that it can be: as stated, or as the server has said.
    pub(super) fn max(&self) -> u64 {
        self.stated.min(self.reported)
    }

    /// The server says what its limit is; true if that changes what is believed. What was refused stays refused: the
    /// limit may be right, and somebody else spend from it.
    pub(super) fn set_reported(&mut self, limit: u64) -> bool {
        let (before, old) = (self.current, self.max());
        self.reported = limit.max(1);
        let most = self.max();
        self.current = if self.current == old { most } else { self.current.min(most) };
        before != self.current
    }

    /// Time has passed; true if more is believed now.
    pub(super) fn advance(&mut self, now: Nanos) -> bool {
        let most = self.max();
        if self.current >= most || now - self.changed_at < self.growth_interval {
            return false;
        }
        if self.last_good > 0 && self.stated >= HIGH_LIMIT {
            self.growth_interval = Nanos(self.growth_interval.0 / 2).max(self.min_growth_interval);
        }
        self.last_good = self.current;
        let missing = self.last_rejected.min(most).saturating_sub(self.current);
        if self.last_rejected <= most && missing > 1 + self.current / 20 {
            self.current += missing / 2;
        } else {
            self.last_rejected = u64::MAX;
            self.current += (most - self.current).div_ceil(4);
        }
        self.changed_at = now;
        true
    }

    /// Takes up what another has learnt.
    pub(super) fn resume(&mut self, believed: u64, now: Nanos) {
        self.current = believed.clamp(1, self.stated);
        self.changed_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_half_of_what_was_stated_is_found_with_a_handful_of_refusals() {
        let (stated, real) = (20, 10);
        // What is refused comes last of a burst, as if it were the last of all.
        for counted in [|_| 10, |believed: u64| believed - 1] {
            let mut belief = LimitEstimate::new(stated, Nanos::SECOND);
            let (mut refusals, mut believed) = (0, 0);
            for s in 0..24 * 3600 {
                let now = Nanos::from_secs(s);
                belief.advance(now);
                if belief.current() > real {
                    belief.rejected(now, counted(belief.current()), None);
                    refusals += 1;
                }
                believed += belief.current();
            }
            assert!(refusals <= 12, "{refusals}");
            let mean = believed as f64 / (24.0 * 3600.0);
            assert!(mean > 9.4, "{mean}");
        }
    }

    #[test]
    fn an_accident_costs_little_and_a_second_one_half() {
        let mut belief = LimitEstimate::new(20, Nanos::SECOND);
        belief.rejected(Nanos::ZERO, 19, None);
        assert_eq!(belief.current(), 19);
        belief.rejected(Nanos::SECOND, 18, None);
        assert_eq!(belief.current(), 10);
        belief.rejected(Nanos::from_secs(2), 9, None);
        assert_eq!(belief.current(), 5);
    }

    #[test]
    fn a_burst_tells_how_much_lower_the_limit_is() {
        let mut belief = LimitEstimate::new(20, Nanos::SECOND);
        belief.rejected(Nanos::ZERO, 19, None);
        belief.also_rejected(Nanos::ZERO, 15);
        assert_eq!(belief.current(), 15);
        belief.also_rejected(Nanos::ZERO, 3);
        assert_eq!(belief.current(), 10, "half at most is lost at once");
        let grown = Nanos::from_secs(600);
        assert!(belief.advance(grown) && belief.current() == 15);
        belief.also_rejected(Nanos::ZERO, 3);
        assert_eq!(belief.current(), 15, "that was long ago");
    }

    #[test]
    fn a_limit_that_was_only_busy_is_believed_again() {
        let mut belief = LimitEstimate::new(100, Nanos::from_secs(5));
        belief.rejected(Nanos::ZERO, 0, None);
        assert_eq!(belief.current(), 50);
        let grown = (0..3600).filter(|s| belief.advance(Nanos::from_secs(*s))).count();
        assert!(belief.current() == 100 && grown > 5, "{}", belief.current());
    }

    #[test]
    fn one_refusal_of_a_high_limit_is_forgotten_within_some_windows() {
        let mut belief = LimitEstimate::new(2000, Nanos::from_secs(10));
        belief.rejected(Nanos::ZERO, 0, None);
        assert_eq!(belief.current(), 500);
        (0..=60).for_each(|s| _ = belief.advance(Nanos::from_secs(s)));
        assert!(belief.current() >= 1800, "{}", belief.current());
    }

    #[test]
    fn what_went_through_between_two_refusals_is_believed() {
        let mut belief = LimitEstimate::new(2000, Nanos::from_secs(10));
        belief.rejected(Nanos::ZERO, 1990, None);
        assert_eq!(belief.current(), 1990);
        belief.rejected(Nanos::SECOND, 1990, Some(980));
        assert_eq!(belief.current(), 980);
        let grown = (0..600).filter(|s| belief.advance(Nanos::from_secs(*s))).count();
        assert!(grown > 0 && belief.current() > 980);
    }

    #[test]
    fn what_the_server_says_counts_up_to_what_was_stated() {
        let mut belief = LimitEstimate::new(20, Nanos::SECOND);
        assert!(belief.set_reported(10) && belief.current() == 10);
        assert!(!belief.advance(Nanos::from_secs(3600)), "no more than it says");
        assert!(belief.set_reported(500) && belief.current() == 20);
        assert!(!belief.set_reported(0) || belief.current() == 1);
    }
}
