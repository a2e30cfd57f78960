//! What a call asks for, and how it ends.

use weir_base::Nanos;

/// Reason to launch an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchReason {
    /// First attempt of the call.
    First,
    /// The delay of this stage (from 0) has passed.
    Stage(u32),
    /// An attempt failed, which launches this stage early.
    Failure(u32),
    /// Retry of a failed attempt; the call's first retry is 1.
    Retry(u32),
}

/// How a call ends: with the response of an attempt, or a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallVerdict {
    /// The response of this attempt is the call's.
    Won(u32),
    /// All attempts failed.
    Failed {
        /// Attempt that failed last.
        last: u32,
    },
    /// The deadline passed.
    DeadlineExceeded,
    /// The caller disconnected.
    ClientClosed,
}

/// Action that the caller of the decision carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HedgeAction {
    /// Send an attempt. Attempts are numbered from 0 in the order of their launches.
    Launch {
        /// Number of the attempt.
        attempt: u32,
        /// Reason of the launch.
        reason: LaunchReason,
    },
    /// An attempt is not sent, since the budget is empty; once per attempt.
    BudgetExhausted {
        /// Reason of the launch that is left out.
        reason: LaunchReason,
    },
    /// The retry of this failed attempt is due, and waits for its turn; only of calls that
    /// [take turns](super::HedgedCall::take_turns).
    AwaitTurn(u32),
    /// Cancel this attempt; its further events are ignored.
    Cancel(u32),
    /// End the call; once, and nothing is launched afterwards.
    Finish(CallVerdict),
    /// Send an [`Event::Tick`](super::Event::Tick) at this time; replaces the last such time. May be now, but never [`Nanos::NEVER`].
    WakeAt(Nanos),
}

/// Reason why a failure was not followed by another attempt, besides the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRepeated {
    /// Failures of this kind are not repeated.
    Kind,
    /// The request was sent, and its method is not one that may be sent twice.
    Method,
    /// The body was a stream, which cannot be sent again.
    Stream,
    /// All retries of the call are used up.
    NoneLeft,
    /// The delay, or Retry-After, would end after the deadline.
    Deadline,
}
