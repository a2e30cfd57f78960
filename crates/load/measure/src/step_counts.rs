//! Counts of scenarios: iterations, and each step.

use std::collections::BTreeMap;
use std::iter::Sum;

use serde::{Deserialize, Serialize};

use super::failure_sample::FailureSample;
use super::merge::{AddPart, PeerValue, merged};
use super::outcome::{Outcome, RequestEnd};
use super::response_counts::{CheckedResponses, StatusCounts, failed_by_kind};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_histogram::histogram::{self, Histogram};

merged! {
    /// Counts of iterations with a start in the window.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct IterationCounts {
        /// Iterations in which no step failed.
        pub ok: u64 => sum,
        /// Iterations with a failed step.
        pub failed: u64 => sum,
        /// Iterations that the end of the run cut off; in neither of these.
        pub cut: u64 => sum,
        /// Iterations that ended within the window, the numerator of the rate.
        pub ended_in_window: u64 => sum,
        /// Time from the intended start to the end, think times included, of all iterations.
        pub time: Histogram => sum,
    }
}

impl IterationCounts {
    /// Records an iteration.
    pub fn record(&mut self, intended: Nanos, ended: Nanos, ok: bool) {
        if ok {
            self.ok += 1;
        } else {
            self.failed += 1;
        }
        self.time.record(ended - intended);
    }

    /// Whether the counts add up.
    pub(super) fn adds_up(&self) -> bool {
        self.time.count() == self.ok + self.failed
    }
}

impl<'a> Sum<&'a Self> for IterationCounts {
    fn sum<I: Iterator<Item = &'a Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |mut sum, part| {
            sum.add(part);
            sum
        })
    }
}

merged! {
    /// Counts of a step in one interval of the time series.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct StepInterval {
        /// Requests that ended.
        pub requests: u64 => sum,
        /// Of these, failed ones.
        pub failed: u64 => sum,
        /// Sum of their response times.
        pub response: Nanos => sum,
        /// Checks that failed.
        pub checks_failed: u64 => sum,
        /// Response times of successes.
        #[serde(deserialize_with = "histogram::deserialize_coarse")]
        pub times: Histogram => sum,
    }
}

impl Default for StepInterval {
    fn default() -> Self {
        Self { requests: 0, failed: 0, response: Nanos::ZERO, checks_failed: 0, times: Histogram::coarse() }
    }
}

impl StepInterval {
    /// Records a request of the step, and the number of its checks that failed.
    pub fn record(&mut self, outcome: &Outcome, checks_failed: u64) {
        let response = outcome.response();
        self.requests += 1;
        self.response += response;
        self.checks_failed += checks_failed;
        if outcome.is_ok() {
            self.times.record(response);
        } else {
            self.failed += 1;
        }
    }
}

merged! {
    /// Counts of a step with an intended start in the window.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct StepCounts {
        /// Requests that ended; redirects and retries are requests of their step.
        pub requests: u64 => sum,
        /// Responses that the step expects.
        pub ok: u64 => sum,
        /// Requests that followed a redirect.
        pub redirects: u64 => sum,
        /// Requests that were followed by a retry.
        pub retries: u64 => sum,
        /// Requests that were never sent, since a variable had no value or an invalid one.
        pub unsent: u64 => sum,
        /// Bytes read, heads and framing included.
        pub bytes_in: u64 => sum,
        /// Bytes written, heads included.
        pub bytes_out: u64 => sum,
        /// Number of responses by status.
        pub statuses: StatusCounts => sum,
        /// Requests without a response, by kind.
        pub failures: [u64; FailureKind::ALL.len()] => sum,
        /// Responses whose success is not that of their status.
        pub unexpected: CheckedResponses => sum,
        /// Time from the intended start to the last byte, of successes.
        pub response: Histogram => sum,
        /// Time from the send to the last byte, of successes.
        pub service: Histogram => sum,
        /// Time from the intended start to the end, of failures.
        pub failed_response: Histogram => sum,
        /// Lateness of the generator itself, of whole responses.
        pub lateness: Histogram => sum,
        /// Checks of the step, in order.
        pub checks: Vec<CheckCounts> => sum,
        /// First failures.
        pub samples: Vec<FailureSample> => first_few,
    }
}

merged! {
    /// Evaluations of a check.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct CheckCounts {
        /// Evaluations that hold.
        pub passed: u64 => sum,
        /// Evaluations that do not.
        pub failed: u64 => sum,
    }
}

impl StepCounts {
    /// Records a request of the step.
    pub fn record(&mut self, outcome: &Outcome) {
        self.requests += 1;
        self.bytes_in += outcome.bytes_in;
        self.bytes_out += outcome.bytes_out;
        if outcome.is_ok() {
            self.ok += 1;
            self.response.record(outcome.response());
            self.service.record(outcome.service());
        } else {
            self.failed_response.record(outcome.response());
        }
        match outcome.end {
            RequestEnd::Failed(kind) => self.failures[kind as usize] += 1,
            RequestEnd::Response(status) | RequestEnd::Checked { status, .. } => {
                self.statuses.record(status);
                self.unexpected.record(outcome.end);
                self.lateness.record(outcome.lateness());
            }
        }
    }

    /// Records an evaluation of the check of an index.
    pub fn record_check(&mut self, index: usize, passed: bool) {
        if self.checks.len() <= index {
            self.checks.resize(index + 1, CheckCounts::default());
        }
        let Some(check) = self.checks.get_mut(index) else { return };
        if passed {
            check.passed += 1;
        } else {
            check.failed += 1;
        }
    }

    /// Stores a sample, if it is one of the first.
    pub fn record_sample(&mut self, sample: impl FnOnce() -> FailureSample) {
        if self.samples.len() < FailureSample::MAX_PER_STEP {
            self.samples.push(sample());
        }
    }

    /// Failed requests by kind: without a response, of class `4xx` or `5xx` (and above), or `check`.
    pub fn by_failure(&self) -> BTreeMap<String, u64> {
        failed_by_kind(&self.failures, &self.statuses, self.unexpected, 0)
    }

    /// Whether the counts add up.
    pub(super) fn adds_up(&self) -> bool {
        self.statuses.sum(0..1000) + self.failures.iter().sum::<u64>() == self.requests
            && self.ok == self.response.count()
            && self.requests == self.ok + self.failed_response.count()
            && self.lateness.count() == self.statuses.sum(0..1000)
    }
}

/// Implements sums and the check of a merged record.
macro_rules! parts {
    ($($name:ty),*) => {$(
        impl AddPart for $name {
            fn add_part(&mut self, other: &Self) {
                self.add(other);
            }
        }

        impl PeerValue for $name {
            fn check(&self) -> Result<(), String> {
                self.check_values()
            }
        }
    )*};
}
parts!(IterationCounts, StepCounts, StepInterval, CheckCounts);
