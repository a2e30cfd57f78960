//! Calls of one second.

use crate::recorder::Interval;
use weir_histogram::Histogram;

/// Calls that ended in one second. A call is what a user wants; its retries are requests of the same call.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoverySecond {
    /// Calls that were meant to start, per second.
    pub offered_per_s: f64,
    /// Calls that succeeded, at any attempt.
    pub good: u64,
    /// Calls that failed, at all attempts.
    pub failed: u64,
    /// Requests that ended.
    pub requests: u64,
    /// Times of calls that succeeded, from their intended starts, with failed attempts and the waits between them.
    pub times: Histogram,
    /// Requests in flight at the end of the second.
    pub in_flight: u64,
    /// Calls at the end of the second that weir could not start, since all its connections were in use.
    pub backlog: u64,
}

impl RecoverySecond {
    /// Second of an interval; a call is an iteration, or without scenarios a request.
    pub fn of(interval: &Interval, offered_per_s: f64) -> Self {
        let has_calls = !interval.steps.is_empty();
        let (good, failed, times) = if has_calls {
            let good = interval.iteration_times.count();
            (good, interval.iterations.saturating_sub(good), &interval.iteration_times)
        } else {
            (interval.ok, interval.failed, &interval.response)
        };
        Self {
            offered_per_s,
            good,
            failed,
            requests: interval.ok + interval.failed,
            times: times.clone(),
            in_flight: interval.in_flight,
            backlog: interval.backlog,
        }
    }

    /// Calls that ended.
    pub fn ended(&self) -> u64 {
        self.good + self.failed
    }

    /// Quantile of the times of good calls, in milliseconds; none without one.
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        self.times.quantile_ms(q)
    }
}
