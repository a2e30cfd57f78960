//! Findings of a step, for counters and logs.

use std::fmt;

use weir_base::failure::FailureKind;

use super::render_error::RenderError;
use crate::evaluate::{CaptureFailure, CheckFailure};
use crate::value::Value;
use weir_request::url::UrlError;

/// Outcome of a step's request. Buffer that the caller owns; each call of the flow overwrites it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepFindings {
    /// Index of the step.
    pub step: u32,
    /// Meaning of the response or failure for the step; `None` if the call was not about a request.
    pub verdict: Option<StepVerdict>,
    /// Number of checks that were evaluated: those of the indices 0, 1, ... Those that are not among the failures, or
    /// skipped, have passed.
    pub checks_evaluated: u32,
    /// Indices of checks among these that were skipped: of the messages of a call that has failed by its status.
    pub skipped: Vec<u32>,
    /// Failures in order; empty if all is well.
    pub failures: Vec<FlowFailure>,
    /// Whether the values of captures are kept: a person sees each response.
    pub keeps_captures: bool,
    /// Values of the captures of the indices 0, 1, ..., where they are kept.
    pub captures: Vec<Value>,
}

/// Meaning of a response or failure for a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepVerdict {
    /// All captures and checks hold.
    Passed,
    /// The step has failed.
    Failed,
    /// The step has failed and is retried.
    Retried,
    /// The response is a redirect, which is followed, or a challenge, to which credentials are sent.
    Redirected,
}

/// Failure of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowFailure {
    /// Check of this index, with the reason.
    Check(u32, CheckFailure),
    /// Capture of this index, with the reason.
    Capture(u32, CaptureFailure),
    /// Request that could not be rendered.
    Request(RenderError),
    /// Request without a response.
    Transfer(FailureKind),
    /// More redirects than this number.
    Redirects(u64),
    /// Redirect to an invalid URL.
    Location(UrlError),
    /// Failure that a program has found, in its words.
    Program(String),
}

impl StepFindings {
    /// Whether the check of this index has passed; `None` if it was not evaluated.
    pub fn has_passed(&self, check: u32) -> Option<bool> {
        let has_failed = |failure: &FlowFailure| matches!(failure, FlowFailure::Check(index, _) if *index == check);
        let is_evaluated = check < self.checks_evaluated && !self.skipped.contains(&check);
        is_evaluated.then(|| !self.failures.iter().any(has_failed))
    }

    /// Whether the findings are about a request already.
    pub(super) fn is_used(&self) -> bool {
        self.verdict.is_some()
    }

    pub(super) fn add(&mut self, step: u32, failure: FlowFailure) {
        self.step = step;
        self.failures.push(failure);
    }

    /// Empties the findings for a request of a step.
    pub fn clear(&mut self, step: u32) {
        self.step = step;
        self.verdict = None;
        self.checks_evaluated = 0;
        self.skipped.clear();
        self.failures.clear();
        self.captures.clear();
    }
}

impl fmt::Display for FlowFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Check(_, failure) => failure.fmt(f),
            Self::Capture(_, failure) => failure.fmt(f),
            Self::Request(error) => error.fmt(f),
            Self::Transfer(kind) => f.write_str(kind.name()),
            Self::Redirects(max) => write!(f, "more than {max} redirects"),
            Self::Location(error) => write!(f, "redirect: {error}"),
            Self::Program(reason) => f.write_str(reason),
        }
    }
}
