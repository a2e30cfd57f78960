//! The current runtime, which a reload replaces while calls are in flight.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::Notify;

use super::runtime::GateRuntime;
use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::lock::lock;

/// The current runtime, shared by all event loops.
#[derive(Debug)]
pub(super) struct ConfigCell {
    runtime: Mutex<Arc<GateRuntime>>,
    /// Wakes what waits for a replacement.
    replaced: Notify,
    /// Wakes the log of conditions: changes of the upstreams, and replacements.
    conditions: Arc<Notify>,
    /// Number of replacements.
    version: AtomicU64,
    /// The clock of all event loops, set by the first one.
    clock: OnceLock<Clock>,
}

/// One event loop's copy of the current runtime, with its version.
#[derive(Debug)]
pub(super) struct CachedRuntime(RefCell<(u64, Arc<GateRuntime>)>);

impl ConfigCell {
    pub(super) fn new(runtime: GateRuntime) -> Self {
        let conditions = Arc::default();
        keep_changes(&runtime, &conditions);
        Self {
            runtime: Mutex::new(Arc::new(runtime)),
            replaced: Notify::new(),
            conditions,
            version: AtomicU64::new(0),
            clock: OnceLock::new(),
        }
    }

    pub(super) fn get(&self) -> Arc<GateRuntime> {
        Arc::clone(&lock(&self.runtime))
    }

    /// Replaces the runtime for calls that begin from now on.
    pub(super) fn replace(&self, runtime: GateRuntime) {
        keep_changes(&runtime, &self.conditions);
        *lock(&self.runtime) = Arc::new(runtime);
        self.version.fetch_add(1, Ordering::Release);
        self.replaced.notify_one();
        self.conditions.notify_one();
    }

    /// Waits for changes of the upstreams' conditions, or a replacement; ends at once if there was one since the last
    /// call. For one task alone.
    pub(super) async fn conditions_changed(&self) {
        self.conditions.notified().await;
    }

    /// Waits for the next replacement; ends at once if there was one since the last call. For one task alone.
    pub(super) async fn replaced(&self) {
        self.replaced.notified().await;
    }

    /// Current time; zero before the first event loop has begun.
    pub(super) fn now(&self) -> Nanos {
        self.clock.get().map_or(Nanos::ZERO, Clock::now)
    }

    /// A copy for an event loop with this clock.
    pub(super) fn cached(&self, clock: Clock) -> CachedRuntime {
        self.clock.get_or_init(|| clock);
        // Version first, so that an old runtime never has a new version.
        let version = self.version.load(Ordering::Acquire);
        CachedRuntime(RefCell::new((version, self.get())))
    }
}

/// Has the upstreams keep the changes of their conditions.
fn keep_changes(runtime: &GateRuntime, reader: &Arc<Notify>) {
    for (_, upstream) in &runtime.upstreams {
        upstream.upstream.keep_changes(reader);
    }
}

impl CachedRuntime {
    /// The current runtime.
    pub(super) fn get(&self, current: &ConfigCell) -> Arc<GateRuntime> {
        self.with(current, Arc::clone)
    }

    /// Calls `read` with the current runtime; takes a lock only after a reload.
    pub(super) fn with<T>(&self, current: &ConfigCell, read: impl FnOnce(&Arc<GateRuntime>) -> T) -> T {
        let version = current.version.load(Ordering::Acquire);
        let mut cached = self.0.borrow_mut();
        if cached.0 != version {
            *cached = (version, current.get());
        }
        read(&cached.1)
    }
}
