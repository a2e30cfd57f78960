//! Evidence on objectives of a service without load: one request at a time.
//!
//! A service that misses an objective so misses it at any load, and a search for one that passes is in vain. Since the
//! finding ends the search, it takes more evidence than the outcome of a step: a host that stalls now and then must not
//! bring it about.

use super::tracker::ObjectiveTracker;
use crate::recorder::Interval;
use crate::slo::SloCriterion;

/// Log odds of a miss that end a search: 10,000 to 1.
const MISS_LOG_ODDS: f64 = 9.21;
/// Log odds below which a miss is not looked for any longer.
const MEET_LOG_ODDS: f64 = -1.0;
/// Minimum number of seconds, from which the variation between seconds is known.
const MIN_SECONDS: u64 = 3;

/// Evaluation of a service without load, second by second.
#[derive(Clone, Debug)]
pub struct IdleProbe {
    trackers: Vec<ObjectiveTracker>,
    seconds: u64,
    max_seconds: u64,
}

/// Finding on a service without load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleFinding {
    /// The objective of this index is missed.
    Misses(usize),
    /// No objective is missed for certain.
    Unsuspicious,
}

impl IdleProbe {
    /// Probe of these objectives, for at most this time in seconds.
    pub fn new(demands: &[SloCriterion], max_seconds: u64) -> Self {
        let trackers = demands.iter().copied().map(ObjectiveTracker::new).collect();
        Self { trackers, seconds: 0, max_seconds }
    }

    /// Adds a second; returns the finding as soon as there is one.
    pub fn add(&mut self, second: &Interval) -> Option<IdleFinding> {
        self.trackers.iter_mut().for_each(|tracker| tracker.add(second));
        self.seconds += 1;
        if self.seconds < MIN_SECONDS.min(self.max_seconds) {
            return None;
        }
        let evidence = self.trackers.iter().map(|tracker| tracker.evidence(0.0)).enumerate();
        let (worst, evidence) = evidence.reduce(|a, b| if b.1 > a.1 { b } else { a })?;
        match evidence {
            // Less time shows too little of the variation.
            log_odds if log_odds > MISS_LOG_ODDS && self.seconds >= MIN_SECONDS => Some(IdleFinding::Misses(worst)),
            log_odds if log_odds < MEET_LOG_ODDS || self.seconds >= self.max_seconds => Some(IdleFinding::Unsuspicious),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::slo::TimeKind;
    use weir_base::Nanos;

    /// Finding on seconds of requests, some of which take longer than an objective on the 99th percentile allows.
    fn found(seconds: &[(u64, u64)], max_seconds: u64) -> Option<IdleFinding> {
        let limit = Nanos::from_millis(100);
        let demand = SloCriterion::InTime { kind: TimeKind::Response, limit, allowed: 0.01 };
        let mut probe = IdleProbe::new(&[SloCriterion::Ok { allowed: 0.01 }, demand], max_seconds);
        seconds.iter().find_map(|(fast, slow)| {
            let mut second = Interval { ok: fast + slow, ..Interval::default() };
            (0..*fast).for_each(|_| second.response.record(Nanos::from_millis(20)));
            (0..*slow).for_each(|_| second.response.record(Nanos::from_millis(180)));
            probe.add(&second)
        })
    }

    #[test]
    fn a_service_that_misses_its_objective_when_idle_is_found_within_seconds() {
        assert_eq!(found(&[(7, 3); 10], 30), Some(IdleFinding::Misses(1)));
        // Each of few requests is late.
        assert_eq!(found(&[(0, 1); 10], 30), Some(IdleFinding::Misses(1)));
        assert_eq!(found(&[(1000, 0); 10], 30), Some(IdleFinding::Unsuspicious));
        assert_eq!(found(&[(0, 0); 30], 30), Some(IdleFinding::Unsuspicious), "nothing has ended");
    }

    proptest! {
        /// A host that stalls delays a single request each time, since there is no other one.
        #[test]
        fn stalls_of_the_host_are_no_miss(
            fast in prop::collection::vec(0..500_u64, 30),
            stalls in prop::collection::btree_set(0..30_usize, 0..4),
        ) {
            let seconds: Vec<(u64, u64)> =
                fast.iter().enumerate().map(|(at, fast)| (*fast, u64::from(stalls.contains(&at)))).collect();
            prop_assert_eq!(found(&seconds, 30), Some(IdleFinding::Unsuspicious));
        }

        /// Half of what is allowed, spread at random over the seconds.
        #[test]
        fn a_service_that_meets_its_objective_is_not_given_up(slow in prop::collection::vec(0..2_u64, 30)) {
            let seconds: Vec<(u64, u64)> = slow.iter().map(|slow| (100, *slow)).collect();
            prop_assert_eq!(found(&seconds, 30), Some(IdleFinding::Unsuspicious));
        }

        #[test]
        fn a_tenth_of_late_requests_is_a_miss_whatever_their_number(per_second in 1..40_u64) {
            let seconds = vec![(9 * per_second, per_second); 30];
            prop_assert_eq!(found(&seconds, 30), Some(IdleFinding::Misses(1)));
        }
    }
}
