//! Limiter of one process, and what its calls return to Python.

use pyo3::prelude::*;
use weir::limiter::{Limiter, TicketId, Wakes};

use crate::client::kin::generation;
use crate::errors;

/// Tickets to wake, and a line for the log.
pub(crate) type WakesForm = (Vec<u64>, Option<String>);

/// Limiter of the process that made it: a child of a fork must not change what its parent shares with others.
pub(crate) struct OwnLimiter {
    limiter: Limiter,
    generation: u64,
    is_shared: bool,
}

impl OwnLimiter {
    pub(super) fn new(limiter: Limiter, is_shared: bool) -> Self {
        Self { limiter, generation: generation(), is_shared }
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
}

pub(super) fn wakes_form(wakes: Wakes) -> WakesForm {
    (wakes.tickets.into_iter().map(|TicketId(ticket)| ticket).collect(), wakes.notice)
}
