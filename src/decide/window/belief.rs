//! How much of a stated limit is believed.

use super::Nanos;

/// What is refused did not fit: the limit may be no more than what was counted before it, and that is believed, but no
/// less than half (of a [high](HIGH) limit a quarter). If that is refused, too, somebody else spends from it, or it is much
/// lower than was stated. Then what went through between the two refusals, over the time between them, is believed, or
/// half where too little went through to tell.
///
/// What was refused is remembered. Belief grows half of the way there at a time, a quarter of what is missing beyond; a
/// refusal after that takes it back to what was good. Each refusal doubles the time without one that it takes to grow, and
/// each growth that was good halves it: a limit that was stated too high is run into a few times, and no more, and one that
/// was only busy is soon believed again. A refusal is a small part of what goes through a high limit, so it grows sooner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Belief {
    stated: u64,
    /// What the server has said it is.
    told: u64,
    now: u64,
    /// What was good before it grew; 0 if that is not known.
    good: u64,
    /// What was believed when something was refused last; no more than that is likely.
    bad: u64,
    /// What the last refusal may take it down to.
    floor: u64,
    /// How long it must have been good before the next growth; and at least.
    patience: Nanos,
    shortest: Nanos,
    since: Nanos,
}

/// Of a limit this high a rejection is a small part, and half of it is much.
pub(super) const HIGH: u64 = 200;
/// A limit that was believed too high is believed less for so many of its windows at first, or until so much went through.
const WINDOWS: u64 = 60;
const REQUESTS: u64 = 1200;

impl Belief {
    /// Of a limit per so long.
    pub(super) fn new(stated: u64, per: Nanos) -> Self {
        let windows = (REQUESTS / stated.max(1)).clamp(1, WINDOWS);
        let patience = Nanos(per.max(Nanos::SECOND).0.saturating_mul(windows));
        Self {
            stated,
            told: u64::MAX,
            now: stated,
            good: 0,
            bad: u64::MAX,
            floor: stated,
            patience,
            shortest: patience,
            since: Nanos::ZERO,
        }
    }

    /// In [1, stated].
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// The server has refused what would have been more than `counted`; `measured`: so much has gone through per window
    /// since the refusal before.
    pub(super) fn refused(&mut self, now: Nanos, counted: u64, measured: Option<u64>) {
        let lower = (self.now - 1).max(1);
        let half = (self.now / if self.stated >= HIGH { 4 } else { 2 }).max(1);
        self.bad = self.now;
        if self.good > 0 && self.good < self.now {
            (self.now, self.floor) = (self.good, self.good);
        } else if let Some(measured) = measured {
            (self.now, self.floor) = (measured.clamp(half, lower), half);
        } else if self.now < self.most() {
            let less = if self.stated >= HIGH { self.now - self.now / 10 } else { half };
            let lower = if self.floor < self.now && self.stated < HIGH { self.floor } else { less };
            (self.now, self.floor) = (lower, lower);
        } else {
            (self.now, self.floor) = (lower, half);
        }
        self.good = 0;
        self.since = now;
        self.patience = self.patience + self.patience;
        if measured.is_none() {
            self.refused_too(now, counted);
        }
    }

    /// So was another that had been sent before the refusal at `first`.
    pub(super) fn refused_too(&mut self, first: Nanos, counted: u64) {
        if self.since == first {
            self.now = self.now.min(counted.max(self.floor));
        }
    }

    /// The most that it can be: as stated, or as the server has said.
    pub(super) fn most(&self) -> u64 {
        self.stated.min(self.told)
    }

    /// The server says what its limit is; true if that changes what is believed. What was refused stays refused: the
    /// limit may be right, and somebody else spend from it.
    pub(super) fn told(&mut self, limit: u64) -> bool {
        let (before, old) = (self.now, self.most());
        self.told = limit.max(1);
        let most = self.most();
        self.now = if self.now == old { most } else { self.now.min(most) };
        before != self.now
    }

    /// Time has passed; true if more is believed now.
    pub(super) fn advance(&mut self, now: Nanos) -> bool {
        let most = self.most();
        if self.now >= most || now - self.since < self.patience {
            return false;
        }
        if self.good > 0 && self.stated >= HIGH {
            self.patience = Nanos(self.patience.0 / 2).max(self.shortest);
        }
        self.good = self.now;
        let missing = self.bad.min(most).saturating_sub(self.now);
        if self.bad <= most && missing > 1 + self.now / 20 {
            self.now += missing / 2;
        } else {
            self.bad = u64::MAX;
            self.now += (most - self.now).div_ceil(4);
        }
        self.since = now;
        true
    }

    /// Takes up what another has learnt.
    pub(super) fn resume(&mut self, believed: u64, now: Nanos) {
        self.now = believed.clamp(1, self.stated);
        self.since = now;
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
            let mut belief = Belief::new(stated, Nanos::SECOND);
            let (mut refusals, mut believed) = (0, 0);
            for s in 0..24 * 3600 {
                let now = Nanos::from_secs(s);
                belief.advance(now);
                if belief.now() > real {
                    belief.refused(now, counted(belief.now()), None);
                    refusals += 1;
                }
                believed += belief.now();
            }
            assert!(refusals <= 12, "{refusals}");
            let mean = believed as f64 / (24.0 * 3600.0);
            assert!(mean > 9.4, "{mean}");
        }
    }

    #[test]
    fn an_accident_costs_little_and_a_second_one_half() {
        let mut belief = Belief::new(20, Nanos::SECOND);
        belief.refused(Nanos::ZERO, 19, None);
        assert_eq!(belief.now(), 19);
        belief.refused(Nanos::SECOND, 18, None);
        assert_eq!(belief.now(), 10);
        belief.refused(Nanos::from_secs(2), 9, None);
        assert_eq!(belief.now(), 5);
    }

    #[test]
    fn a_burst_tells_how_much_lower_the_limit_is() {
        let mut belief = Belief::new(20, Nanos::SECOND);
        belief.refused(Nanos::ZERO, 19, None);
        belief.refused_too(Nanos::ZERO, 15);
        assert_eq!(belief.now(), 15);
        belief.refused_too(Nanos::ZERO, 3);
        assert_eq!(belief.now(), 10, "half at most is lost at once");
        let grown = Nanos::from_secs(600);
        assert!(belief.advance(grown) && belief.now() == 15);
        belief.refused_too(Nanos::ZERO, 3);
        assert_eq!(belief.now(), 15, "that was long ago");
    }

    #[test]
    fn a_limit_that_was_only_busy_is_believed_again() {
        let mut belief = Belief::new(100, Nanos::from_secs(5));
        belief.refused(Nanos::ZERO, 0, None);
        assert_eq!(belief.now(), 50);
        let grown = (0..3600).filter(|s| belief.advance(Nanos::from_secs(*s))).count();
        assert!(belief.now() == 100 && grown > 5, "{}", belief.now());
    }

    #[test]
    fn one_refusal_of_a_high_limit_is_forgotten_within_some_windows() {
        let mut belief = Belief::new(2000, Nanos::from_secs(10));
        belief.refused(Nanos::ZERO, 0, None);
        assert_eq!(belief.now(), 500);
        (0..=60).for_each(|s| _ = belief.advance(Nanos::from_secs(s)));
        assert!(belief.now() >= 1800, "{}", belief.now());
    }

    #[test]
    fn what_went_through_between_two_refusals_is_believed() {
        let mut belief = Belief::new(2000, Nanos::from_secs(10));
        belief.refused(Nanos::ZERO, 1990, None);
        assert_eq!(belief.now(), 1990);
        belief.refused(Nanos::SECOND, 1990, Some(980));
        assert_eq!(belief.now(), 980);
        let grown = (0..600).filter(|s| belief.advance(Nanos::from_secs(*s))).count();
        assert!(grown > 0 && belief.now() > 980);
    }

    #[test]
    fn what_the_server_says_counts_up_to_what_was_stated() {
        let mut belief = Belief::new(20, Nanos::SECOND);
        assert!(belief.told(10) && belief.now() == 10);
        assert!(!belief.advance(Nanos::from_secs(3600)), "no more than it says");
        assert!(belief.told(500) && belief.now() == 20);
        assert!(!belief.told(0) || belief.now() == 1);
    }
}
