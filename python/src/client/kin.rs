//! What belongs to one process only, though a fork copies it.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

/// How many forks this process is away from the first.
static FORK_COUNT: AtomicU64 = AtomicU64::new(0);

/// Tells that this process is a child; Python calls it after a fork.
#[pyfunction]
pub(crate) fn forked() {
    FORK_COUNT.fetch_add(1, Ordering::Relaxed);
}

/// A number that differs between a process and its children.
pub(crate) fn generation() -> u64 {
    FORK_COUNT.load(Ordering::Relaxed)
}

/// A value that a child never drops: a parent and its child share the epoll instance, and sockets that leave it in the
/// child would leave it in the parent.
pub(crate) struct ForkSafe<T> {
    value: Arc<T>,
    generation: u64,
}

impl<T> ForkSafe<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Arc::new(value), generation: generation() }
    }

    /// Whether this process made it.
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
