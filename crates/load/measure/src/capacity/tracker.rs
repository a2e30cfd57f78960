//! Evidence on one objective in a step.
//!
//! Times are those of successes; failures are judged by an objective on errors. Without a success all objectives on
//! times are missed.
//!
//! A fraction of requests ("at most 1% later than 200 ms") is tested by Wald's sequential probability ratio test,
//! between half and twice the odds that the objective allows. Requests of a second are not independent, so the ratio is
//! divided by the dispersion of the seconds relative to independent requests.

use crate::recorder::Interval;
use crate::slo::SloCriterion;
use weir_base::Nanos;

/// Log odds of a decision: 99 to 1.
pub const CLEAR_LOG_ODDS: f64 = 4.595;

/// Evidence on one objective.
#[derive(Clone, Debug)]
pub struct ObjectiveTracker {
    criterion: SloCriterion,
    /// For each second: violations, and their total.
    seconds: Vec<(f64, f64)>,
    /// Requests that ended, successes and failures.
    ended: u64,
}

impl ObjectiveTracker {
    /// Tracker without evidence.
    pub fn new(criterion: SloCriterion) -> Self {
        Self { criterion, seconds: Vec::new(), ended: 0 }
    }

    /// Adds a second.
    pub fn add(&mut self, second: &Interval) {
        let ended = second.ok + second.failed;
        self.ended += ended;
        let seen = match self.criterion {
            SloCriterion::InTime { kind, limit, .. } => kind.times_in(second).map_or((0, 0), |times| {
                let all = times.count();
                (all - times.count_between(Nanos::ZERO, limit).min(all), all)
            }),
            SloCriterion::Ok { .. } => (second.failed, ended),
            SloCriterion::Goodput { .. } => (ended - second.good_llm_requests().min(ended), ended),
            SloCriterion::Mean { kind, .. } => {
                let times = kind.times_in(second).map_or((0.0, 0), |times| (times.sum_ns(), times.count()));
                return self.seconds.push((times.0, times.1 as f64));
            }
        };
        self.seconds.push((seen.0 as f64, seen.1 as f64));
    }

    /// Evidence as log odds: above 0 it fails, below 0 it passes. `more` is a number of open requests that count as
    /// violations.
    pub fn evidence(&self, more: f64) -> f64 {
        match self.criterion {
            // Without a success, times are missed.
            SloCriterion::InTime { .. } | SloCriterion::Mean { .. } if self.ended > 0 && self.sums().1 == 0.0 => {
                2.0 * CLEAR_LOG_ODDS
            }
            SloCriterion::InTime { kind, allowed, .. } if kind.is_of_whole_responses() => {
                self.fraction_evidence(allowed, more)
            }
            SloCriterion::InTime { allowed, .. } | SloCriterion::Ok { allowed } => self.fraction_evidence(allowed, 0.0),
            SloCriterion::Goodput { allowed } => self.fraction_evidence(allowed, more),
            SloCriterion::Mean { limit, .. } => self.mean_evidence(limit),
        }
    }

    /// Whether the objective is met over all seconds together.
    pub fn is_met(&self) -> bool {
        let (sum, all) = self.sums();
        match self.criterion {
            _ if all == 0.0 => false,
            SloCriterion::InTime { allowed, .. } | SloCriterion::Ok { allowed } | SloCriterion::Goodput { allowed } => {
                sum / all <= allowed
            }
            SloCriterion::Mean { limit, .. } => sum / all < limit.0 as f64,
        }
    }

    fn sums(&self) -> (f64, f64) {
        self.seconds.iter().fold((0.0, 0.0), |(sum, all), (one, of)| (sum + one, all + of))
    }

    fn fraction_evidence(&self, allowed: f64, more: f64) -> f64 {
        let (bad, all) = self.sums();
        let (bad, all) = (bad + more, all + more);
        if all == 0.0 {
            return 0.0;
        }
        // One in 10,000 where none is allowed: a step is finite.
        let odds = allowed.clamp(1e-4, 0.9999) / (1.0 - allowed.clamp(1e-4, 0.9999));
        let fraction = |odds: f64| odds / (1.0 + odds);
        let (good, poor) = (fraction(odds / 2.0), fraction(odds * 2.0));
        let ratio = bad * (poor / good).ln() + (all - bad) * ((1.0 - poor) / (1.0 - good)).ln();
        ratio / self.dispersion()
    }

    /// Dispersion of the seconds relative to independent requests; at least 1.
    fn dispersion(&self) -> f64 {
        let seconds = self.seconds.iter().filter(|(_, all)| *all > 0.0);
        let (bad, all) = self.sums();
        let fraction = ((bad + 0.5) / (all + 1.0)).clamp(1e-9, 1.0 - 1e-9);
        let squares: f64 = seconds
            .clone()
            .map(|(bad, all)| (bad - all * fraction).powi(2) / (all * fraction * (1.0 - fraction)))
            .sum();
        (squares / (seconds.count() as f64 - 1.0).max(1.0)).max(1.0)
    }

    /// Distance of the mean from the limit in its standard errors, as log odds.
    fn mean_evidence(&self, limit: Nanos) -> f64 {
        let seconds: Vec<(f64, f64)> = self.seconds.iter().copied().filter(|(_, all)| *all > 0.0).collect();
        let count = seconds.len() as f64;
        let (sum, all) = self.sums();
        if count < 3.0 {
            return 0.0;
        }
        let mean = sum / all;
        let squares: f64 = seconds.iter().map(|(sum, of)| (sum - mean * of).powi(2)).sum();
        // Standard error of a ratio of sums, with a batch per second.
        let error = (squares / (count * (count - 1.0))).sqrt() / (all / count);
        // The logistic curve approximates the normal one at 1.7 times the distance.
        1.7 * (mean - limit.0 as f64) / error.max(mean * 1e-6)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use super::*;
    use crate::slo::{Slo, TimeKind};
    use crate::stream_interval::StreamInterval;

    /// Three seconds, each with successes after `good_ms` and failures after 1 ms.
    fn seen(demand: SloCriterion, successes: u64, good_ms: u64, failures: u64) -> ObjectiveTracker {
        let mut tracker = ObjectiveTracker::new(demand);
        for _ in 0..3 {
            let mut second = Interval { ok: successes, failed: failures, ..Interval::default() };
            (0..successes).for_each(|_| second.response.record(Nanos::from_millis(good_ms)));
            (0..failures).for_each(|_| second.failed_response.record(Nanos::MILLI));
            tracker.add(&second);
        }
        tracker
    }

    const IN_TIME: SloCriterion =
        SloCriterion::InTime { kind: TimeKind::Response, limit: Nanos::from_millis(200), allowed: 0.5 };
    const MEAN: SloCriterion = SloCriterion::Mean { kind: TimeKind::Response, limit: Nanos::from_millis(200) };

    #[test]
    fn fast_failures_do_not_make_a_slow_load_pass() {
        for demand in [IN_TIME, MEAN] {
            let slow = seen(demand, 100, 300, 10_000);
            assert!(slow.evidence(0.0) > CLEAR_LOG_ODDS && !slow.is_met(), "{slow:?}");
            let quick = seen(demand, 100, 30, 10_000);
            assert!(quick.evidence(0.0) < -CLEAR_LOG_ODDS && quick.is_met(), "{quick:?}");
        }
    }

    #[test]
    fn without_a_success_times_are_missed() {
        for demand in [IN_TIME, MEAN] {
            let failing = seen(demand, 0, 0, 100);
            assert!(failing.evidence(0.0) > CLEAR_LOG_ODDS && !failing.is_met(), "{failing:?}");
            assert!(seen(demand, 0, 0, 0).evidence(0.0) == 0.0, "nothing was seen");
        }
    }

    /// Five seconds of 100 requests to a language model, all of which take 50 ms; `ttft_ms` until their first token.
    fn seen_of_llm(demand: SloCriterion, ttft_ms: u64, good: u64, failed: u64) -> ObjectiveTracker {
        let mut tracker = ObjectiveTracker::new(demand);
        for _ in 0..5 {
            let mut second = Interval { ok: 100 - failed, failed, ..Interval::default() };
            let mut streams = StreamInterval { llm_requests: 100 - failed, good, ..StreamInterval::default() };
            for _ in 0..100 - failed {
                second.response.record(Nanos::from_millis(50));
                streams.ttft.record(Nanos::from_millis(ttft_ms));
            }
            second.streams = Some(Box::new(streams));
            tracker.add(&second);
        }
        tracker
    }

    #[test]
    fn objectives_on_streams_are_about_their_own_times() {
        let demand = |text: &str| text.parse::<Slo>().unwrap().criterion().unwrap();
        let passes = |text: &str, ttft_ms: u64| {
            let tracker = seen_of_llm(demand(text), ttft_ms, 0, 0);
            assert_eq!(tracker.evidence(0.0) < 0.0, tracker.is_met(), "{text}");
            tracker.is_met()
        };
        assert!(passes("ttft.p90<20ms", 10) && !passes("ttft.p90<20ms", 30));
        assert!(passes("ttft.mean<20ms", 10) && !passes("ttft.mean<20ms", 30));
        assert!(!passes("tpot.p50<20ms", 10), "there is none, so that it is not shown to be met");
    }

    #[test]
    fn goodput_is_missed_by_failures_and_by_requests_that_miss_their_objectives() {
        let demand = "goodput>90%".parse::<Slo>().unwrap().criterion().unwrap();
        for (good, failed, is_met) in [(100, 0, true), (70, 0, false), (70, 30, false), (97, 3, true)] {
            let tracker = seen_of_llm(demand, 10, good, failed);
            assert_eq!((tracker.is_met(), tracker.evidence(0.0) < 0.0), (is_met, is_met), "{good} {failed}");
        }
    }
}
