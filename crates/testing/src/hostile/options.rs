//! Options of the service.

use super::{Violation, ViolationEnd, violations};

/// Options of the service: what happens to which fraction of requests. The rest has a good response.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HostileOptions {
    /// Seed of all random choices, per request number.
    pub seed: u64,
    /// Fraction of requests that a violation is the response to, in [0, 1].
    pub violation: f64,
    /// Fraction of requests that GOAWAY is the response to, in [0, 1]: they are not processed.
    pub goaway: f64,
    /// Fraction of requests whose stream is reset, in [0, 1].
    pub reset: f64,
    /// Fraction of requests whose connection is closed, in [0, 1].
    pub close: f64,
}

impl HostileOptions {
    /// Names of the violations, in the order of their numbers.
    pub fn names() -> Vec<&'static str> {
        Self::frames(1).into_iter().map(|violation| violation.name).collect()
    }

    /// Violations in response to a request on this stream.
    pub(super) fn frames(stream: u32) -> Vec<Violation> {
        violations(stream).into_iter().filter(|violation| violation.end != ViolationEnd::Nothing).collect()
    }
}
