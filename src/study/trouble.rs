//! What keeps a measurement from its end.

use super::cell::MeasurementFailure;
use super::running::GuardedProcess;

/// What keeps a measurement from its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MeasurementError {
    /// Somebody has had enough: there is no measurement.
    Interrupted,
    /// It failed, which is a finding.
    Failed(MeasurementFailure),
}

/// Lines of what a program said last.
const MAX_OUTPUT_LINES: usize = 8;

impl MeasurementError {
    /// Of a program, with what it said last.
    pub(super) fn from_program(why: String, running: &GuardedProcess) -> Self {
        let mut last_lines = running.stderr().last_lines(MAX_OUTPUT_LINES);
        if last_lines.is_empty() {
            last_lines = running.stdout().last_lines(MAX_OUTPUT_LINES);
        }
        Self::Failed(MeasurementFailure { reason: why, last_lines })
    }

    /// Without any words of the program.
    pub(super) fn without_output(why: impl Into<String>) -> Self {
        Self::Failed(MeasurementFailure { reason: why.into(), last_lines: Vec::new() })
    }

    /// The same, with who it is that failed, where that is not the variant.
    #[must_use]
    pub(super) fn attributed_to(self, who: &str) -> Self {
        match self {
            Self::Failed(failure) => {
                Self::Failed(MeasurementFailure { reason: format!("{who}: {}", failure.reason), ..failure })
            }
            Self::Interrupted => Self::Interrupted,
        }
    }
}
