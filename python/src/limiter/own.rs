//! Limiter of one process, and those who wait for it: in Python, and in calls of the core.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};
use std::task::{Context, Poll, Waker};

use pyo3::prelude::*;
use weir::limiter::{Limiter, TicketId, Wakes};
use weir::machine::lock::lock;

use crate::client::kin::generation;
use crate::errors;

/// Tickets to wake, and a line for the log.
pub(crate) type WakesForm = (Vec<u64>, Option<String>);

/// Limiter of the process that made it: a child of a fork must not change what its parent shares with others.
pub(crate) struct OwnLimiter {
    limiter: Limiter,
    generation: u64,
    is_shared: bool,
    /// Waits of calls of the core, by ticket.
    waits: Mutex<HashMap<u64, TaskWait>>,
    /// Wakes those that wait in Python: takes a [`WakesForm`].
    wake_python: OnceLock<Py<PyAny>>,
}

/// Wait of a task.
#[derive(Debug, Default)]
struct TaskWait {
    is_woken: bool,
    waker: Option<Waker>,
}

impl OwnLimiter {
    pub(super) fn new(limiter: Limiter, is_shared: bool) -> Self {
        let (waits, wake_python) = (Mutex::default(), OnceLock::new());
        Self { limiter, generation: generation(), is_shared, waits, wake_python }
    }

    /// Closes the parent's files, in a child of a fork.
    pub(super) fn release_in_child(&self) {
        self.limiter.release_in_child();
    }

    /// The limiter; None in a child of a fork.
    pub(super) fn ours(&self) -> Option<&Limiter> {
        (self.generation == generation()).then_some(&self.limiter)
    }

    /// Calls the limiter, without the GIL if it leaves the process.
    pub(super) fn call<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&Limiter) -> T + Send) -> PyResult<T> {
        let wrong = "the limiter belongs to the process before the fork; make a new one, or give shared='limits.db'";
        let limiter = self.ours().ok_or_else(|| errors::usage(wrong))?;
        Ok(if self.is_shared { py.detach(|| call(limiter)) } else { call(limiter) })
    }

    /// Sets what wakes those that wait in Python.
    pub(super) fn set_wake_python(&self, wake: Py<PyAny>) {
        // There is one.
        let _ = self.wake_python.set(wake);
    }

    /// Wakes tasks, and returns whom Python is to wake.
    pub(super) fn wakes_form(&self, wakes: Wakes) -> WakesForm {
        let mut waits = lock(&self.waits);
        let mut others = Vec::new();
        for TicketId(ticket) in wakes.tickets {
            match waits.get_mut(&ticket) {
                Some(wait) => {
                    wait.is_woken = true;
                    wait.waker.take().into_iter().for_each(Waker::wake);
                }
                None => others.push(ticket),
            }
        }
        (others, wakes.notice)
    }

    /// Wakes all that are to be woken, from a task.
    pub(super) fn wake(&self, wakes: Wakes) {
        let form = self.wakes_form(wakes);
        if form.0.is_empty() && form.1.is_none() {
            return;
        }
        let Some(wake) = self.wake_python.get() else { return };
        // An interpreter that ends has nothing that waits.
        Python::try_attach(|py| {
            if let Err(error) = wake.call1(py, (form,)) {
                error.write_unraisable(py, None);
            }
        });
    }

    /// Begins a wait of a task.
    pub(super) fn begin_wait(&self, TicketId(ticket): TicketId) {
        lock(&self.waits).insert(ticket, TaskWait::default());
    }

    /// Ready if the task was woken since the last time.
    pub(super) fn poll_wait(&self, TicketId(ticket): TicketId, cx: &mut Context<'_>) -> Poll<()> {
        let mut waits = lock(&self.waits);
        let Some(wait) = waits.get_mut(&ticket) else { return Poll::Ready(()) };
        if std::mem::take(&mut wait.is_woken) {
            return Poll::Ready(());
        }
        wait.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ends a wait of a task.
    pub(super) fn end_wait(&self, TicketId(ticket): TicketId) {
        lock(&self.waits).remove(&ticket);
    }
}
