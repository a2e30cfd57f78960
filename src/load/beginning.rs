//! When a run begins: as soon as all its threads are ready, or when somebody says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

use crate::decide::Nanos;
use crate::machine::clock::Clock;

/// What the threads of a run wait for.
#[derive(Debug)]
pub struct StartGate {
    clock: OnceLock<Clock>,
    /// For those who wait for the clock: agents do so for longer than they take to get ready.
    lock: Mutex<()>,
    released: Condvar,
    is_ready: AtomicBool,
    waits_for_release: bool,
}

impl StartGate {
    /// As soon as all threads are ready.
    pub fn when_ready() -> Self {
        Self {
            clock: OnceLock::new(),
            lock: Mutex::new(()),
            released: Condvar::new(),
            is_ready: AtomicBool::new(false),
            waits_for_release: false,
        }
    }

    /// When somebody calls [`Self::release_at`].
    pub fn when_released() -> Self {
        Self { waits_for_release: true, ..Self::when_ready() }
    }

    /// The run begins when this clock strikes zero; the first who says so is heard.
    pub fn release_at(&self, clock: Clock) {
        let gate = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.clock.get_or_init(|| clock);
        drop(gate);
        self.released.notify_all();
    }

    /// Whether all threads are ready.
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    /// All threads are ready.
    pub(super) fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Release);
        if !self.waits_for_release {
            self.release_at(Clock::starting_in(Nanos::MILLI));
        }
    }

    /// The run's clock, once it is known.
    pub(super) fn clock(&self) -> Option<&Clock> {
        self.clock.get()
    }

    /// The same; waits for so long until it is known.
    pub(super) fn wait(&self, patience: Nanos) -> Option<&Clock> {
        let gate = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = |(): &mut ()| self.clock.get().is_none();
        drop(self.released.wait_timeout_while(gate, patience.as_duration(), unknown));
        self.clock()
    }
}
