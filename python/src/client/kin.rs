//! State that belongs to one process and must survive a fork unused.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

/// Number of forks between the first process and this one.
static FORK_COUNT: AtomicU64 = AtomicU64::new(0);

/// Marks this process as a child; Python calls it after a fork.
#[pyfunction]
pub(crate) fn forked() {
    FORK_COUNT.fetch_add(1, Ordering::Relaxed);
}

/// Generation of this process: differs from those of its children.
pub(crate) fn generation() -> u64 {
    FORK_COUNT.load(Ordering::Relaxed)
}

/// Value that a child of a fork never drops: parent and child share the epoll instance, so a socket that the child
/// removed would be removed for the parent.
pub(crate) struct ForkSafe<T> {
    value: Arc<T>,
    generation: u64,
}

impl<T> ForkSafe<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Arc::new(value), generation: generation() }
    }

    /// Whether this process created the value.
    pub(crate) fn is_ours(&self) -> bool {
        self.generation == generation()
    }
}

impl<T> Deref for ForkSafe<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Drop for ForkSafe<T> {
    fn drop(&mut self) {
        if !self.is_ours() {
            std::mem::forget(Arc::clone(&self.value));
        }
    }
}
