//! State that belongs to one process and must survive a fork unused.
#![allow(unsafe_code, reason = "the system calls a function in each child of a fork")]

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};

/// Number of forks between the first process and this one.
static FORK_COUNT: AtomicU64 = AtomicU64::new(0);

/// Has the system count forks in each child, before anything else runs there: Python's own hooks come after it has
/// dropped what the other threads had.
pub(crate) fn count_forks() {
    static COUNTED: Once = Once::new();
    extern "C" fn count() {
        FORK_COUNT.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the function may run in any child, since it adds to a number and does nothing else. This module is never
    // unloaded. Without memory for the list of handlers nothing is counted, and nothing else would go on.
    COUNTED.call_once(|| {
        let _ = unsafe { libc::pthread_atfork(None, None, Some(count)) };
    });
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
