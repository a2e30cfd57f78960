//! Results of jobs that this process submitted and another process of the same queue sent.

use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use weir::machine::lock::{lock, wait_timeout_while};
use weir::send::State;
use weir::send::store::{JobSelector, Store, StoreError};

use super::outcome::JobResult;
use super::registry::Waiters;

/// Interval of polls.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Jobs per poll.
const MAX_POLLED_JOBS: usize = 1000;

/// Poller of the store, until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct RemoteWatch(Arc<(Mutex<bool>, Condvar)>);

impl RemoteWatch {
    /// Starts polling if several senders share the store. With `renews`, an expired job has not ended: it gets more
    /// time.
    pub(crate) fn start(store: &Arc<dyn Store>, registry: &Arc<Waiters>, renews: bool) -> std::io::Result<Self> {
        let this = Self::default();
        if store.shared_keys().is_none() {
            return Ok(this);
        }
        let (over, store, registry) = (Arc::clone(&this.0), Arc::downgrade(store), Arc::clone(registry));
        thread::Builder::new().name("weir-elsewhere".into()).spawn(move || {
            let mut from = 0;
            loop {
                let is_over = lock(&over.0);
                if *wait_timeout_while(&over.1, is_over, POLL_INTERVAL, |is_over| !*is_over) {
                    break;
                }
                let Some(store) = store.upgrade() else { break };
                let awaited = registry.open_numbers(from, MAX_POLLED_JOBS);
                from = if awaited.len() < MAX_POLLED_JOBS { 0 } else { awaited.last().map_or(0, |last| last + 1) };
                // An unreachable store is polled again.
                let _ = poll_store(&*store, &registry, &awaited, renews);
            }
        })?;
        Ok(this)
    }
}

fn poll_store(store: &dyn Store, registry: &Waiters, awaited: &[u64], renews: bool) -> Result<(), StoreError> {
    if awaited.is_empty() {
        return Ok(());
    }
    for number in store.ended(awaited)? {
        let detail = store.inspect(&JobSelector::Number(number))?;
        let detail = detail.filter(|detail| !(renews && detail.entry.status.state == State::Expired));
        if let Some(outcome) = detail.and_then(JobResult::from_store) {
            registry.on_remote_end(number, outcome);
        }
    }
    Ok(())
}

impl Drop for RemoteWatch {
    fn drop(&mut self) {
        *lock(&self.0.0) = true;
        self.0.1.notify_all();
    }
}
