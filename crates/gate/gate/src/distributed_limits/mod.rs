//! Cluster-wide limits: this gateway's allocations, renewed by a thread through a Redis server.
//!
//! [`weir_resilience::ratelimit::split`] decides what is requested and when. Here is the rest: a thread that sends the
//! requests (`table`), with the demand of rate limits and budgets, and applies the replies to them
//! ([`DistributedLimit`](super::distributed_limit::DistributedLimit)). No
//! call and no event loop waits for it.

#[cfg(not(feature = "redis"))]
mod no_table;
mod renewal_error;
#[cfg(feature = "redis")]
mod table;
#[cfg(feature = "redis")]
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

#[cfg(not(feature = "redis"))]
use self::no_table::NoSplitTable as RedisSplitTable;
use self::renewal_error::RenewalError;
#[cfg(feature = "redis")]
use self::table::RedisSplitTable;
use super::config::DistributedLimitConfig;
use super::config_cell::ConfigCell;
use super::runtime::GateRuntime;
use weir_base::Nanos;
use weir_limits::fraction::Fraction;
use weir_machine::clock::Clock;
use weir_machine::lock::lock;
use weir_machine::logger::Logger;
use weir_resilience::ratelimit::split::Allocations;

/// Time beyond a lease that a starting gateway waits for its allocation, for busy machines.
const STARTUP_GRACE: Duration = Duration::from_secs(1);

/// This gateway's allocations of the cluster-wide limits.
#[derive(Debug)]
pub(super) struct DistributedLimits {
    pub(super) config: DistributedLimitConfig,
    /// Salt of the callers' hash tables; different in each process.
    pub(super) salt: u64,
    split: Mutex<Allocations>,
    clock: Clock,
    renewed: AtomicU64,
    failed: AtomicU64,
}

/// State of the cluster for metrics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct State {
    /// Fraction of each limit that this gateway has by default, 0 to 1.
    pub(super) fraction: f64,
    /// Gateways, as Redis counts them; 0 if it has never responded.
    pub(super) gates: u32,
    /// Callers and budgets with an allocation of their own.
    pub(super) own_allocations: usize,
    /// Whether Redis has not responded for a lease.
    pub(super) is_disconnected: bool,
    /// Lease renewals by outcome: succeeded, failed.
    pub(super) renewals: [(&'static str, u64); 2],
}

impl DistributedLimits {
    /// No allocations and no connection yet.
    pub(super) fn new(config: &DistributedLimitConfig) -> Self {
        let alone = Fraction::even(config.gates);
        Self {
            config: config.clone(),
            salt: RandomState::new().hash_one(0),
            split: Mutex::new(Allocations::new(config.lease, alone)),
            clock: Clock::starting_in(Nanos::ZERO),
            renewed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    fn split(&self) -> MutexGuard<'_, Allocations> {
        lock(&self.split)
    }

    /// The state of the cluster.
    pub(super) fn state(&self) -> State {
        let allocations = self.split();
        State {
            fraction: allocations.default_fraction().as_f64(),
            gates: allocations.gates(),
            own_allocations: allocations.own_allocations(),
            is_disconnected: allocations.is_unreachable(self.clock.now()),
            renewals: [("succeeded", self.renewed.load(Relaxed)), ("failed", self.failed.load(Relaxed))],
        }
    }

    /// Applies this gateway's allocations to all limits of a configuration.
    pub(super) fn apply(&self, runtime: &GateRuntime, now: Nanos) {
        let allocations = self.split();
        runtime.limits().for_each(|limit| limit.apply_split(now, &allocations));
    }

    /// Renews the lease if it is due; None if it is not.
    fn renew(&self, table: &mut RedisSplitTable, current: &ConfigCell) -> Option<Result<(), RenewalError>> {
        let wanted = || current.get().limits().flat_map(|limit| limit.wanted(current.now())).collect();
        let request = self.split().next_request(self.clock.now(), wanted)?;
        let reply = table.renew(&request);
        let now = self.clock.now();
        let renewed = match reply {
            Ok(reply) => {
                self.split().on_reply(now, &request, &reply);
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

/// The thread that renews the lease.
#[derive(Debug)]
pub(super) struct RenewalThread {
    /// The thread ends when this is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RenewalThread {
    /// Starts the thread, and waits until this gateway has a part of each limit: until the others have made room, or
    /// Redis has not responded. When it is dropped, the gateway leaves the cluster.
    ///
    /// # Errors
    /// Redis rejects the gateway, or the system has no thread; in one line.
    pub(super) fn start(
        sharing: Arc<DistributedLimits>,
        current: Arc<ConfigCell>,
        logger: Logger,
    ) -> Result<Self, String> {
        let mut table = RedisSplitTable::new(&sharing.config)?;
        let timeout = sharing.config.lease.as_duration() + STARTUP_GRACE;
        let (stop, stopped) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let thread = thread::Builder::new().name("cluster".to_owned());
        let thread = thread.spawn(move || run(&sharing, &current, &mut table, &stopped, &ready, &logger));
        let thread = thread.map_err(|error| format!("cluster: cannot start a thread: {error}"))?;
        let renewing = Self { stop: Some(stop), thread: Some(thread) };
        // After the timeout the gateway starts with what it has.
        is_ready.recv_timeout(timeout).unwrap_or(Ok(()))?;
        Ok(renewing)
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
    logger: &Logger,
) {
    let (mut is_ready, mut is_logged) = (false, false);
    loop {
        if let Some(renewed) = sharing.renew(table, current) {
            let (is_unreachable, fraction, has_even_share) = {
                let allocations = sharing.split();
                let now = sharing.clock.now();
                (allocations.is_unreachable(now), allocations.default_fraction().as_f64(), allocations.has_even_share())
            };
            let shown = sharing.config.redis.redacted();
            match &renewed {
                Err(RenewalError::Rejected(why)) if !is_ready => {
                    let _ = ready.send(Err(format!("cluster: {shown}: {why}; correct the URL, or leave cluster out")));
                    return;
                }
                // Of a server that was unreachable from the start, the assumed fraction.
                Err(_) => is_ready |= fraction > 0.0,
                Ok(()) => is_ready |= has_even_share,
            }
            if is_ready {
                // Only the first one is received.
                let _ = ready.send(Ok(()));
            }
            if let (Err(why), true, false) = (&renewed, is_unreachable, is_logged) {
                let percent = fraction * 100.0;
                logger.log(&format!(
                    "cluster: {shown} is unreachable ({why}): this gateway keeps {percent:.3}% of each limit"
                ));
                is_logged = true;
            } else if let (Ok(()), true) = (&renewed, is_logged) {
                logger.log(&format!("cluster: {shown} is reachable again"));
                is_logged = false;
            }
        }
        let wait = sharing.split().wake_at().min(sharing.clock.now() + sharing.config.lease) - sharing.clock.now();
        match stopped.recv_timeout(wait.as_duration()) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    // If it is lost, the others wait for the end of this gateway's lease.
    let last = sharing.split().leave_request();
    let _ = table.renew(&last);
}
