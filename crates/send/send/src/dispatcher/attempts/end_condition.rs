//! Condition of the end: the stop mode, and the first failure.

use tokio::sync::watch;

use crate::sender_error::SenderError;
use crate::stop_mode::StopMode;
use weir_base::Nanos;

/// Condition of the end, and whether it holds.
#[derive(Debug)]
pub(super) struct EndCondition {
    stop_mode: watch::Receiver<StopMode>,
    /// Timeout of an attempt: if all keys are disabled, requests in flight may still get responses.
    attempt_timeout: Nanos,
    failure: Option<SenderError>,
    /// Whether something was recorded or has ended since the last check.
    is_check_due: bool,
    /// Time at which requests in flight are abandoned; NEVER before they are drained.
    deadline: Nanos,
    is_reached: bool,
}

impl EndCondition {
    pub(super) fn new(stop_mode: watch::Receiver<StopMode>, attempt_timeout: Nanos) -> Self {
        Self {
            stop_mode,
            attempt_timeout,
            failure: None,
            is_check_due: true,
            deadline: Nanos::NEVER,
            is_reached: false,
        }
    }

    /// Resolves when the stop mode has changed.
    pub(super) async fn mode_changed(&mut self) {
        // The sender of the modes outlives this thread.
        let _ = self.stop_mode.changed().await;
        self.is_check_due = true;
    }

    /// Makes a check due.
    pub(super) fn check(&mut self) {
        self.is_check_due = true;
    }

    /// Whether a check is due; resets that.
    pub(super) fn take_due(&mut self) -> bool {
        !self.is_reached && std::mem::take(&mut self.is_check_due)
    }

    /// Ends the sender with this error, unless it has another one.
    pub(super) fn fail(&mut self, error: SenderError) {
        self.failure.get_or_insert(error);
        self.is_check_due = true;
    }

    /// Whether the sender has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Stop mode, with the failure.
    pub(super) fn mode(&mut self) -> StopMode {
        let mode = *self.stop_mode.borrow_and_update();
        match &self.failure {
            Some(SenderError::NoKeys(_)) => mode.max(StopMode::WhenDrained(self.attempt_timeout)),
            Some(_) => StopMode::Now,
            None => mode,
        }
    }

    /// Begins to drain, with the time at which requests in flight are abandoned. False if it has begun.
    pub(super) fn begin_drain(&mut self, deadline: Nanos) -> bool {
        let begins = self.deadline == Nanos::NEVER;
        if begins {
            self.deadline = deadline;
        }
        begins
    }

    /// Time at which a check is due; NEVER once the condition holds.
    pub(super) fn wake_at(&self) -> Nanos {
        if self.is_reached { Nanos::NEVER } else { self.deadline }
    }

    /// Records that the condition holds.
    pub(super) fn reach(&mut self) {
        self.is_reached = true;
    }

    /// Whether the condition holds: nothing more is sent.
    pub(super) fn is_reached(&self) -> bool {
        self.is_reached
    }

    /// Outcome of the sender.
    pub(super) fn outcome(self) -> Result<(), SenderError> {
        self.failure.map_or(Ok(()), Err)
    }
}
