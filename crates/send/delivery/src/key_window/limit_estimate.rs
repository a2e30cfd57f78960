//! The estimate of a limit: the stated value, lowered by rejections and raised again without them.

use serde::{Deserialize, Serialize};

use super::Nanos;

/// Estimate of a limit, in [1, stated].
///
/// A rejection lowers it to what was counted before the rejected request, but to no less than half (a quarter of a
/// [high](HIGH_LIMIT) limit). If a request is rejected again at that, another client uses the limit too, or it is far
/// below the stated one: then the estimate is what went through between the two rejections over the time between them,
/// or half if too little went through to measure.
///
/// The rejected value is remembered. Each growth goes half of the way there, and beyond it a quarter of the way to the
/// maximum; a rejection after a growth restores the last good value. Each rejection doubles the time without one before
/// the next growth, each good growth halves it. So a limit that was stated too high is exceeded a few times only, and
/// one that was merely busy is soon used fully again. A rejection is a small part of what a high limit lets through, so
/// its estimate grows sooner.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct LimitEstimate {
    stated: u64,
    /// Limit that the server reported last; `u64::MAX`: none.
    reported: u64,
    current: u64,
    /// Value before the last growth; 0: unknown.
    last_good: u64,
    /// Value at the last rejection; the limit is probably lower.
    last_rejected: u64,
    /// Lower bound for rejections of the same event.
    min: u64,
    /// Time without a rejection before the next growth, and its minimum.
    growth_interval: Nanos,
    min_growth_interval: Nanos,
    changed_at: Nanos,
}

/// Limit from which one rejection is a small part, and halving is too much.
pub(super) const HIGH_LIMIT: u64 = 200;
/// Time before the first growth: this many requests at the limit, in windows, at most 60.
const MAX_GROWTH_WINDOWS: u64 = 60;
const GROWTH_REQUESTS: u64 = 1200;

impl LimitEstimate {
    /// Estimate equal to the stated limit per `per`.
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

    /// Whether it is one of this limit.
    pub(super) fn is_valid(&self, stated: u64) -> bool {
        self.stated == stated && (1..=stated).contains(&self.current) && self.reported > 0
    }

    /// The estimate, in [1, stated].
    pub(super) fn current(&self) -> u64 {
        self.current
    }

    /// Takes in a rejection of a request that would have exceeded `counted`; `measured`: amount that went through per
    /// window since the previous rejection.
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

    /// Takes in another rejection of the event that began at `first`.
    pub(super) fn also_rejected(&mut self, first: Nanos, counted: u64) {
        if self.changed_at == first {
            self.current = self.current.min(counted.max(self.min));
        }
    }

    /// Upper bound: the stated limit, or the reported one if lower.
    pub(super) fn max(&self) -> u64 {
        self.stated.min(self.reported)
    }

    /// Takes in the limit that the server reports; true if the estimate changed. Earlier rejections still count: the
    /// limit may be right while another client uses it too.
    pub(super) fn set_reported(&mut self, limit: u64) -> bool {
        let (before, old_max) = (self.current, self.max());
        self.reported = limit.max(1);
        let max = self.max();
        self.current = if self.current == old_max { max } else { self.current.min(max) };
        before != self.current
    }

    /// Moves time forward; true if the estimate grew.
    pub(super) fn advance(&mut self, now: Nanos) -> bool {
        let max = self.max();
        if self.current >= max || now - self.changed_at < self.growth_interval {
            return false;
        }
        if self.last_good > 0 && self.stated >= HIGH_LIMIT {
            self.growth_interval = Nanos(self.growth_interval.0 / 2).max(self.min_growth_interval);
        }
        self.last_good = self.current;
        let missing = self.last_rejected.min(max).saturating_sub(self.current);
        if self.last_rejected <= max && missing > 1 + self.current / 20 {
            self.current += missing / 2;
        } else {
            self.last_rejected = u64::MAX;
            self.current += (max - self.current).div_ceil(4);
        }
        self.changed_at = now;
        true
    }

    /// Continues with the estimate of a previous owner.
    pub(super) fn resume(&mut self, estimated: u64, now: Nanos) {
        self.current = estimated.clamp(1, self.stated);
        self.changed_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_stated_limit_is_found_with_a_few_rejections() {
        let (stated, real) = (20, 10);
        // The rejected request is the last of a burst, counted by the server or by the estimate.
        for counted in [|_| 10, |estimated: u64| estimated - 1] {
            let mut estimate = LimitEstimate::new(stated, Nanos::SECOND);
            let (mut rejections, mut estimated) = (0, 0);
            for s in 0..24 * 3600 {
                let now = Nanos::from_secs(s);
                estimate.advance(now);
                if estimate.current() > real {
                    estimate.rejected(now, counted(estimate.current()), None);
                    rejections += 1;
                }
                estimated += estimate.current();
            }
            assert!(rejections <= 12, "{rejections}");
            let mean = estimated as f64 / (24.0 * 3600.0);
            assert!(mean > 9.4, "{mean}");
        }
    }

    #[test]
    fn a_first_rejection_costs_little_and_a_second_one_half() {
        let mut estimate = LimitEstimate::new(20, Nanos::SECOND);
        estimate.rejected(Nanos::ZERO, 19, None);
        assert_eq!(estimate.current(), 19);
        estimate.rejected(Nanos::SECOND, 18, None);
        assert_eq!(estimate.current(), 10);
        estimate.rejected(Nanos::from_secs(2), 9, None);
        assert_eq!(estimate.current(), 5);
    }

    #[test]
    fn rejections_of_a_burst_lower_the_estimate_together() {
        let mut estimate = LimitEstimate::new(20, Nanos::SECOND);
        estimate.rejected(Nanos::ZERO, 19, None);
        estimate.also_rejected(Nanos::ZERO, 15);
        assert_eq!(estimate.current(), 15);
        estimate.also_rejected(Nanos::ZERO, 3);
        assert_eq!(estimate.current(), 10, "at most half is lost at once");
        let grown = Nanos::from_secs(600);
        assert!(estimate.advance(grown) && estimate.current() == 15);
        estimate.also_rejected(Nanos::ZERO, 3);
        assert_eq!(estimate.current(), 15, "another event");
    }

    #[test]
    fn a_limit_that_was_only_busy_is_used_fully_again() {
        let mut estimate = LimitEstimate::new(100, Nanos::from_secs(5));
        estimate.rejected(Nanos::ZERO, 0, None);
        assert_eq!(estimate.current(), 50);
        let grown = (0..3600).filter(|s| estimate.advance(Nanos::from_secs(*s))).count();
        assert!(estimate.current() == 100 && grown > 5, "{}", estimate.current());
    }

    #[test]
    fn one_rejection_of_a_high_limit_is_forgotten_within_some_windows() {
        let mut estimate = LimitEstimate::new(2000, Nanos::from_secs(10));
        estimate.rejected(Nanos::ZERO, 0, None);
        assert_eq!(estimate.current(), 500);
        (0..=60).for_each(|s| _ = estimate.advance(Nanos::from_secs(s)));
        assert!(estimate.current() >= 1800, "{}", estimate.current());
    }

    #[test]
    fn the_estimate_is_what_went_through_between_two_rejections() {
        let mut estimate = LimitEstimate::new(2000, Nanos::from_secs(10));
        estimate.rejected(Nanos::ZERO, 1990, None);
        assert_eq!(estimate.current(), 1990);
        estimate.rejected(Nanos::SECOND, 1990, Some(980));
        assert_eq!(estimate.current(), 980);
        let grown = (0..600).filter(|s| estimate.advance(Nanos::from_secs(*s))).count();
        assert!(grown > 0 && estimate.current() > 980);
    }

    #[test]
    fn a_reported_limit_counts_up_to_the_stated_one() {
        let mut estimate = LimitEstimate::new(20, Nanos::SECOND);
        assert!(estimate.set_reported(10) && estimate.current() == 10);
        assert!(!estimate.advance(Nanos::from_secs(3600)), "at most the reported limit");
        assert!(estimate.set_reported(500) && estimate.current() == 20);
        assert!(estimate.set_reported(0) && estimate.current() == 1, "one at least");
    }
}
