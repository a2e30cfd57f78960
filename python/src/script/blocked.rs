//! Calls of a script that do not return.
//!
//! A call that waits in a function of C cannot be interrupted, and one that keeps Python's lock meanwhile leaves the
//! interpreter to no other thread. So what is asked of Python after a run that has ended without its script is asked by
//! a thread of its own, with a limit to its wait for the lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// Whether a call of this process has blocked.
static HAS_BLOCKED: AtomicBool = AtomicBool::new(false);

/// Maximum wait for Python's lock.
const LOCK_TIMEOUT: Duration = Duration::from_millis(300);

/// Whether a call of a script of this process has blocked: its thread is still there.
pub(super) fn has_blocked() -> bool {
    HAS_BLOCKED.load(Ordering::Relaxed)
}

/// Place in its script of the thread of this number, by `threading.get_ident()`; `None` if it keeps Python's lock, so
/// that nothing can look.
pub(super) fn place_of(thread: u64) -> Option<String> {
    HAS_BLOCKED.store(true, Ordering::Relaxed);
    attached_in_time(move |py| {
        let place = py.import("weir._task_errors").and_then(|module| module.call_method1("place_of", (thread,)));
        place.and_then(|place| place.extract()).ok()
    })
    .flatten()
}

/// Calls a function with the interpreter: after a call has blocked only if its lock can be had.
pub(super) fn attached<T: Send + 'static>(call: impl FnOnce(Python<'_>) -> T + Send + 'static) -> Option<T> {
    if has_blocked() { attached_in_time(call) } else { Some(Python::attach(call)) }
}

fn attached_in_time<T: Send + 'static>(call: impl FnOnce(Python<'_>) -> T + Send + 'static) -> Option<T> {
    let (attached, is_attached) = mpsc::channel();
    let (result, results) = mpsc::channel();
    thread::spawn(move || {
        Python::attach(|py| {
            // Later than the limit there is no receiver.
            if attached.send(()).is_ok() {
                let _ = result.send(call(py));
            }
        });
    });
    is_attached.recv_timeout(LOCK_TIMEOUT).ok()?;
    results.recv().ok()
}
