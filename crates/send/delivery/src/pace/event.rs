//! Rejections that belong together.

use super::Nanos;

/// The first rejection, and all others of requests sent before it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct PaceEvent {
    /// Time of its first rejection, or of the latest rejected probe; requests sent before belong to the event.
    pub(super) start: Nanos,
    /// Number of its rejections.
    pub(super) rejections: u64,
    /// Fewest requests in flight at one of them.
    pub(super) min_in_flight: u64,
    /// Weight per second at which it happened; infinite without a limit by time.
    pub(super) rate: f64,
    /// Length of its pause.
    pub(super) pause: Nanos,
}

impl Default for PaceEvent {
    /// No rejection.
    fn default() -> Self {
        Self { start: Nanos::ZERO, rejections: 0, min_in_flight: u64::MAX, rate: f64::INFINITY, pause: Nanos::ZERO }
    }
}
