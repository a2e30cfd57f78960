//! Stop mode of a sender.

use weir_base::Nanos;

/// Condition under which a sender ends; a later one replaces an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StopMode {
    /// Not before another mode is set.
    KeepRunning,
    /// When no job is left.
    WhenEmpty,
    /// When no request is in flight, at the latest after this time; nothing new is sent.
    WhenDrained(Nanos),
    /// At once.
    Now,
}
