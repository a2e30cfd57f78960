//! The setup of the moment, which a reload replaces while calls go on.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::setup::Setup;
use crate::decide::Nanos;
use crate::machine::clock::Clock;

/// The setup of the moment, for all event loops.
#[derive(Debug)]
pub(super) struct Current {
    setup: Mutex<Arc<Setup>>,
    /// How often it was replaced.
    version: AtomicU64,
    /// The clock of all event loops; there once the first has begun.
    clock: OnceLock<Clock>,
}

/// What one event loop knows of it.
#[derive(Debug)]
pub(super) struct Known(RefCell<(u64, Arc<Setup>)>);

impl Current {
    pub(super) fn new(setup: Setup) -> Self {
        Self { setup: Mutex::new(Arc::new(setup)), version: AtomicU64::new(0), clock: OnceLock::new() }
    }

    pub(super) fn get(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls that begin from now on follow `setup`.
    pub(super) fn replace(&self, setup: Setup) {
        *self.setup.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(setup);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// What time it is.
    pub(super) fn now(&self) -> Nanos {
        self.clock.get().map_or(Nanos::ZERO, Clock::now)
    }

    /// What an event loop by this clock knows.
    pub(super) fn known(&self, clock: Clock) -> Known {
        self.clock.get_or_init(|| clock);
        // In this order: what is too old is seen to be.
        let version = self.version.load(Ordering::Acquire);
        Known(RefCell::new((version, self.get())))
    }
}

impl Known {
    /// The setup of the moment; a lock is taken only after a reload.
    pub(super) fn get(&self, current: &Current) -> Arc<Setup> {
        let version = current.version.load(Ordering::Acquire);
        let mut known = self.0.borrow_mut();
        if known.0 != version {
            *known = (version, current.get());
        }
        Arc::clone(&known.1)
    }
}
