//! What can be set of admission.

use super::limit;
use crate::decide::Nanos;

/// What can be set; the defaults need no tuning.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    /// The limit of those in flight.
    pub limit: LimitTerms,
    /// The longest wait for a place while there is no overload; it is less where answers take less. With
    /// [`Nanos::NEVER`] nobody is judged by how long it waits, and who came first is always first.
    pub patience: Nanos,
    /// The longest wait while there is.
    pub haste: Nanos,
    /// How many may wait at most.
    pub queue: u32,
}

/// How many may be in flight.
#[derive(Clone, Debug, PartialEq)]
pub enum LimitTerms {
    /// So many, always.
    Fixed(u32),
    /// It is found out.
    Adaptive(limit::Options),
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            limit: LimitTerms::Adaptive(limit::Options::default()),
            patience: Nanos::from_secs(1),
            haste: Nanos::from_millis(5),
            queue: 1000,
        }
    }
}
