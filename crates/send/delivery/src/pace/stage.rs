//! The state of the learnt pace: which limit is known, and whether an event is in progress.

use super::Nanos;

/// Kind of limit that the rejections so far show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitKind {
    Free,
    Unsure,
    Rate,
    Concurrency,
}

/// Current limit of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PaceStage {
    /// Requests are limited by rate and by `max_in_flight`.
    Open,
    /// No request goes before `until`, or with more than `max_in_flight` in flight.
    Paused { until: Nanos, max_in_flight: u64 },
    /// A probe is in flight; its response decides how to go on.
    Probing { since: Nanos },
}
