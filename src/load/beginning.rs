//! When a run begins: as soon as all its threads are ready, or when somebody says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

use crate::decide::Nanos;
use crate::machine::clock::Clock;

/// What the threads of a run wait for.
#[derive(Debug)]
pub struct Beginning {
    clock: OnceLock<Clock>,
    /// For those who wait for the clock: agents do so for longer than they take to get ready.
    gate: Mutex<()>,
    appointed: Condvar,
    is_ready: AtomicBool,
    is_appointed: bool,
}

impl Beginning {
    /// As soon as all threads are ready.
    pub fn at_once() -> Self {
        Self {
            clock: OnceLock::new(),
            gate: Mutex::new(()),
            appointed: Condvar::new(),
            is_ready: AtomicBool::new(false),
            is_appointed: false,
        }
    }

    /// When somebody calls [`Self::appoint`].
    pub fn by_appointment() -> Self {
        Self { is_appointed: true, ..Self::at_once() }
    }

    /// The run begins when this clock strikes zero; the first who says so is heard.
    pub fn appoint(&self, clock: Clock) {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.clock.get_or_init(|| clock);
        drop(gate);
        self.appointed.notify_all();
    }

    /// Whether all threads are ready.
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    /// All threads are ready.
    pub(super) fn ready(&self) {
        self.is_ready.store(true, Ordering::Release);
        if !self.is_appointed {
            self.appoint(Clock::starting_in(Nanos::MILLI));
        }
    }

    /// The run's clock, once it is known.
    pub(super) fn clock(&self) -> Option<&Clock> {
        self.clock.get()
    }

    /// The same; waits for so long until it is known.
    pub(super) fn wait(&self, patience: Nanos) -> Option<&Clock> {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = |(): &mut ()| self.clock.get().is_none();
        drop(self.appointed.wait_timeout_while(gate, patience.as_duration(), unknown));
        self.clock()
    }
}
