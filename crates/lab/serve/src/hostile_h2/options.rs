//! Options of the service.

use weir_http2::hostile::{Violation, ViolationEnd, violations};

/// Options of the service: what happens to which fraction of requests. The rest has a good response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
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
    /// Part of the names of the violations that are played; all without.
    pub only: Option<String>,
}

impl Options {
    /// Names of the violations that are played, in the order of their numbers.
    pub fn violations(&self) -> Vec<&'static str> {
        self.frames(1).into_iter().map(|violation| violation.name).collect()
    }

    /// Violations in response to a request on this stream.
    pub(super) fn frames(&self, stream: u32) -> Vec<Violation> {
        let is_played = |violation: &Violation| {
            violation.end != ViolationEnd::Nothing
                && self.only.as_ref().is_none_or(|only| violation.name.contains(only.as_str()))
        };
        violations(stream).into_iter().filter(is_played).collect()
    }
}
