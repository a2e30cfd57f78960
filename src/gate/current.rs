//! The setup of the moment, which a reload replaces while calls go on.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::setup::GateRuntime;
use crate::decide::Nanos;
use crate::machine::clock::Clock;

/// The setup of the moment, for all event loops.
#[derive(Debug)]
pub(super) struct ConfigCell {
    runtime: Mutex<Arc<GateRuntime>>,
    /// How often it was replaced.
    version: AtomicU64,
    /// The clock of all event loops; there once the first has begun.
    clock: OnceLock<Clock>,
}

/// What one event loop knows of it.
#[derive(Debug)]
pub(super) struct CachedRuntime(RefCell<(u64, Arc<GateRuntime>)>);

impl ConfigCell {
    pub(super) fn new(setup: GateRuntime) -> Self {
        Self { runtime: Mutex::new(Arc::new(setup)), version: AtomicU64::new(0), clock: OnceLock::new() }
    }

    pub(super) fn get(&self) -> Arc<GateRuntime> {
        Arc::clone(&self.runtime.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls that begin from now on follow `setup`.
    pub(super) fn replace(&self, setup: GateRuntime) {
        *self.runtime.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(setup);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// What time it is.
    pub(super) fn now(&self) -> Nanos {
        self.clock.get().map_or(Nanos::ZERO, Clock::now)
    }

    /// What an event loop by this clock knows.
    pub(super) fn cached(&self, clock: Clock) -> CachedRuntime {
        self.clock.get_or_init(|| clock);
        // In this order: what is too old is seen to be.
        let version = self.version.load(Ordering::Acquire);
        CachedRuntime(RefCell::new((version, self.get())))
    }
}

impl CachedRuntime {
    /// The setup of the moment; a lock is taken only after a reload.
    pub(super) fn get(&self, current: &ConfigCell) -> Arc<GateRuntime> {
        let version = current.version.load(Ordering::Acquire);
        let mut known = self.0.borrow_mut();
        if known.0 != version {
            *known = (version, current.get());
        }
        Arc::clone(&known.1)
    }
}
