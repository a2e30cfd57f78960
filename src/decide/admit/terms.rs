//! What can be set of admission.

use super::limit;
use crate::decide::Nanos;

/// What can be set; the defaults need no tuning.
#[derive(Clone, Debug, PartialEq)]
pub struct AdmissionConfig {
    /// The limit of those in flight.
    pub limit: ConcurrencyLimitConfig,
    /// The longest wait for a place while there is no overload; it is less where answers take less. With
    /// [`Nanos::NEVER`] nobody is judged by how long it waits, and who came first is always first.
    pub max_queue_wait: Nanos,
    /// The longest wait while there is.
    pub overload_queue_wait: Nanos,
    /// How many may wait at most.
    pub max_queued: u32,
}

/// How many may be in flight.
#[derive(Clone, Debug, PartialEq)]
pub enum ConcurrencyLimitConfig {
    /// So many, always.
    Fixed(u32),
    /// It is found out.
    Adaptive(limit::Options),
}

impl Default for AdmissionConfig {
    fn default() -> Self {
        Self {
            limit: ConcurrencyLimitConfig::Adaptive(limit::Options::default()),
            max_queue_wait: Nanos::from_secs(1),
            overload_queue_wait: Nanos::from_millis(5),
            max_queued: 1000,
        }
    }
}
