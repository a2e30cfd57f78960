//! What happens to a call.

use weir_base::Nanos;
use weir_retry::policy::AttemptFailure;

/// Event of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The attempt succeeded.
    Succeeded(u32),
    /// The attempt failed.
    Failed {
        /// Number of the attempt.
        attempt: u32,
        /// Kind of the failure.
        failure: AttemptFailure,
        /// Retry-After of the response, from now.
        retry_after: Option<Nanos>,
    },
    /// Time has passed. Early, late and superfluous ticks are harmless.
    Tick,
    /// It is the turn of the retry of this failed attempt: the answer to [`AwaitTurn`](super::HedgeAction::AwaitTurn).
    Turn(u32),
    /// The caller disconnected.
    ClientClosed,
}
