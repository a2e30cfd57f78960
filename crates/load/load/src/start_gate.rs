//! The start of a run: as soon as all its threads are ready, or at a given time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};

use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::lock::{lock, wait_timeout_while};

/// Gate that the threads of a run wait at; a clone is the same gate.
#[derive(Clone, Debug)]
pub struct StartGate(Arc<StartGateState>);

#[derive(Debug)]
struct StartGateState {
    clock: OnceLock<Clock>,
    /// Condition for waiting threads: agents wait longer than they need to get ready.
    lock: Mutex<()>,
    released: Condvar,
    is_ready: AtomicBool,
    waits_for_release: bool,
}

impl StartGate {
    /// A gate that opens as soon as all threads are ready.
    pub fn when_ready() -> Self {
        Self::with_release(false)
    }

    fn with_release(waits_for_release: bool) -> Self {
        Self(Arc::new(StartGateState {
            clock: OnceLock::new(),
            lock: Mutex::new(()),
            released: Condvar::new(),
            is_ready: AtomicBool::new(false),
            waits_for_release,
        }))
    }

    /// A gate that opens by [`Self::release_at`].
    pub fn when_released() -> Self {
        Self::with_release(true)
    }

    /// Starts the run at zero of this clock; only the first call counts.
    pub fn release_at(&self, clock: Clock) {
        let gate = lock(&self.0.lock);
        self.0.clock.get_or_init(|| clock);
        drop(gate);
        self.0.released.notify_all();
    }

    /// Whether all threads are ready.
    pub fn is_ready(&self) -> bool {
        self.0.is_ready.load(Ordering::Acquire)
    }

    /// Records that all threads are ready.
    pub(super) fn set_ready(&self) {
        self.0.is_ready.store(true, Ordering::Release);
        if !self.0.waits_for_release {
            self.release_at(Clock::starting_in(Nanos::MILLI));
        }
    }

    /// The run's clock, once set.
    pub(super) fn clock(&self) -> Option<&Clock> {
        self.0.clock.get()
    }

    /// Clock of the run; waits for it up to `timeout`.
    pub(super) fn wait(&self, timeout: Nanos) -> Option<&Clock> {
        let gate = lock(&self.0.lock);
        let unknown = |(): &mut ()| self.0.clock.get().is_none();
        drop(wait_timeout_while(&self.0.released, gate, timeout.as_duration(), unknown));
        self.clock()
    }
}
