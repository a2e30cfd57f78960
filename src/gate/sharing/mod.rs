//! Limits that several gates share: what of them is ours, kept by a thread that asks a Redis server.
//!
//! [`crate::decide::portion`] decides what is said and when. Here is the rest: a thread that says it ([`table`]), takes from
//! rates and budgets what is wanted, and tells them what is theirs ([`limit`]). No call waits for it, and no event loop.

mod limit;
mod table;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub(super) use self::limit::{DistributedLimit, hash};
use self::table::{RedisSplitTable, RenewalError};
use super::config::DistributedLimitConfig;
use super::current::ConfigCell;
use super::setup::GateRuntime;
use crate::decide::Nanos;
use crate::decide::portion::{Allocations, Fraction};
use crate::machine::clock::Clock;
use crate::server::Logger;

/// Beyond a lease a gate does not wait for its part before it begins; a busy machine is late.
const STARTUP_GRACE: Duration = Duration::from_secs(1);

/// What is ours of limits that several gates share.
#[derive(Debug)]
pub(super) struct DistributedLimits {
    pub(super) config: DistributedLimitConfig,
    /// Of the places of callers; another one in each process.
    pub(super) salt: u64,
    split: Mutex<Allocations>,
    clock: Clock,
    renewed: AtomicU64,
    failed: AtomicU64,
}

/// What a person is told of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct State {
    /// Our part of all of which nothing else is said, in [0, 1].
    pub(super) fraction: f64,
    /// Gates; 0 if nobody has said.
    pub(super) gates: u32,
    /// Callers and budgets with parts of their own.
    pub(super) own_allocations: usize,
    /// The server has not answered for a lease.
    pub(super) is_disconnected: bool,
    /// Questions that were answered, and those that were not.
    pub(super) renewals: [(&'static str, u64); 2],
}

impl DistributedLimits {
    /// Nothing is ours yet, and nobody is asked.
    pub(super) fn new(terms: &DistributedLimitConfig) -> Self {
        let alone = Fraction::even(terms.gates);
        Self {
            config: terms.clone(),
            salt: RandomState::new().hash_one(0),
            split: Mutex::new(Allocations::new(terms.lease, alone)),
            clock: Clock::starting_in(Nanos::ZERO),
            renewed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    fn split(&self) -> MutexGuard<'_, Allocations> {
        self.split.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it stands.
    pub(super) fn state(&self) -> State {
        let portions = self.split();
        State {
            fraction: portions.default_fraction().as_f64(),
            gates: portions.gates(),
            own_allocations: portions.own_allocations(),
            is_disconnected: portions.is_unreachable(self.clock.now()),
            renewals: [("done", self.renewed.load(Relaxed)), ("failed", self.failed.load(Relaxed))],
        }
    }

    /// Tells all limits of a setup what is ours of them.
    pub(super) fn apply(&self, setup: &GateRuntime, now: Nanos) {
        let portions = self.split();
        setup.limits().for_each(|limit| limit.apply_split(now, &portions));
    }

    /// Asks the server if it is time to.
    fn renew(&self, table: &mut RedisSplitTable, current: &ConfigCell) -> Option<Result<(), RenewalError>> {
        let wanted = || current.get().limits().flat_map(|limit| limit.wanted(current.now())).collect();
        let ask = self.split().next_request(self.clock.now(), wanted)?;
        let said = table.renew(&ask);
        let now = self.clock.now();
        let renewed = match said {
            Ok(said) => {
                self.split().on_reply(now, &ask, &said);
                self.renewed.fetch_add(1, Relaxed);
                Ok(())
            }
            Err(why) => {
                self.split().request_failed(now);
                self.failed.fetch_add(1, Relaxed);
                Err(why)
            }
        };
        self.apply(&current.get(), current.now());
        Some(renewed)
    }
}

/// The thread that asks.
#[derive(Debug)]
pub(super) struct RenewalThread {
    /// It ends when this is gone.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RenewalThread {
    /// Begins, and waits until there is something of each limit for us: as soon as the other gates have made room, or the
    /// server does not answer. The last words are said when it is dropped.
    ///
    /// # Errors
    /// The server is there and does not take us, or the system has no thread; in one line.
    pub(super) fn start(
        sharing: Arc<DistributedLimits>,
        current: Arc<ConfigCell>,
        tell: Logger,
    ) -> Result<Self, String> {
        let mut table = RedisSplitTable::new(&sharing.config)?;
        let patience = sharing.config.lease.as_duration() + STARTUP_GRACE;
        let (stop, stopped) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let thread = thread::Builder::new().name("share".to_owned());
        let thread = thread.spawn(move || run(&sharing, &current, &mut table, &stopped, &ready, &tell));
        let thread = thread.map_err(|error| format!("share: the system has no thread: {error}"))?;
        let asking = Self { stop: Some(stop), thread: Some(thread) };
        // Who waited in vain begins with what it has.
        is_ready.recv_timeout(patience).unwrap_or(Ok(()))?;
        Ok(asking)
    }
}

impl Drop for RenewalThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(
    sharing: &DistributedLimits,
    current: &ConfigCell,
    table: &mut RedisSplitTable,
    stopped: &Receiver<()>,
    ready: &Sender<Result<(), String>>,
    tell: &Logger,
) {
    let (mut is_begun, mut is_told) = (false, false);
    loop {
        if let Some(renewed) = sharing.renew(table, current) {
            let (is_away, share, has_room) = {
                let portions = sharing.split();
                let now = sharing.clock.now();
                (portions.is_unreachable(now), portions.default_fraction().as_f64(), portions.has_even_share())
            };
            let shown = sharing.config.redis.redacted();
            match &renewed {
                Err(RenewalError::Rejected(why)) if !is_begun => {
                    let _ = ready.send(Err(format!("share: {shown}: {why}; see to the address, or leave share out")));
                    return;
                }
                // If it was away from the first, this is what we were told to begin with.
                Err(_) => is_begun |= share > 0.0,
                Ok(()) => is_begun |= has_room,
            }
            if is_begun {
                // Only the first is heard.
                let _ = ready.send(Ok(()));
            }
            if let (Err(why), true, false) = (&renewed, is_away, is_told) {
                let percent = share * 100.0;
                tell.log(&format!("share: {shown} does not answer ({why}): limits go on with {percent:.3} % of each"));
                is_told = true;
            } else if let (Ok(()), true) = (&renewed, is_told) {
                tell.log(&format!("share: {shown} answers again"));
                is_told = false;
            }
        }
        let wait = sharing.split().wake_at().min(sharing.clock.now() + sharing.config.lease) - sharing.clock.now();
        match stopped.recv_timeout(wait.as_duration()) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // Whoever does not hear it waits for the end of our lease.
    let last = sharing.split().leave_request();
    let _ = table.renew(&last);
}
