//! Upstreams: hosts, load balancing, and the permits of attempts.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

use super::condition_changes::{ChangeQueue, UpstreamEvent};
use super::counts::UpstreamCounts;
use super::permits::PermitPool;
use super::upstream_guard::UpstreamGuard;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::lock::lock;
use weir_net::client::Origin;
use weir_resilience::admission::AdmissionConfig;
use weir_resilience::upstream::circuit_breaker::{BreakerRule, State};
use weir_resilience::upstream::client_throttle::ThrottleRule;
use weir_resilience::upstream::condition_log::hosts_line;
use weir_resilience::upstream::hosts::{
    BalancePolicy, HostBalancer, HostCondition, HostOutcome, HostSlot, HostTotals, OutlierRule,
};
use weir_resilience::upstream::rendezvous::Candidate;
use weir_retry::latency_quantile::LatencyQuantile;
use weir_retry::policy::AttemptFailure;

/// Host of an upstream as load balancing sees it.
#[derive(Clone, Debug)]
pub struct UpstreamHost {
    /// Address and connection options.
    pub origin: Arc<Origin>,
    /// Weight in load balancing.
    pub weight: u32,
}

/// State of a host of an upstream.
#[derive(Clone, Debug)]
pub struct HostState {
    /// Slot of the host.
    pub slot: HostSlot,
    /// Address and connection options.
    pub origin: Arc<Origin>,
    /// Whether it is ejected, or failed its last health check.
    pub is_ejected: bool,
    /// Whether it gets attempts, and why not.
    pub condition: HostCondition,
    /// Attempts in flight.
    pub in_flight: u64,
    /// Attempts that have ended.
    pub totals: HostTotals,
}

/// Hosts by slot, and which of them gets an attempt.
#[derive(Debug)]
struct HostTable {
    balancer: HostBalancer,
    /// Of slots without a host, that of any other.
    origins: Vec<Arc<Origin>>,
}

/// An upstream: hosts that do the same, shared by all event loops.
#[derive(Debug)]
pub struct Upstream {
    hosts: Mutex<HostTable>,
    /// The only host, if there is one and it never changes: it needs no choice and no lock.
    only: Option<Arc<Origin>>,
    /// Failures in a row of the only host.
    only_failures: AtomicU32,
    /// Whether hosts are compared by their response times.
    compares_latency: bool,
    latencies: Mutex<LatencyQuantile>,
    /// Whether a hedge stage needs latency quantiles.
    records_latencies: AtomicBool,
    permits: Option<Arc<PermitPool>>,
    pub(super) guard: UpstreamGuard,
    changes: Arc<ChangeQueue>,
    /// Counters of the attempts.
    pub counts: UpstreamCounts,
}

impl Upstream {
    /// An upstream of 1 to 64 hosts, without limits.
    pub fn new(hosts: Vec<UpstreamHost>, balance: BalancePolicy, health: OutlierRule) -> Self {
        let balancer = HostBalancer::of_candidates(&candidates(&hosts), balance, health);
        let origins: Vec<_> = hosts.into_iter().map(|host| host.origin).collect();
        let only = if let [only] = origins.as_slice() { Some(Arc::clone(only)) } else { None };
        Self {
            hosts: Mutex::new(HostTable { balancer, origins }),
            only,
            only_failures: AtomicU32::new(0),
            compares_latency: health.comparison.is_some_and(|comparison| comparison.latency_factor.is_some()),
            latencies: Mutex::new(LatencyQuantile::default()),
            records_latencies: AtomicBool::new(false),
            permits: None,
            guard: UpstreamGuard::default(),
            changes: Arc::default(),
            counts: UpstreamCounts::default(),
        }
    }

    /// Sets the length of the slow start of hosts that come, or come back from an ejection; zero for none.
    #[must_use]
    pub fn with_slow_start(self, length: Nanos) -> Self {
        self.table().balancer.set_slow_start(length);
        self
    }

    /// Allows [`Self::set_hosts`].
    #[must_use]
    pub fn with_changing_hosts(mut self) -> Self {
        self.only = None;
        self
    }

    /// Replaces the hosts, of an upstream with changing ones. Those that stay, by their addresses, keep their
    /// connections and state; attempts at those that go end as they would have. Without hosts nothing changes. Returns
    /// whether there are other ones now.
    pub fn set_hosts(&self, now: Nanos, hosts: Vec<UpstreamHost>) -> bool {
        let mut table = self.table();
        let before: Vec<HostSlot> = table.balancer.slots().collect();
        let names_before = if self.changes.is_read() { names(&table, &before, &[]) } else { Vec::new() };
        let was_down: Vec<bool> = before.iter().map(|slot| table.balancer.is_down(slot.index)).collect();
        let placed = table.balancer.set_hosts(now, &candidates(&hosts));
        for (slot, host) in placed.into_iter().zip(hosts).filter_map(|(slot, host)| Some((slot?, host))) {
            if table.origins.len() <= slot.index {
                table.origins.resize(slot.index + 1, Arc::clone(&host.origin));
            }
            if !before.contains(&slot) {
                table.origins[slot.index] = host.origin;
            }
        }
        let after: Vec<HostSlot> = table.balancer.slots().collect();
        if self.changes.is_read() && before != after {
            let added = names(&table, &after, &before);
            let now_there = names(&table, &after, &[]);
            let gone = names_before.into_iter().zip(was_down).filter(|(name, _)| !now_there.contains(name));
            // A name from before its first look-up has no address, and has not gone.
            let (removed, names): (Vec<_>, Vec<_>) = gone.partition(|(name, _)| name.parse::<SocketAddr>().is_ok());
            let removed: Vec<String> = removed.into_iter().map(|(name, _)| name).collect();
            let is_start = names.iter().any(|(_, was_down)| !was_down);
            if let Some(line) = hosts_line(&added, &removed, after.len(), "by DNS").filter(|_| !is_start) {
                self.changes.push(UpstreamEvent { at: now, kind: "hosts", host: None, line });
            }
            self.note_changes(now, &mut table, String::new);
        }
        if let Some(first) = after.first().map(|slot| Arc::clone(&table.origins[slot.index])) {
            // An origin that nothing has is one whose connections can go.
            for (index, origin) in table.origins.iter_mut().enumerate() {
                if !after.iter().any(|slot| slot.index == index) {
                    *origin = Arc::clone(&first);
                }
            }
        }
        before != after
    }

    /// Adds a fixed concurrency limit (at least 1), and a queue of `max_queued` calls that wait up to their deadlines,
    /// first in, first out.
    #[must_use]
    pub fn with_fixed_limit(self, max_in_flight: usize, max_queued: usize) -> Self {
        self.with_admission(&PermitPool::fixed(max_in_flight, max_queued), Nanos::ZERO)
    }

    /// Adds a concurrency limit.
    ///
    /// A call waits for the slot of its first attempt, or is rejected. Further attempts take a free slot, or are
    /// skipped.
    #[must_use]
    pub fn with_admission(mut self, config: &AdmissionConfig, now: Nanos) -> Self {
        self.permits = Some(Arc::new(PermitPool::new(config, now)));
        self
    }

    /// The hosts and their states.
    pub fn hosts(&self, now: Nanos) -> Vec<HostState> {
        let table = self.table();
        let state = |slot: HostSlot| HostState {
            slot,
            origin: Arc::clone(&table.origins[slot.index]),
            is_ejected: table.balancer.is_ejected(now, slot.index),
            condition: table.balancer.condition(now, slot.index),
            // Attempts at the only host are counted by upstream alone.
            in_flight: match self.only {
                Some(_) => self.counts.in_flight(),
                None => table.balancer.in_flight(slot.index).into(),
            },
            totals: match self.only {
                Some(_) => self.counts.totals(),
                None => table.balancer.totals(slot.index),
            },
        };
        table.balancer.slots().map(state).collect()
    }

    /// Whether health checks leave so few hosts that all of them get attempts.
    pub fn is_panicking(&self) -> bool {
        self.table().balancer.is_panicking()
    }

    /// Records the result of a health check; `cause` says what was checked and the result, for a change by it.
    pub fn health_checked(&self, now: Nanos, host: HostSlot, ok: bool, cause: impl FnOnce() -> String) {
        let mut table = self.table();
        table.balancer.health_checked(now, host, ok);
        self.note_changes(now, &mut table, cause);
    }

    /// Ejects a host until it is restored, or a health check of it succeeds. Returns whether it did: not if too few
    /// hosts would be left.
    pub fn eject_by_operator(&self, now: Nanos, host: HostSlot) -> bool {
        let mut table = self.table();
        let is_ejected = table.balancer.eject_by_operator(host);
        self.note_changes(now, &mut table, String::new);
        is_ejected
    }

    /// Keeps changes of the conditions of hosts, and of the circuit, for [`Self::take_changes`]; each wakes `reader`.
    pub fn keep_changes(&self, reader: &Arc<Notify>) {
        self.changes.set_reader(reader);
    }

    /// Changes since the previous call, in their order; see [`Self::keep_changes`].
    pub fn take_changes(&self) -> Vec<UpstreamEvent> {
        self.changes.take()
    }

    /// Passes on a change that its user has seen, for [`Self::take_changes`].
    pub fn note_change(&self, change: UpstreamEvent) {
        self.changes.push(change);
    }

    /// Passes on the changes of a table.
    fn note_changes(&self, now: Nanos, table: &mut HostTable, cause: impl FnOnce() -> String) {
        if !self.changes.is_read() {
            return;
        }
        let changes = table.balancer.changes(now);
        if changes.is_empty() {
            return;
        }
        let cause = cause();
        for change in changes {
            let host = change.host.map(|slot| table.origins[slot.index].name().to_owned());
            let kind = if host.is_some() { "host" } else { "panic" };
            self.changes.push(UpstreamEvent { at: now, kind, host, line: change.line(&cause) });
        }
    }

    /// Adds a circuit breaker and a throttle.
    #[must_use]
    pub fn with_guard(mut self, breaker: Option<BreakerRule>, throttle: Option<ThrottleRule>) -> Self {
        self.guard = UpstreamGuard::new(breaker, throttle, Arc::clone(&self.changes));
        self
    }

    /// State of the circuit breaker, if there is one.
    pub fn breaker_state(&self, now: Nanos) -> Option<State> {
        self.guard.state(now)
    }

    /// Fraction of calls that the throttle rejects now, if there is one.
    pub fn throttled_fraction(&self, now: Nanos) -> Option<f64> {
        self.guard.dropped_fraction(now)
    }

    /// Time at which client-side throttling ends if no further call is rejected by it; None without throttling.
    pub fn throttling_until(&self) -> Option<Nanos> {
        self.guard.throttling_until()
    }

    /// Ends client-side throttling if its time has come, which is a change for [`Self::take_changes`].
    pub fn end_throttling(&self, now: Nanos) {
        self.guard.end_throttling(now);
    }

    /// Permits of attempts, if there is a concurrency limit.
    pub fn permits(&self) -> Option<&Arc<PermitPool>> {
        self.permits.as_ref()
    }

    /// Current concurrency limit, if there is one.
    pub fn concurrency_limit(&self) -> Option<usize> {
        self.permits.as_ref().map(|permits| permits.slots().limit() as usize)
    }

    /// Starts to record latencies of first attempts.
    pub(super) fn record_latencies(&self) {
        self.records_latencies.store(true, Ordering::Relaxed);
    }

    /// Quantile of the latencies of recent first attempts; None while there are too few.
    pub fn latency_quantile(&self, now: Nanos, quantile: f64) -> Option<Nanos> {
        self.latencies().quantile(now, quantile)
    }

    fn table(&self) -> MutexGuard<'_, HostTable> {
        lock(&self.hosts)
    }

    fn latencies(&self) -> MutexGuard<'_, LatencyQuantile> {
        lock(&self.latencies)
    }

    /// Records the latency of a first attempt, or a lower bound of it.
    pub(super) fn record_latency(&self, now: Nanos, latency: Nanos) {
        if self.records_latencies.load(Ordering::Relaxed) {
            self.latencies().record(now, latency);
        }
    }

    /// Whether hosts are compared by their response times.
    pub(super) fn compares_latency(&self) -> bool {
        self.compares_latency
    }

    /// The host of an attempt that starts now, not one in the bit set `avoid` if there is another; by the key if there
    /// is one.
    pub(super) fn choose_host(&self, now: Nanos, avoid: u64, key: Option<u64>) -> (HostSlot, Arc<Origin>) {
        if let Some(only) = &self.only {
            return (HostSlot::default(), Arc::clone(only));
        }
        let mut table = self.table();
        let index = table.balancer.pick(now, avoid, key);
        table.balancer.began(index);
        (table.balancer.slot(index), Arc::clone(&table.origins[index]))
    }

    /// Records the end of an attempt at a host, with the cause of its failure.
    pub(super) fn host_ended(
        &self,
        now: Nanos,
        host: HostSlot,
        outcome: HostOutcome,
        latency: Option<Nanos>,
        cause: impl FnOnce() -> String,
    ) {
        if self.only.is_none() {
            let mut table = self.table();
            table.balancer.ended(now, host, outcome, latency);
            return self.note_changes(now, &mut table, cause);
        }
        // Without a choice only a log needs it, and a success after a success no lock.
        let is_news = match outcome {
            HostOutcome::Ok => {
                self.only_failures.load(Ordering::Relaxed) > 0 && self.only_failures.swap(0, Ordering::Relaxed) > 0
            }
            HostOutcome::Failed => {
                self.only_failures.fetch_add(1, Ordering::Relaxed);
                true
            }
            HostOutcome::Cancelled => false,
        };
        if is_news && self.changes.is_read() {
            let mut table = self.table();
            table.balancer.judge(now, host.index, outcome);
            self.note_changes(now, &mut table, cause);
        }
    }
}

/// Names of the hosts in these slots, but for those in `without`.
fn names(table: &HostTable, slots: &[HostSlot], without: &[HostSlot]) -> Vec<String> {
    let wanted = slots.iter().filter(|slot| !without.contains(slot));
    wanted.map(|slot| table.origins[slot.index].name().to_owned()).collect()
}

/// Cause of a host's failure, for a log.
pub(super) fn failure_text(failure: Option<AttemptFailure>, cause: Option<&str>) -> String {
    match (failure, cause) {
        (None, _) => "no response within the deadline".to_owned(),
        (Some(AttemptFailure::Status(status)), _) => format!("status {status}"),
        (Some(AttemptFailure::Kind(FailureKind::Timeout)), None) => {
            "no response within the attempt's timeout".to_owned()
        }
        (Some(failure), None) => failure.name().unwrap_or_default().to_owned(),
        (Some(_), Some(cause)) => cause.to_owned(),
    }
}

/// Hosts by their addresses, so that they are the same in every process and after every reload.
fn candidates(hosts: &[UpstreamHost]) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = Vec::new();
    for host in hosts {
        let mut id = address_hash(host.origin.address_text().as_bytes());
        // An address that is given twice is two hosts.
        while all.iter().any(|other| other.id == id) {
            id = id.wrapping_add(1);
        }
        all.push(Candidate { id, weight: host.weight });
    }
    all
}

/// FNV-1a, 64 bits: the hash of addresses is the same in every version.
fn address_hash(text: &[u8]) -> u64 {
    text.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
