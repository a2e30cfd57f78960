//! Watchdog of calls: a script that loops for ever does not stop the load for ever.
//!
//! A call costs two atomic stores and no look at a clock; the watchdog's thread sees that a call has lasted as long as
//! the timeout when it finds the same one at all of several looks. It then [interrupts](super::interrupt) the call. One
//! that goes on nevertheless is in a function of C (`os.execute`, a socket): no thread can be made to leave it, and
//! the process ends.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use weir_machine::lock::{lock, wait_timeout_while};

use super::interrupt::InterruptHandle;

/// Number of looks within a timeout.
const LOOKS: u32 = 4;
/// Time in which an interrupted call must have ended, in timeouts.
const MAX_INTERRUPTED_TIMEOUTS: u32 = 2;

/// Callback for a call that cannot be interrupted, with the reason; it should end the process.
pub(crate) type StuckCallback = dyn Fn(&str) + Send + Sync;

/// Calls of one interpreter.
#[derive(Debug)]
pub(crate) struct CallWatch {
    handle: InterruptHandle,
    /// Twice the number of calls, + 1 during one; with [`INTERRUPTED`] while it is interrupted.
    calls: AtomicU64,
    /// Number of hooks that were set.
    hooks: AtomicU64,
}

/// Mark of an interrupted call.
const INTERRUPTED: u64 = 1 << 63;

impl CallWatch {
    pub(crate) fn new(handle: InterruptHandle) -> Self {
        Self { handle, calls: AtomicU64::new(0), hooks: AtomicU64::new(0) }
    }

    /// Makes a call that may be interrupted.
    #[inline]
    pub(crate) fn watch<T>(&self, call: impl FnOnce() -> T) -> T {
        let number = self.calls.load(Ordering::Relaxed) + 1;
        self.calls.store(number, Ordering::Relaxed);
        let result = call();
        if self.calls.swap(number + 1, Ordering::AcqRel) != number {
            self.clear();
        }
        result
    }

    #[cold]
    fn clear(&self) {
        // The watchdog sets the hook after the mark.
        while self.hooks.swap(0, Ordering::AcqRel) == 0 {
            thread::yield_now();
        }
        self.handle.clear();
    }

    /// Interrupts the call of this number, if it still runs.
    fn interrupt(&self, number: u64) {
        let marked = number | INTERRUPTED;
        if self.calls.compare_exchange(number, marked, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.handle.set();
            self.hooks.store(1, Ordering::Release);
        }
    }
}

/// Thread that interrupts calls which take longer than a timeout.
pub(crate) struct Watchdog {
    stop: Arc<(Mutex<bool>, Condvar)>,
    watches: Arc<Mutex<Vec<Arc<CallWatch>>>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog").finish_non_exhaustive()
    }
}

impl Watchdog {
    /// Watches the calls of added interpreters until it is dropped; `stuck` is called when one cannot be interrupted.
    ///
    /// # Errors
    /// If the system has no thread left.
    pub(crate) fn start(timeout: Duration, stuck: Box<StuckCallback>) -> std::io::Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let watches: Arc<Mutex<Vec<Arc<CallWatch>>>> = Arc::default();
        let (stopped, watched) = (Arc::clone(&stop), Arc::clone(&watches));
        let run = move || {
            let mut seen: Vec<(u64, u32)> = Vec::new();
            let (flag, notified) = &*stopped;
            loop {
                let is_stopped = *wait_timeout_while(notified, lock(flag), timeout / LOOKS, |stop| !*stop);
                if is_stopped {
                    return;
                }
                let watches = lock(&watched);
                seen.resize(watches.len(), (0, 0));
                for (watch, (last, looks)) in watches.iter().zip(&mut seen) {
                    look(watch, last, looks, stuck.as_ref());
                }
            }
        };
        let thread = thread::Builder::new().name("weir-watchdog".into()).spawn(run)?;
        Ok(Self { stop, watches, thread: Some(thread) })
    }

    /// Watches the calls of one more interpreter, which must live longer.
    pub(crate) fn add(&self, watch: Arc<CallWatch>) {
        lock(&self.watches).push(watch);
    }
}

/// Looks at an interpreter once; `looks` is the number of looks that have found the call `last`.
fn look(watch: &CallWatch, last: &mut u64, looks: &mut u32, stuck: &StuckCallback) {
    let now = watch.calls.load(Ordering::Relaxed);
    let number = now & !INTERRUPTED;
    let is_running = number % 2 == 1;
    if !is_running || number != *last {
        (*last, *looks) = (number, 0);
        return;
    }
    *looks += 1;
    if *looks == LOOKS {
        watch.interrupt(number);
    } else if *looks == LOOKS * (1 + MAX_INTERRUPTED_TIMEOUTS) {
        stuck(
            "a call took longer than --script-timeout and cannot be interrupted: it is in a function that is not Lua",
        );
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *lock(&self.stop.0) = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // It does not panic; a panic would be no reason to fail here.
            let _ = thread.join();
        }
    }
}
