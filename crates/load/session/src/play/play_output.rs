//! Output of a played iteration, and counts of its results.

use weir_load::steps::StepTrace;
use weir_request::secret_mask::SecretMask;

/// Parts of an iteration that are printed, and their format.
#[derive(Clone, Debug)]
pub struct PlayOutput {
    /// How much of it, as text.
    pub detail: PlayDetail,
    /// Whether it is printed as one JSON object.
    pub is_json: bool,
    /// Secrets that are not printed; those of the load are added.
    pub mask: SecretMask,
}

/// How much of each request and response is printed as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlayDetail {
    /// The first lines of both; all of them where a step has failed.
    Short,
    /// Heads, and the first part of bodies.
    Full,
    /// Heads and whole bodies.
    Whole,
}

/// Counts of an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PlayTotals {
    /// Executions of steps that have ended, of which some have failed.
    pub(super) steps: u64,
    pub(super) failed_steps: u64,
    pub(super) requests: u64,
    pub(super) passed_checks: u64,
    pub(super) failed_checks: u64,
}

impl PlayTotals {
    /// Adds a request.
    pub(super) fn add(&mut self, trace: &StepTrace) {
        self.requests += u64::from(!trace.request.is_empty());
        self.steps += u64::from(matches!(trace.verdict, "passed" | "failed"));
        self.failed_steps += u64::from(trace.verdict == "failed");
        let failed = trace.checks.iter().filter(|check| check.failure.is_some()).count() as u64;
        self.failed_checks += failed;
        self.passed_checks += trace.checks.len() as u64 - failed;
    }
}
