//! Progress timeouts of an origin's exchanges. There is no timer per exchange: the periodic sweep of connections checks
//! these, too.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use slab::Slab;

use super::error::SendError;
use super::request::RequestWriter;
use weir_base::Nanos;
use weir_base::failure::FailureKind;

/// All exchanges in progress with one origin.
#[derive(Debug)]
pub(super) struct ProgressTimeouts {
    timeout: Nanos,
    waits: RefCell<Slab<ProgressWait>>,
}

#[derive(Debug)]
struct ProgressWait {
    /// Whether the response is awaited.
    awaits_response: bool,
    /// Whether the request waits for its own body, not for the other end.
    is_starved: bool,
    since: WaitState,
    waker: Waker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitState {
    /// Since the last sweep.
    Fresh,
    /// Since the sweep at this time.
    Since(Nanos),
    TimedOut,
}

/// Progress of one exchange.
#[derive(Debug)]
pub(super) struct ProgressTimeout {
    timeouts: Rc<ProgressTimeouts>,
    key: usize,
}

impl ProgressTimeouts {
    pub(super) fn new(timeout: Nanos) -> Self {
        Self { timeout, waits: RefCell::default() }
    }

    /// Wakes the exchanges that exceed the timeout. It counts from the first sweep that finds the wait, so none ends
    /// too early.
    pub(super) fn sweep(&self, now: Nanos) {
        for (_, wait) in self.waits.borrow_mut().iter_mut().filter(|(_, wait)| wait.awaits_response && !wait.is_starved)
        {
            match wait.since {
                WaitState::Fresh => wait.since = WaitState::Since(now),
                WaitState::Since(then) if now - then >= self.timeout => {
                    wait.since = WaitState::TimedOut;
                    wait.waker.wake_by_ref();
                }
                WaitState::Since(_) | WaitState::TimedOut => {}
            }
        }
    }
}

impl ProgressTimeout {
    pub(super) fn new(stalls: &Rc<ProgressTimeouts>) -> Self {
        let wait = ProgressWait {
            awaits_response: false,
            is_starved: false,
            since: WaitState::Fresh,
            waker: Waker::noop().clone(),
        };
        Self { timeouts: Rc::clone(stalls), key: stalls.waits.borrow_mut().insert(wait) }
    }

    fn update(&self, change: impl FnOnce(&mut ProgressWait)) {
        if let Some(wait) = self.timeouts.waits.borrow_mut().get_mut(self.key) {
            change(wait);
        }
    }

    /// Records received bytes; the next [`Self::check`] starts the wait anew.
    pub(super) fn on_received(&self) {
        self.update(|wait| (wait.awaits_response, wait.since) = (false, WaitState::Fresh));
    }

    /// Records written bytes.
    pub(super) fn on_sent(&self) {
        self.update(|wait| (wait.is_starved, wait.since) = (false, WaitState::Fresh));
    }

    /// Sets whether the request waits for its own body, so that the other end cannot be waited for.
    pub(super) fn set_starved(&self, starves: bool) {
        self.update(|wait| {
            if std::mem::replace(&mut wait.is_starved, starves) != starves {
                wait.since = WaitState::Fresh;
            }
        });
    }

    /// Checks the timeout while nothing has come.
    ///
    /// # Errors
    /// If the timeout is exceeded.
    pub(super) fn check(&self, waker: &Waker) -> Result<(), SendError> {
        let mut too_long = false;
        self.update(|wait| {
            too_long = wait.since == WaitState::TimedOut;
            wait.awaits_response = true;
            if !wait.waker.will_wake(waker) {
                wait.waker.clone_from(waker);
            }
        });
        if too_long {
            let text = format!("nothing went either way for {}", self.timeouts.timeout);
            return Err(SendError::new(FailureKind::Timeout, text));
        }
        Ok(())
    }
}

impl Drop for ProgressTimeout {
    fn drop(&mut self) {
        drop(self.timeouts.waits.borrow_mut().try_remove(self.key));
    }
}

/// Checks the progress timeout while nothing has come; it runs only once the request is written.
pub(super) fn poll_progress<T>(
    cx: &Context<'_>,
    progress: Option<&ProgressTimeout>,
    upload: &mut RequestWriter,
) -> Poll<Result<T, SendError>> {
    let Some(progress) = progress else { return Poll::Pending };
    if upload.take_progress() {
        progress.on_sent();
    }
    progress.set_starved(upload.is_starved());
    match progress.check(cx.waker()) {
        Ok(()) => Poll::Pending,
        Err(error) => Poll::Ready(Err(error)),
    }
}
