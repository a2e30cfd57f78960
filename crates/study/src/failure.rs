//! Error of a measurement.

use super::guarded_process::GuardedProcess;
use super::measurement::MeasurementFailure;

/// Error that ends a measurement early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MeasurementError {
    /// Interrupted by the user: there is no measurement.
    Interrupted,
    /// Failure of the variant, which is a finding.
    Failed(MeasurementFailure),
}

/// Number of a program's last output lines in a failure.
const MAX_OUTPUT_LINES: usize = 8;

impl MeasurementError {
    /// Failure of a program, with its last lines of output.
    pub(super) fn from_program(why: String, running: &GuardedProcess) -> Self {
        let mut last_lines = running.stderr().last_lines(MAX_OUTPUT_LINES);
        if last_lines.is_empty() {
            last_lines = running.stdout().last_lines(MAX_OUTPUT_LINES);
        }
        Self::Failed(MeasurementFailure { reason: why, last_lines })
    }

    /// Failure without output of a program.
    pub(super) fn without_output(why: impl Into<String>) -> Self {
        Self::Failed(MeasurementFailure { reason: why.into(), last_lines: Vec::new() })
    }

    /// Same error, prefixed with the name of what failed, if that is not the variant.
    #[must_use]
    pub(super) fn attributed_to(self, name: &str) -> Self {
        match self {
            Self::Failed(failure) => {
                Self::Failed(MeasurementFailure { reason: format!("{name}: {}", failure.reason), ..failure })
            }
            Self::Interrupted => Self::Interrupted,
        }
    }
}
