//! A value that threads and asyncio loops wait for to change.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use weir::decide::Nanos;
use weir::machine::clock::Clock;

use super::mailbox::{CompletionFuture, EventfdChannel, Mailbox};

/// How often a waiting main thread looks whether Ctrl-C was pressed.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A value, and who waits for it.
#[derive(Debug, Default)]
pub(crate) struct WatchedValue<T> {
    state: Mutex<WatchedState<T>>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct WatchedState<T> {
    value: T,
    sleepers: usize,
    channels: Vec<(Arc<EventfdChannel>, u64)>,
}

/// What is there, or a future that is set when there may be.
pub(crate) enum WatchResult<'py, R> {
    Ready(R),
    Later(CompletionFuture<'py>),
}

impl<T: Send> WatchedValue<T> {
    fn lock(&self) -> MutexGuard<'_, WatchedState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with it that nobody waits for.
    pub(crate) fn with<R>(&self, does: impl FnOnce(&mut T) -> R) -> R {
        does(&mut self.lock().value)
    }

    /// Does something with it, and wakes all who wait.
    pub(crate) fn change<R>(&self, does: impl FnOnce(&mut T) -> R) -> R {
        let mut state = self.lock();
        let done = does(&mut state.value);
        for (post, letter) in state.channels.drain(..) {
            post.complete(letter);
        }
        if state.sleepers > 0 {
            self.changed.notify_all();
        }
        done
    }

    /// Waits until there is what is asked for, with the GIL released; signals are noticed. None: the time is over.
    pub(crate) fn wait<R: Send>(
        &self,
        py: Python<'_>,
        limit: Option<Duration>,
        mut ready: impl FnMut(&mut T) -> Option<R> + Send,
    ) -> PyResult<Option<R>> {
        if let Some(found) = self.with(&mut ready) {
            return Ok(Some(found));
        }
        let clock = Clock::starting_in(Nanos::ZERO);
        let mut looks = true;
        loop {
            let left = limit.map(|limit| limit.saturating_sub(Duration::from_nanos(clock.now().0)));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            let most = if looks {
                Some(left.map_or(SIGNAL_CHECK_INTERVAL, |left| left.min(SIGNAL_CHECK_INTERVAL)))
            } else {
                left
            };
            if let Some(found) = py.detach(|| self.sleep(most, &mut ready)) {
                return Ok(Some(found));
            }
            py.check_signals()?;
            // Only the main thread runs signal handlers.
            looks = looks && is_main(py)?;
        }
    }

    fn sleep<R>(&self, most: Option<Duration>, mut ready: impl FnMut(&mut T) -> Option<R>) -> Option<R> {
        let mut state = self.lock();
        loop {
            if let Some(found) = ready(&mut state.value) {
                return Some(found);
            }
            state.sleepers += 1;
            let over;
            (state, over) = match most {
                None => (self.changed.wait(state).unwrap_or_else(PoisonError::into_inner), false),
                Some(most) => {
                    let (state, over) = self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner);
                    (state, over.timed_out())
                }
            };
            state.sleepers -= 1;
            if over {
                return ready(&mut state.value);
            }
        }
    }

    /// What is asked for, if it is there, or a future of the mailbox's loop that is set with the next change.
    pub(crate) fn watch<'py, R>(
        &self,
        py: Python<'py>,
        mailbox: &Mailbox,
        mut ready: impl FnMut(&mut T) -> Option<R>,
    ) -> PyResult<WatchResult<'py, R>> {
        if let Some(found) = self.with(&mut ready) {
            return Ok(WatchResult::Ready(found));
        }
        let (letter, future) = mailbox.new_future(py)?;
        let mut state = self.lock();
        if let Some(found) = ready(&mut state.value) {
            drop(state);
            mailbox.forget(letter);
            return Ok(WatchResult::Ready(found));
        }
        state.channels.push((Arc::clone(mailbox.channel()), letter));
        Ok(WatchResult::Later((letter, future)))
    }
}

pub(crate) fn is_main(py: Python<'_>) -> PyResult<bool> {
    static MAIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let main = MAIN.import(py, "threading", "main_thread")?.call0()?.getattr(intern!(py, "ident"))?;
    CURRENT.import(py, "threading", "get_ident")?.call0()?.eq(main)
}
