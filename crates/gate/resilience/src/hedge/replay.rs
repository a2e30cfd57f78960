//! Permission to send a request more than once.

use super::action::NotRepeated;
use crate::policy::Policy;
use weir_base::failure::FailureSide;
use weir_retry::policy::{AttemptFailure, RetryableMethodClass};

/// Permission to send a request more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResendRule {
    /// Any time, also while another attempt runs.
    Always,
    /// Only after a failure before the request was sent
    /// ([`FailureKind::is_unsent`](weir_base::failure::FailureKind::is_unsent)), and one attempt at a time.
    IfUnsent,
    /// Never: its body is not available any more.
    Never,
}

impl ResendRule {
    /// Permission by a policy for a request of this method (case-sensitive; RFC 9110, 9.1) whose body can be sent
    /// again.
    pub fn of(repeat: RetryableMethodClass, method: &str) -> Self {
        let always = match (repeat, method) {
            (RetryableMethodClass::All, _) => true,
            // Safe (RFC 9110, 9.2.1).
            (_, "GET" | "HEAD" | "OPTIONS" | "TRACE") => true,
            // Idempotent, not safe (9.2.2).
            (RetryableMethodClass::Idempotent, "PUT" | "DELETE") => true,
            _ => false,
        };
        if always { Self::Always } else { Self::IfUnsent }
    }

    /// Whether a policy may send a request of this method more than once while it may have been received.
    pub fn allows_extra_attempts(policy: &Policy, method: &str) -> bool {
        policy.allows_extra_attempts() && Self::of(policy.retryable_methods, method) == Self::Always
    }

    /// Reason why no other attempt may follow this failure; `None` if one may. An invalid request would fail again.
    pub(super) fn forbids(self, failure: AttemptFailure) -> Option<NotRepeated> {
        match self {
            Self::Always if failure.side() == FailureSide::Upstream => None,
            Self::Always => Some(NotRepeated::Kind),
            Self::IfUnsent if matches!(failure, AttemptFailure::Kind(kind) if kind.is_unsent()) => None,
            Self::IfUnsent => Some(NotRepeated::Method),
            Self::Never => Some(NotRepeated::Stream),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_safe_requests_are_repeated_by_default() {
        let always = |repeat, methods: &[&str]| methods.iter().all(|m| ResendRule::of(repeat, m) == ResendRule::Always);
        let unsent =
            |repeat, methods: &[&str]| methods.iter().all(|m| ResendRule::of(repeat, m) == ResendRule::IfUnsent);
        let safe = ["GET", "HEAD", "OPTIONS", "TRACE"];
        let idempotent = ["PUT", "DELETE"];
        let others = ["POST", "PATCH", "CONNECT", "get", "", "PURGE"];
        assert!(
            always(RetryableMethodClass::Safe, &safe)
                && unsent(RetryableMethodClass::Safe, &idempotent)
                && unsent(RetryableMethodClass::Safe, &others)
        );
        assert!(
            always(RetryableMethodClass::Idempotent, &safe) && always(RetryableMethodClass::Idempotent, &idempotent)
        );
        assert!(unsent(RetryableMethodClass::Idempotent, &others));
        assert!([&safe[..], &idempotent, &others].iter().all(|methods| always(RetryableMethodClass::All, methods)));
    }
}
