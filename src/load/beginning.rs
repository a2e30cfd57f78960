//! When a run begins: as soon as all its threads are ready, or when somebody says.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::decide::Nanos;
use crate::machine::clock::Clock;

/// What the threads of a run wait for.
#[derive(Debug)]
pub struct Beginning {
    clock: OnceLock<Clock>,
    is_ready: AtomicBool,
    is_appointed: bool,
}

impl Beginning {
    /// As soon as all threads are ready.
    pub fn at_once() -> Self {
        Self { clock: OnceLock::new(), is_ready: AtomicBool::new(false), is_appointed: false }
    }

    /// When somebody calls [`Self::appoint`].
    pub fn by_appointment() -> Self {
        Self { is_appointed: true, ..Self::at_once() }
    }

    /// The run begins when this clock strikes zero; the first who says so is heard.
    pub fn appoint(&self, clock: Clock) {
        self.clock.get_or_init(|| clock);
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
}
