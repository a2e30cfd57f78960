//! Python's state of the worker thread.
//!
//! `unsafe`, since the interpreter has no safe way to keep a thread's state while the thread does not run Python.
#![allow(unsafe_code, reason = "PyGILState_Ensure and PyEval_SaveThread are functions of the interpreter, which is C")]

use std::thread::{self, ThreadId};

use pyo3::ffi;

/// Python's state of a thread, kept while the thread does other things. Without it each call from the thread would make
/// a new one, and greenlets would be lost with the old.
#[derive(Debug)]
pub(super) struct KeptThreadState {
    thread: ThreadId,
    gil: ffi::PyGILState_STATE,
    saved: *mut ffi::PyThreadState,
}

// SAFETY: the state is used by `drop` alone, and only on the thread that it belongs to.
unsafe impl Send for KeptThreadState {}

impl KeptThreadState {
    /// Makes a state for this thread, which does not hold the GIL; neither does it afterwards.
    pub(super) fn keep() -> Self {
        // SAFETY: the interpreter runs, since a run ends before the Python code that began it; `Ensure` may be called by
        // any thread that does not hold the GIL, and `SaveThread` by the one that now does.
        let (gil, saved) = unsafe { (ffi::PyGILState_Ensure(), ffi::PyEval_SaveThread()) };
        Self { thread: thread::current().id(), gil, saved }
    }
}

impl Drop for KeptThreadState {
    fn drop(&mut self) {
        // The state of another thread cannot be given back here; a leak is harmless.
        if thread::current().id() == self.thread {
            // SAFETY: both undo what `keep` has done, in the opposite order and on the same thread, which does not hold
            // the GIL: every call has released it.
            unsafe {
                ffi::PyEval_RestoreThread(self.saved);
                ffi::PyGILState_Release(self.gil);
            }
        }
    }
}
