//! Counts of samples between two updates of the limit.

use weir_base::Nanos;

/// Counts between two updates of the limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct SampleWindow {
    pub(super) since: Nanos,
    pub(super) count: u32,
    /// Samples that began at 90% of the limit or more.
    pub(super) pressed: u32,
    /// Calls that the upstream rejected for overload.
    pub(super) rejected: u32,
    /// Calls with [`super::Lateness::Unresponsive`].
    pub(super) timed_out: u32,
    /// Sum of the calls in flight at the start of rejected ones.
    pub(super) rejected_in_flight: u64,
}

impl SampleWindow {
    pub(super) fn new(since: Nanos) -> Self {
        Self { since, count: 0, pressed: 0, rejected: 0, timed_out: 0, rejected_in_flight: 0 }
    }
}
