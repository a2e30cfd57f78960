//! Whether a request may be sent a second time.

use crate::decide::policy::{Failure, Fault, Repeat};

/// Whether a request may be sent a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// Any time, also while another copy runs.
    Freely,
    /// Only after a failure that shows that it was not sent ([`Kind::is_unsent`](crate::decide::policy::Kind::is_unsent)),
    /// and one copy at a time.
    Unsent,
    /// Never: its body is gone.
    Never,
}

impl Replay {
    /// What a policy lets be done with a request of this method (case-sensitive; RFC 9110, 9.1) whose body can be sent
    /// again.
    pub fn of(repeat: Repeat, method: &str) -> Self {
        let freely = match (repeat, method) {
            (Repeat::Every, _) => true,
            // RFC 9110, 9.2.1: safe.
            (_, "GET" | "HEAD" | "OPTIONS" | "TRACE") => true,
            // 9.2.2: idempotent, though not safe.
            (Repeat::Idempotent, "PUT" | "DELETE") => true,
            _ => false,
        };
        if freely { Self::Freely } else { Self::Unsent }
    }

    /// Whether this failure of an attempt may be followed by another attempt. What is wrong with the request itself is
    /// wrong with each copy of it.
    pub(super) fn allows(self, failure: Failure) -> bool {
        match self {
            Self::Freely => failure.fault() == Fault::Upstream,
            Self::Unsent => matches!(failure, Failure::Kind(kind) if kind.is_unsent()),
            Self::Never => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_nothing_is_repeated_unless_told() {
        let freely = |repeat, methods: &[&str]| methods.iter().all(|m| Replay::of(repeat, m) == Replay::Freely);
        let unsent = |repeat, methods: &[&str]| methods.iter().all(|m| Replay::of(repeat, m) == Replay::Unsent);
        let safe = ["GET", "HEAD", "OPTIONS", "TRACE"];
        let idempotent = ["PUT", "DELETE"];
        let others = ["POST", "PATCH", "CONNECT", "get", "", "PURGE"];
        assert!(freely(Repeat::Safe, &safe) && unsent(Repeat::Safe, &idempotent) && unsent(Repeat::Safe, &others));
        assert!(freely(Repeat::Idempotent, &safe) && freely(Repeat::Idempotent, &idempotent));
        assert!(unsent(Repeat::Idempotent, &others));
        assert!([&safe[..], &idempotent, &others].iter().all(|methods| freely(Repeat::Every, methods)));
    }
}
