//! Timer of the steps of one exchange.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;

use super::error::SendError;
use super::wire_options::StepTimeouts;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::timer::{Sleep, Timer};

/// Step of an exchange that waits for the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExchangeStep {
    Write,
    Read,
}

/// Timer of the step that an exchange is in.
#[derive(Debug)]
pub(super) struct StepTimer {
    timer: Timer,
    timeouts: StepTimeouts,
    armed: Option<(ExchangeStep, Sleep)>,
}

impl StepTimer {
    /// A timer that is not armed; None without timeouts of writing and reading.
    pub(super) fn new(timer: &Timer, timeouts: StepTimeouts) -> Option<Box<Self>> {
        let has_any = timeouts.write.min(timeouts.read) != Nanos::NEVER;
        has_any.then(|| Box::new(Self { timer: timer.clone(), timeouts, armed: None }))
    }

    /// Counts from now on: bytes were taken, or have come.
    pub(super) fn on_progress(&mut self) {
        self.armed = None;
    }

    /// Checks the timeout of the step that is waited in; None: for the caller, which has none.
    ///
    /// # Errors
    /// If the timeout is exceeded.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, step: Option<ExchangeStep>) -> Result<(), SendError> {
        let Some(step) = step else {
            self.armed = None;
            return Ok(());
        };
        let timeout = match step {
            ExchangeStep::Write => self.timeouts.write,
            ExchangeStep::Read => self.timeouts.read,
        };
        if timeout == Nanos::NEVER {
            self.armed = None;
            return Ok(());
        }
        if self.armed.as_ref().is_some_and(|(armed, _)| *armed != step) {
            self.armed = None;
        }
        let (_, sleep) = self.armed.get_or_insert_with(|| (step, self.timer.sleep(timeout)));
        if Pin::new(sleep).poll(cx).is_ready() { Err(exceeded(step, timeout)) } else { Ok(()) }
    }
}

fn exceeded(step: ExchangeStep, timeout: Nanos) -> SendError {
    match step {
        ExchangeStep::Write => SendError::not_taken(timeout),
        ExchangeStep::Read => SendError::new(FailureKind::Timeout, format!("no response within {timeout}")),
    }
}
