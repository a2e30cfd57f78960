//! When a call began, and until when it may last.

use weir_base::Nanos;

/// Number of a call within its engine, and its times on the engine's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallStart {
    /// Number, which seeds the call's random values.
    pub(super) number: u64,
    /// Arrival of the call, before it is admitted.
    pub(super) began: Nanos,
    /// Deadline: the earlier one of policy and caller.
    pub(super) deadline: Nanos,
}
