//! Wake-ups of an asyncio loop by the sender's thread: completed IDs, and an eventfd that the loop reads.
//!
//! The eventfd is written for the first ID only; the loop takes all IDs at once.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex};

use pyo3::intern;
use pyo3::prelude::*;
use rustix::event::{EventfdFlags, eventfd};

use crate::client::kin;
use crate::errors;
use weir::machine::lock::lock;

/// Channel of completed IDs, from any thread to a loop.
#[derive(Debug)]
pub(crate) struct EventfdChannel {
    completed: Mutex<Vec<u64>>,
    eventfd: OwnedFd,
}

impl EventfdChannel {
    /// Completes the future with this ID.
    pub(crate) fn complete(&self, id: u64) {
        let mut completed = lock(&self.completed);
        completed.push(id);
        if completed.len() == 1 {
            // The counter of an eventfd does not overflow in a process's lifetime.
            let _ = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
        }
    }

    fn drain(&self) -> Vec<u64> {
        let mut completed = lock(&self.completed);
        let _ = rustix::io::read(&self.eventfd, &mut [0; 8]);
        std::mem::take(&mut completed)
    }
}

/// Pending futures of an asyncio loop, by ID.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct Mailbox {
    channel: Arc<EventfdChannel>,
    create_future: Py<PyAny>,
    /// Accessed only with the GIL held.
    futures: Mutex<PendingFutures>,
    generation: u64,
}

#[derive(Default)]
struct PendingFutures {
    last_id: u64,
    waiting: HashMap<u64, Py<PyAny>>,
}

/// ID of a future, and the future.
pub(crate) type CompletionFuture<'py> = (u64, Bound<'py, PyAny>);

impl Mailbox {
    /// New pending future.
    pub(crate) fn new_future<'py>(&self, py: Python<'py>) -> PyResult<CompletionFuture<'py>> {
        let future = self.create_future.bind(py).call0()?;
        let mut futures = lock(&self.futures);
        futures.last_id += 1;
        let id = futures.last_id;
        futures.waiting.insert(id, future.clone().unbind());
        Ok((id, future))
    }

    pub(crate) fn channel(&self) -> &Arc<EventfdChannel> {
        &self.channel
    }
}

#[pymethods]
impl Mailbox {
    /// Mailbox of an asyncio loop, which has to watch `fileno`.
    #[new]
    fn new(asyncio: &Bound<'_, PyAny>) -> PyResult<Self> {
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| errors::no_event_loop(&error.into()))?;
        Ok(Self {
            channel: Arc::new(EventfdChannel { completed: Mutex::default(), eventfd }),
            create_future: asyncio.getattr(intern!(asyncio.py(), "create_future"))?.unbind(),
            futures: Mutex::default(),
            generation: kin::generation(),
        })
    }

    fn fileno(&self) -> RawFd {
        self.channel.eventfd.as_fd().as_raw_fd()
    }

    /// Sets the futures of all completed IDs.
    fn on_readable(&self, py: Python<'_>) -> PyResult<()> {
        if self.generation != kin::generation() {
            return Ok(());
        }
        let completed = self.channel.drain();
        let mut futures = lock(&self.futures);
        let ready: Vec<_> = completed.iter().filter_map(|id| futures.waiting.remove(id)).collect();
        drop(futures);
        for future in ready {
            // The future may be cancelled.
            if !future.call_method0(py, intern!(py, "done"))?.is_truthy(py)? {
                future.call_method1(py, intern!(py, "set_result"), (py.None(),))?;
            }
        }
        Ok(())
    }

    /// Forgets a future that is not awaited any more.
    pub(crate) fn forget(&self, id: u64) {
        let future = lock(&self.futures).waiting.remove(&id);
        drop(future);
    }
}
