//! Rules of a step: its options with their values.

use weir_base::Nanos;
use weir_base::rng::SeededRng;

/// Rules by which a step is executed: options of hurl that have a meaning in a load. The defaults are those of hurl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepRules {
    /// Whether the step is left out.
    pub skip: bool,
    /// Wait before each request that is not a retry or a redirect.
    pub delay: Nanos,
    /// Number of times that the step is executed; `u64::MAX` is without end.
    pub repeat: u64,
    /// Maximum number of retries of a failed step; `u64::MAX` is unlimited.
    pub max_retries: u64,
    /// Wait before a retry.
    pub retry_interval: Nanos,
    /// Whether it is retried as clients do: also after a response whose status is 429 or of class 5xx though the step
    /// expects none, and after a wait that doubles with each retry, at random from half to one and a half of that.
    pub retries_as_client: bool,
    /// Whether redirects are followed.
    pub follow_redirects: bool,
    /// Whether other hosts get the credentials too when redirects are followed.
    pub trust_redirects: bool,
    /// Maximum number of redirects of a request; `u64::MAX` is unlimited.
    pub max_redirects: u64,
    /// Timeout of each request; that of the load without one.
    pub timeout: Option<Nanos>,
}

impl Default for StepRules {
    fn default() -> Self {
        Self {
            skip: false,
            delay: Nanos::ZERO,
            repeat: 1,
            max_retries: 0,
            retry_interval: Nanos::SECOND,
            retries_as_client: false,
            follow_redirects: false,
            trust_redirects: false,
            max_redirects: 50,
            timeout: None,
        }
    }
}

/// Maximum number of doublings of the wait of a client.
const MAX_DOUBLINGS: u64 = 10;
/// Codes of gRPC that clients retry: RESOURCE_EXHAUSTED and UNAVAILABLE.
const RETRIED_CODES: [u16; 2] = [8, 14];

impl StepRules {
    /// Whether a response with this status, which the step does not expect, is retried: too many requests, or a failure
    /// of the service.
    pub(super) fn retries_status(&self, status: u16) -> bool {
        self.retries_as_client && (matches!(status, 429 | 500..600) || RETRIED_CODES.contains(&status))
    }

    /// Wait before the retry of this number, from 1.
    pub(super) fn retry_wait(&self, retry: u64, rng: &mut SeededRng) -> Nanos {
        if !self.retries_as_client {
            return self.retry_interval;
        }
        let doubled = self.retry_interval.as_secs_f64() * 2_f64.powi(retry.clamp(1, MAX_DOUBLINGS) as i32 - 1);
        Nanos::from_secs_f64(doubled * (0.5 + rng.unit()))
    }
}
