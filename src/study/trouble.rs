//! What keeps a measurement from its end.

use super::cell::Failure;
use super::running::Running;

/// What keeps a measurement from its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Somebody has had enough: there is no measurement.
    Interrupted,
    /// It failed, which is a finding.
    Failed(Failure),
}

/// Lines of what a program said last.
const LINES: usize = 8;

impl Trouble {
    /// Of a program, with what it said last.
    pub(super) fn of(why: String, running: &Running) -> Self {
        let mut last_lines = running.stderr().last_lines(LINES);
        if last_lines.is_empty() {
            last_lines = running.stdout().last_lines(LINES);
        }
        Self::Failed(Failure { why, last_lines })
    }

    /// Without any words of the program.
    pub(super) fn plain(why: impl Into<String>) -> Self {
        Self::Failed(Failure { why: why.into(), last_lines: Vec::new() })
    }

    /// The same, with who it is that failed, where that is not the variant.
    #[must_use]
    pub(super) fn by(self, who: &str) -> Self {
        match self {
            Self::Failed(failure) => Self::Failed(Failure { why: format!("{who}: {}", failure.why), ..failure }),
            Self::Interrupted => Self::Interrupted,
        }
    }
}
