//! A condition that ends a run early, such as `errors > 20%` over 10 s.
//!
//! The condition is about the responses of the last seconds, so that a service that fails after an hour ends the run as
//! soon as one that fails at once, and a bad second alone does not.

use std::collections::VecDeque;

use super::recorder::Interval;
use super::slo::Slo;
use weir_base::Nanos;

/// Default period over which a condition is evaluated.
pub const DEFAULT_ABORT_WINDOW: Nanos = Nanos::from_secs(10);

/// Condition that ends a run early.
#[derive(Clone, Debug, PartialEq)]
pub struct AbortRule {
    /// Condition on the requests that ended within the window; of those that intervals know.
    pub when: Slo,
    /// Length of the window; the run does not end before it.
    pub window: Nanos,
}

/// Evaluation of a condition, interval by interval.
#[derive(Clone, Debug)]
pub struct AbortWatch {
    rule: AbortRule,
    /// Length of an interval.
    interval: Nanos,
    last: VecDeque<Interval>,
}

impl AbortRule {
    /// Rule of a condition.
    ///
    /// # Errors
    /// A condition on figures that are known at the end of a run only.
    pub fn new(when: Slo, window: Nanos) -> Result<Self, String> {
        if !when.is_known_from_intervals() {
            return Err(format!(
                "'{when}' is known at the end of a run only; write a condition on errors, rate or response times, \
                 e.g. errors>20%"
            ));
        }
        Ok(Self { when, window })
    }
}

impl AbortWatch {
    /// Evaluation over intervals of this length.
    pub fn new(rule: AbortRule, interval: Nanos) -> Self {
        Self { rule, interval, last: VecDeque::new() }
    }

    /// Adds an interval; returns why the run ends, if it does.
    pub fn add(&mut self, interval: &Interval) -> Option<String> {
        let size = usize::try_from(self.rule.window.0.div_ceil(self.interval.0.max(1))).unwrap_or(usize::MAX).max(1);
        // Counts for the result are not looked at.
        self.last.push_back(Interval { counts: None, ..interval.clone() });
        if self.last.len() > size {
            self.last.pop_front();
        }
        if self.last.len() < size {
            return None;
        }
        let mut all = Interval::default();
        self.last.iter().for_each(|interval| all.add(interval));
        let length = Nanos(self.interval.0.saturating_mul(size as u64));
        let (holds, measured) = self.rule.when.holds_in(&all, length.as_secs_f64())?;
        holds.then(|| format!("{}: {measured} in the last {length}", self.rule.when))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn watch(when: &str, window_s: u64) -> AbortWatch {
        let rule = AbortRule::new(when.parse().expect("a condition"), Nanos::from_secs(window_s)).expect("known");
        AbortWatch::new(rule, Nanos::SECOND)
    }

    fn second(ok: u64, failed: u64) -> Interval {
        Interval { ok, failed, ..Interval::default() }
    }

    #[test]
    fn a_run_ends_by_what_happened_in_the_window_and_not_before_it_is_over() {
        let mut errors = watch("errors > 20%", 3);
        assert_eq!(errors.add(&second(0, 100)), None);
        assert_eq!(errors.add(&second(100, 0)), None);
        let why = errors.add(&second(100, 0)).expect("a third failed");
        assert_eq!(why, "errors > 20%: errors 33.3333% (100 of 300) in the last 3s");
        assert_eq!(errors.add(&second(100, 0)), None, "the bad second is over");
    }

    #[test]
    fn nothing_that_ended_is_no_error_and_no_rate() {
        assert_eq!(watch("errors > 0%", 1).add(&second(0, 0)), None);
        assert_eq!(watch("p99 > 1ms", 1).add(&second(0, 0)), None);
        assert!(watch("rate < 1", 1).add(&second(0, 0)).is_some());
        assert!(watch("p99 > 1h", 1).add(&second(0, 5)).is_some(), "without a success no time is met");
    }

    #[test]
    fn what_is_known_at_the_end_only_is_no_condition() {
        for text in ["checks < 99%", "shop: p99 > 1s", "iterations: errors > 1%", "service.p99 > 1s"] {
            assert!(AbortRule::new(text.parse().expect("an objective"), Nanos::SECOND).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_condition_holds_exactly_when_the_sum_of_the_window_fulfills_it(
            seconds in prop::collection::vec((0..5_u64, 0..5_u64), 1..30), window in 1..6_u64
        ) {
            let mut errors = watch("errors > 30%", window);
            for end in 1..=seconds.len() {
                let (ok, failed) = seconds[end - 1];
                let ended = errors.add(&second(ok, failed)).is_some();
                let from = end.saturating_sub(window as usize);
                let (ok, failed) = seconds[from..end].iter().fold((0, 0), |(a, b), (ok, failed)| (a + ok, b + failed));
                let expected = end >= window as usize && failed as f64 > 0.3 * (ok + failed) as f64;
                prop_assert_eq!(ended, expected);
            }
        }
    }
}
