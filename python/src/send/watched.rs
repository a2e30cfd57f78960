//! Value whose changes threads and asyncio loops wait for.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use weir::base::Nanos;
use weir::machine::clock::Clock;
use weir::machine::lock::{lock, wait, wait_timeout};

use super::mailbox::{CompletionFuture, EventfdChannel, Mailbox};

/// Interval in which a waiting main thread checks for signals.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Value with its waiting threads and futures.
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

/// Result of a watch: a value, or a future that is set at the next change.
pub(crate) enum WatchResult<'py, R> {
    Ready(R),
    Later(CompletionFuture<'py>),
}

impl<T: Send> WatchedValue<T> {
    /// Accesses the value without waking waiters.
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        action(&mut lock(&self.state).value)
    }

    /// Changes the value and wakes all waiters.
    pub(crate) fn change<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        let mut state = lock(&self.state);
        let done = action(&mut state.value);
        for (channel, id) in state.channels.drain(..) {
            channel.complete(id);
        }
        if state.sleepers > 0 {
            self.changed.notify_all();
        }
        done
    }

    /// Waits until `ready` returns a value, with the GIL released and signals handled; None after the timeout.
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
        let mut is_main_thread = true;
        loop {
            let left = limit.map(|limit| limit.saturating_sub(Duration::from_nanos(clock.now().0)));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            let most = if is_main_thread {
                Some(left.map_or(SIGNAL_CHECK_INTERVAL, |left| left.min(SIGNAL_CHECK_INTERVAL)))
            } else {
                left
            };
            if let Some(found) = py.detach(|| self.sleep(most, &mut ready)) {
                return Ok(Some(found));
            }
            py.check_signals()?;
            // Only the main thread runs signal handlers.
            is_main_thread = is_main_thread && is_main(py)?;
        }
    }

    fn sleep<R>(&self, most: Option<Duration>, mut ready: impl FnMut(&mut T) -> Option<R>) -> Option<R> {
        let mut state = lock(&self.state);
        loop {
            if let Some(found) = ready(&mut state.value) {
                return Some(found);
            }
            state.sleepers += 1;
            let over;
            (state, over) = match most {
                None => (wait(&self.changed, state), false),
                Some(most) => wait_timeout(&self.changed, state, most),
            };
            state.sleepers -= 1;
            if over {
                return ready(&mut state.value);
            }
        }
    }

    /// Value that `ready` returns, else a future of the mailbox's loop that is set at the next change.
    pub(crate) fn watch<'py, R>(
        &self,
        py: Python<'py>,
        mailbox: &Mailbox,
        mut ready: impl FnMut(&mut T) -> Option<R>,
    ) -> PyResult<WatchResult<'py, R>> {
        if let Some(found) = self.with(&mut ready) {
            return Ok(WatchResult::Ready(found));
        }
        let (id, future) = mailbox.new_future(py)?;
        let mut state = lock(&self.state);
        if let Some(found) = ready(&mut state.value) {
            drop(state);
            mailbox.forget(id);
            return Ok(WatchResult::Ready(found));
        }
        state.channels.push((Arc::clone(mailbox.channel()), id));
        Ok(WatchResult::Later((id, future)))
    }
}

pub(crate) fn is_main(py: Python<'_>) -> PyResult<bool> {
    static MAIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let main = MAIN.import(py, "threading", "main_thread")?.call0()?.getattr(intern!(py, "ident"))?;
    CURRENT.import(py, "threading", "get_ident")?.call0()?.eq(main)
}
