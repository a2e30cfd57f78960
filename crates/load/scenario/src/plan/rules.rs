//! Rules of a step: its options with their values.

use weir_base::Nanos;

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
            follow_redirects: false,
            trust_redirects: false,
            max_redirects: 50,
            timeout: None,
        }
    }
}
