//! Error of a measurement.

use super::measurement::MeasurementFailure;

/// Error that ends a measurement early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MeasurementError {
    /// Interrupted by the user: there is no measurement.
    Interrupted,
    /// Failure of the variant, which is a finding.
    Failed(MeasurementFailure),
}

impl MeasurementError {
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
