//! Configuration of admission.

use super::adaptive_limit;
use weir_base::Nanos;

/// Configuration of an upstream's admission; the defaults need no tuning.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionConfig {
    /// Limit of calls in flight.
    pub limit: ConcurrencyLimitConfig,
    /// Maximum queue wait without overload; less where service times are shorter. [`Nanos::NEVER`] switches waiting
    /// times off: the queue is first come first served, bounded by length and deadlines alone.
    pub max_queue_wait: Nanos,
    /// Maximum queue wait under overload.
    pub overload_queue_wait: Nanos,
    /// Maximum number of queued calls.
    pub max_queued: u32,
}

/// Limit of calls in flight at one upstream.
#[derive(Clone, Debug, PartialEq)]
pub enum ConcurrencyLimitConfig {
    /// A constant limit.
    Fixed(u32),
    /// A limit that is estimated from service times.
    Adaptive(adaptive_limit::Options),
}

impl Default for AdmissionConfig {
    fn default() -> Self {
        Self {
            limit: ConcurrencyLimitConfig::Adaptive(adaptive_limit::Options::default()),
            max_queue_wait: Nanos::from_secs(1),
            overload_queue_wait: Nanos::from_millis(5),
            max_queued: 1000,
        }
    }
}
