//! Whether a request may be sent a second time.

use crate::decide::policy::{AttemptFailure, FailureSide, RetryableMethodClass};

/// Whether a request may be sent a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResendRule {
    /// Any time, also while another copy runs.
    Always,
    /// Only after a failure that shows that it was not sent ([`FailureKind::is_unsent`](crate::decide::policy::FailureKind::is_unsent)),
    /// and one copy at a time.
    IfUnsent,
    /// Never: its body is gone.
    Never,
}

impl ResendRule {
    /// What a policy lets be done with a request of this method (case-sensitive; RFC 9110, 9.1) whose body can be sent
    /// again.
    pub fn of(repeat: RetryableMethodClass, method: &str) -> Self {
        let freely = match (repeat, method) {
            (RetryableMethodClass::All, _) => true,
            // RFC 9110, 9.2.1: safe.
            (_, "GET" | "HEAD" | "OPTIONS" | "TRACE") => true,
            // 9.2.2: idempotent, though not safe.
            (RetryableMethodClass::Idempotent, "PUT" | "DELETE") => true,
            _ => false,
        };
        if freely { Self::Always } else { Self::IfUnsent }
    }

    /// Whether this failure of an attempt may be followed by another attempt. What is wrong with the request itself is
    /// wrong with each copy of it.
    pub(super) fn allows(self, failure: AttemptFailure) -> bool {
        match self {
            Self::Always => failure.side() == FailureSide::Upstream,
            Self::IfUnsent => matches!(failure, AttemptFailure::Kind(kind) if kind.is_unsent()),
            Self::Never => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_nothing_is_repeated_unless_told() {
        let freely = |repeat, methods: &[&str]| methods.iter().all(|m| ResendRule::of(repeat, m) == ResendRule::Always);
        let unsent =
            |repeat, methods: &[&str]| methods.iter().all(|m| ResendRule::of(repeat, m) == ResendRule::IfUnsent);
        let safe = ["GET", "HEAD", "OPTIONS", "TRACE"];
        let idempotent = ["PUT", "DELETE"];
        let others = ["POST", "PATCH", "CONNECT", "get", "", "PURGE"];
        assert!(
            freely(RetryableMethodClass::Safe, &safe)
                && unsent(RetryableMethodClass::Safe, &idempotent)
                && unsent(RetryableMethodClass::Safe, &others)
        );
        assert!(
            freely(RetryableMethodClass::Idempotent, &safe) && freely(RetryableMethodClass::Idempotent, &idempotent)
        );
        assert!(unsent(RetryableMethodClass::Idempotent, &others));
        assert!([&safe[..], &idempotent, &others].iter().all(|methods| freely(RetryableMethodClass::All, methods)));
    }
}
