//! Scenarios of a [`Run`](super::Run): iterations and steps.

use std::collections::BTreeMap;
use weir_base::grpc_status::status_text;

use serde::{Deserialize, Serialize};

use super::counts::Counts;
use super::failure_sample::FailureSample;
use super::lateness::is_step_distorted;
use super::rate::Rate;
use super::step_counts::{IterationCounts, StepCounts};
use super::step_series::StepPoint;
use weir_histogram::Histogram;
use weir_histogram::percentiles::Percentiles;

/// Iterations of scenarios.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunIterations {
    /// Iterations that have ended, or were never started.
    pub total: u64,
    /// Iterations in which no step failed.
    pub ok: u64,
    /// All others, dropped ones included.
    pub failed: u64,
    /// Of the failed ones: never started, since no user was free in time.
    pub dropped: u64,
    /// Cut off by the end of the run; not in `total`.
    pub unfinished: u64,
    /// Iterations per second.
    pub rate_per_s: Rate,
    /// Time from the intended start to the end of an iteration, think times included.
    pub time_ms: Percentiles,
    /// Histogram of these times, in the format of [`Run::histogram`](super::run::Run::histogram).
    pub histogram: String,
}

/// Iterations of one scenario in a run: counts, rate and times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunScenario {
    /// Name: that of its file, without the ending.
    pub name: String,
    /// Iterations that have ended. Iterations that were never started belong to no scenario.
    pub iterations: u64,
    /// Iterations in which no step failed.
    pub ok: u64,
    /// Iterations with a failed step.
    pub failed: u64,
    /// Cut off by the end of the run; not in `iterations`.
    pub unfinished: u64,
    /// Iterations per second.
    pub rate_per_s: f64,
    /// Time from the intended start to the end of an iteration, think times included.
    pub time_ms: Percentiles,
}

/// Step of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunStep {
    /// Name, unique in the run: in a mix it begins with that of the scenario.
    pub name: String,
    /// Name of its scenario.
    pub scenario: String,
    /// Requests that have ended; redirects and retries are requests of their step.
    pub requests: u64,
    /// Responses that the step expects.
    pub ok: u64,
    /// All others.
    pub failed: u64,
    /// Requests that followed a redirect.
    pub redirects: u64,
    /// Requests that were followed by a retry.
    pub retries: u64,
    /// Requests that were never sent, since a variable had no value or an invalid one; not in `requests`.
    pub unsent: u64,
    /// Bytes read, heads and framing included.
    pub bytes_in: u64,
    /// Bytes written, heads included.
    pub bytes_out: u64,
    /// Responses per second.
    pub rate_per_s: f64,
    /// Time from the intended start to the whole response, over successes.
    pub response_ms: Percentiles,
    /// Time from the send to the whole response, over successes.
    pub service_ms: Percentiles,
    /// Time from the intended start to the end of failed requests.
    pub failed_ms: Percentiles,
    /// Number of responses by status.
    pub status: BTreeMap<String, u64>,
    /// Failed requests by kind; their sum is `failed`.
    pub failures: BTreeMap<String, u64>,
    /// Checks, in order.
    pub checks: Vec<RunCheck>,
    /// First failures.
    pub samples: Vec<FailureSample>,
    /// Lateness of the generator itself, over whole responses.
    pub lateness_ms: Percentiles,
    /// Whether weir's own lateness distorts percentiles of `response_ms`.
    pub untrusted: bool,
    /// Time series, warm-up included; the more steps, the wider the intervals.
    pub series: Vec<StepPoint>,
    /// Histogram of `response_ms`, in the format of [`Run::histogram`](super::run::Run::histogram).
    pub histogram: String,
    /// Histogram of `service_ms`, in the same format.
    pub service_histogram: String,
}

/// Check of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCheck {
    /// Check, as it is written.
    pub text: String,
    /// Evaluations that hold.
    pub passed: u64,
    /// Evaluations that do not.
    pub failed: u64,
}

/// Facts of a step that are not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepFacts {
    /// Name, unique in the run.
    pub name: String,
    /// Name of its scenario.
    pub scenario: String,
    /// Checks, as they are written.
    pub checks: Vec<String>,
}

impl RunIterations {
    /// Iterations of the counts of a window; `arrivals_s` is the length of its arrivals in the open loop.
    pub(super) fn of(counts: &Counts, duration_s: f64, arrivals_s: Option<f64>) -> Self {
        let iterations: IterationCounts = counts.scenarios.iter().sum();
        let achieved = iterations.ended_in_window as f64 / duration_s;
        Self {
            total: iterations.ok + iterations.failed + counts.dropped,
            ok: iterations.ok,
            failed: iterations.failed + counts.dropped,
            dropped: counts.dropped,
            unfinished: iterations.cut,
            rate_per_s: Rate {
                offered: arrivals_s.map_or(achieved, |length| counts.offered as f64 / length),
                achieved,
            },
            time_ms: iterations.time.percentiles(),
            histogram: iterations.time.to_base64(),
        }
    }

    /// Histogram of the times of iterations.
    ///
    /// # Errors
    /// A damaged histogram, in a run from a file.
    pub fn time_histogram(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.histogram, Histogram::precise)
    }
}

impl RunScenario {
    /// Scenario of these counts.
    pub(super) fn of(name: &str, counts: &IterationCounts, duration_s: f64) -> Self {
        Self {
            name: name.to_owned(),
            iterations: counts.ok + counts.failed,
            ok: counts.ok,
            failed: counts.failed,
            unfinished: counts.cut,
            rate_per_s: counts.ended_in_window as f64 / duration_s,
            time_ms: counts.time.percentiles(),
        }
    }
}

impl RunStep {
    /// Step of these counts.
    pub(super) fn of(facts: &StepFacts, counts: &StepCounts, series: Vec<StepPoint>, duration_s: f64) -> Self {
        let of_check = |index: usize| counts.checks.get(index).copied().unwrap_or_default();
        let checks = facts.checks.iter().enumerate().map(|(index, text)| {
            let counted = of_check(index);
            RunCheck { text: text.clone(), passed: counted.passed, failed: counted.failed }
        });
        Self {
            name: facts.name.clone(),
            scenario: facts.scenario.clone(),
            requests: counts.requests,
            ok: counts.ok,
            failed: counts.requests - counts.ok,
            redirects: counts.redirects,
            retries: counts.retries,
            unsent: counts.unsent,
            bytes_in: counts.bytes_in,
            bytes_out: counts.bytes_out,
            rate_per_s: counts.statuses.sum(0..1000) as f64 / duration_s,
            response_ms: counts.response.percentiles(),
            service_ms: counts.service.percentiles(),
            failed_ms: counts.failed_response.percentiles(),
            status: counts.statuses.iter().map(|(status, n)| (status_text(status).into_owned(), n)).collect(),
            failures: counts.by_failure(),
            checks: checks.collect(),
            samples: counts.samples.clone(),
            lateness_ms: counts.lateness.percentiles(),
            untrusted: is_step_distorted(counts),
            series,
            histogram: counts.response.to_base64(),
            service_histogram: counts.service.to_base64(),
        }
    }

    /// Whether this is the step, or a step of the scenario, of a name.
    pub fn is_named(&self, name: &str) -> bool {
        self.name == name || self.scenario == name
    }

    /// Histogram of response times of successes.
    ///
    /// # Errors
    /// A damaged histogram, in a run from a file.
    pub fn response_histogram(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.histogram, Histogram::precise)
    }

    /// Histogram of service times of successes.
    ///
    /// # Errors
    /// A damaged histogram, in a run from a file.
    pub fn service_histogram(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.service_histogram, Histogram::precise)
    }

    /// Fraction of failed requests, in [0, 1]; 0 without requests.
    pub fn error_fraction(&self) -> f64 {
        self.failed as f64 / self.requests.max(1) as f64
    }
}
