//! What a call in flight waits for.

use super::attempt::ConcludedAttempt;
use super::attempt_rate::SlotResult;

/// Event of a call in flight.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all events are ends, and a box would be an allocation per call")]
pub(super) enum CallEvent {
    /// Time has passed.
    Tick,
    /// An attempt has ended.
    Ended(u32, ConcludedAttempt),
    /// It is the turn of the retry of this attempt, with its slot.
    Turn(u32, SlotResult),
}
