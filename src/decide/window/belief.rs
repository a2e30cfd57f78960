//! How much of a stated limit is believed.

use super::Nanos;

/// What is refused did not fit: the limit may be no more than what was counted before it, and that is believed, but no
/// less than half. If that is refused, too, half of it is believed: somebody else spends from it, or it is much lower than
/// was stated. It grows back a quarter of what is missing at a time; a refusal after that takes it back to what was good.
/// Each refusal doubles the time without one that it takes to grow: a limit that was stated too high is run into a few
/// times, and no more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Belief {
    stated: u64,
    /// What the server has said it is.
    told: u64,
    now: u64,
    /// What was good before it grew; 0 if that is not known.
    good: u64,
    /// What the last refusal may take it down to.
    floor: u64,
    /// How long it must have been good before the next growth.
    patience: Nanos,
    since: Nanos,
}

impl Belief {
    /// `patience` is for the first time.
    pub(super) fn new(stated: u64, patience: Nanos) -> Self {
        Self { stated, told: u64::MAX, now: stated, good: 0, floor: stated, patience, since: Nanos::ZERO }
    }

    /// In [1, stated].
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// The server has refused what would have been more than `counted`.
    pub(super) fn refused(&mut self, now: Nanos, counted: u64) {
        let half = (self.now / 2).max(1);
        if self.good > 0 && self.good < self.now {
            (self.now, self.floor) = (self.good, self.good);
        } else if self.now < self.most() {
            let lower = if self.floor < self.now { self.floor } else { half };
            (self.now, self.floor) = (lower, lower);
        } else {
            (self.now, self.floor) = ((self.now - 1).max(1), half);
        }
        self.good = 0;
        self.since = now;
        self.patience = self.patience + self.patience;
        self.refused_too(now, counted);
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
        self.good = self.now;
        self.now += (most - self.now).div_ceil(4);
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
            let mut belief = Belief::new(stated, Nanos::from_secs(60));
            let (mut refusals, mut believed) = (0, 0);
            for s in 0..24 * 3600 {
                let now = Nanos::from_secs(s);
                belief.advance(now);
                if belief.now() > real {
                    belief.refused(now, counted(belief.now()));
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
        let mut belief = Belief::new(20, Nanos::from_secs(60));
        belief.refused(Nanos::ZERO, 19);
        assert_eq!(belief.now(), 19);
        belief.refused(Nanos::SECOND, 18);
        assert_eq!(belief.now(), 10);
        belief.refused(Nanos::from_secs(2), 9);
        assert_eq!(belief.now(), 5);
    }

    #[test]
    fn a_burst_tells_how_much_lower_the_limit_is() {
        let mut belief = Belief::new(20, Nanos::from_secs(60));
        belief.refused(Nanos::ZERO, 19);
        belief.refused_too(Nanos::ZERO, 15);
        assert_eq!(belief.now(), 15);
        belief.refused_too(Nanos::ZERO, 3);
        assert_eq!(belief.now(), 10, "half at most is lost at once");
        let grown = Nanos::from_secs(600);
        assert!(belief.advance(grown) && belief.now() == 13);
        belief.refused_too(Nanos::ZERO, 3);
        assert_eq!(belief.now(), 13, "that was long ago");
    }

    #[test]
    fn a_limit_that_was_only_busy_is_believed_again() {
        let mut belief = Belief::new(100, Nanos::from_secs(60));
        belief.refused(Nanos::ZERO, 0);
        assert_eq!(belief.now(), 50);
        let grown = (0..3600).filter(|s| belief.advance(Nanos::from_secs(*s))).count();
        assert!(belief.now() == 100 && grown > 5, "{}", belief.now());
    }

    #[test]
    fn what_the_server_says_counts_up_to_what_was_stated() {
        let mut belief = Belief::new(20, Nanos::from_secs(60));
        assert!(belief.told(10) && belief.now() == 10);
        assert!(!belief.advance(Nanos::from_secs(3600)), "no more than it says");
        assert!(belief.told(500) && belief.now() == 20);
        assert!(!belief.told(0) || belief.now() == 1);
    }
}
