//! How the sender's thread wakes an asyncio loop: letters, and a bell that the loop listens to.
//!
//! The bell rings when the first letter is put in; all that come before the loop has looked are taken out together.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use rustix::event::{EventfdFlags, eventfd};

use crate::client::kin;
use crate::errors;

/// Where letters are put, by any thread.
#[derive(Debug)]
pub(crate) struct EventfdChannel {
    completed: Mutex<Vec<u64>>,
    eventfd: OwnedFd,
}

impl EventfdChannel {
    /// Whoever waits for this letter is woken.
    pub(crate) fn complete(&self, letter: u64) {
        let mut letters = lock(&self.completed);
        letters.push(letter);
        if letters.len() == 1 {
            // It has room for more rings than there are letters in a lifetime.
            let _ = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
        }
    }

    fn drain(&self) -> Vec<u64> {
        let mut letters = lock(&self.completed);
        let _ = rustix::io::read(&self.eventfd, &mut [0; 8]);
        std::mem::take(&mut letters)
    }
}

/// An asyncio loop's letters, and the futures that wait for them.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct Mailbox {
    channel: Arc<EventfdChannel>,
    create_future: Py<PyAny>,
    /// Only touched with the GIL held.
    futures: Mutex<PendingFutures>,
    generation: u64,
}

#[derive(Default)]
struct PendingFutures {
    last_id: u64,
    waiting: HashMap<u64, Py<PyAny>>,
}

/// A letter, and the future that it will set.
pub(crate) type CompletionFuture<'py> = (u64, Bound<'py, PyAny>);

impl Mailbox {
    /// A future for a letter that is still to be put in.
    pub(crate) fn new_future<'py>(&self, py: Python<'py>) -> PyResult<CompletionFuture<'py>> {
        let future = self.create_future.bind(py).call0()?;
        let mut futures = lock(&self.futures);
        futures.last_id += 1;
        let letter = futures.last_id;
        futures.waiting.insert(letter, future.clone().unbind());
        Ok((letter, future))
    }

    pub(crate) fn channel(&self) -> &Arc<EventfdChannel> {
        &self.channel
    }
}

#[pymethods]
impl Mailbox {
    /// For this asyncio loop, which has to listen to it.
    #[new]
    fn new(asyncio: &Bound<'_, PyAny>) -> PyResult<Self> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| errors::no_event_loop(&error.into()))?;
        Ok(Self {
            channel: Arc::new(EventfdChannel { completed: Mutex::default(), eventfd: bell }),
            create_future: asyncio.getattr(intern!(asyncio.py(), "create_future"))?.unbind(),
            futures: Mutex::default(),
            generation: kin::generation(),
        })
    }

    fn fileno(&self) -> RawFd {
        self.channel.eventfd.as_fd().as_raw_fd()
    }

    /// Something has come: sets all futures whose letters are there.
    fn on_readable(&self, py: Python<'_>) -> PyResult<()> {
        if self.generation != kin::generation() {
            return Ok(());
        }
        let letters = self.channel.drain();
        let mut futures = lock(&self.futures);
        let ready: Vec<_> = letters.iter().filter_map(|letter| futures.waiting.remove(letter)).collect();
        drop(futures);
        for future in ready {
            // Somebody else may have cancelled it.
            if !future.call_method0(py, intern!(py, "done"))?.is_truthy(py)? {
                future.call_method1(py, intern!(py, "set_result"), (py.None(),))?;
            }
        }
        Ok(())
    }

    /// Nobody waits for this letter any more.
    pub(crate) fn forget(&self, letter: u64) {
        let future = lock(&self.futures).waiting.remove(&letter);
        drop(future);
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
