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
pub(crate) struct Post {
    letters: Mutex<Vec<u64>>,
    bell: OwnedFd,
}

impl Post {
    /// Whoever waits for this letter is woken.
    pub(crate) fn put(&self, letter: u64) {
        let mut letters = lock(&self.letters);
        letters.push(letter);
        if letters.len() == 1 {
            // It has room for more rings than there are letters in a lifetime.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    fn take(&self) -> Vec<u64> {
        let mut letters = lock(&self.letters);
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        std::mem::take(&mut letters)
    }
}

/// An asyncio loop's letters, and the futures that wait for them.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct Mailbox {
    post: Arc<Post>,
    create_future: Py<PyAny>,
    /// Only touched with the GIL held.
    futures: Mutex<Futures>,
    generation: u64,
}

#[derive(Default)]
struct Futures {
    last: u64,
    waiting: HashMap<u64, Py<PyAny>>,
}

/// A letter, and the future that it will set.
pub(crate) type Promise<'py> = (u64, Bound<'py, PyAny>);

impl Mailbox {
    /// A future for a letter that is still to be put in.
    pub(crate) fn promise<'py>(&self, py: Python<'py>) -> PyResult<Promise<'py>> {
        let future = self.create_future.bind(py).call0()?;
        let mut futures = lock(&self.futures);
        futures.last += 1;
        let letter = futures.last;
        futures.waiting.insert(letter, future.clone().unbind());
        Ok((letter, future))
    }

    pub(crate) fn post(&self) -> &Arc<Post> {
        &self.post
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
            post: Arc::new(Post { letters: Mutex::default(), bell }),
            create_future: asyncio.getattr(intern!(asyncio.py(), "create_future"))?.unbind(),
            futures: Mutex::default(),
            generation: kin::generation(),
        })
    }

    fn fileno(&self) -> RawFd {
        self.post.bell.as_fd().as_raw_fd()
    }

    /// Something has come: sets all futures whose letters are there.
    fn look(&self, py: Python<'_>) -> PyResult<()> {
        if self.generation != kin::generation() {
            return Ok(());
        }
        let letters = self.post.take();
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
