//! Load balancing and outlier detection: the host of an attempt.
//!
//! - `selection`: the host of the next attempt, by turns, load or a key
//! - `comparison`: hosts that fail more or take longer than the others
//! - `condition`: the state of a host as an operator sees it; `changes`: its changes, for a log
//!
//! After a number of failures in a row a host is ejected (Envoy's outlier detection); each further ejection is twice as
//! long, up to sixteen times the first. After its ejection a host gets one attempt at a time until one succeeds. A host
//! that fails active health checks gets none until one succeeds.
//!
//! When everything fails the cause is hardly a single host, and ejecting all would be an outage. So only a fraction may
//! be ejected at once by the outcomes of attempts, one host always stays, and when health checks leave too few hosts
//! all of them get attempts (Envoy's panic threshold). Each pick returns a host.
//!
//! Hosts may come and go. A host has a slot as long as it is there; a slot's generation distinguishes its hosts, so
//! that an attempt at a host that is gone counts for none.

mod balanced_host;
mod changes;
mod comparison;
mod condition;
mod selection;
#[cfg(test)]
mod tests;

use self::balanced_host::BalancedHost;
use self::changes::SeenConditions;
pub use self::changes::{ConditionChange, EjectionReason, HostChange};
use self::comparison::HostSamples;
pub use self::comparison::OutlierComparison;
pub use self::condition::{HostCondition, HostTotals};
use super::rendezvous::Candidate;
use weir_base::Nanos;

/// Maximum number of hosts; further ones are ignored.
pub const MAX_HOSTS: usize = u64::BITS as usize;

/// Maximum doublings of the ejection time.
const MAX_EJECTION_DOUBLINGS: u32 = 4;

/// Load balancing policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BalancePolicy {
    /// Round robin, by weight.
    #[default]
    RoundRobin,
    /// Fewest attempts in flight per weight; round robin among equals.
    LeastInFlight,
    /// The host that the key of a call belongs to, unless its load is above a bound; without a key as
    /// [`Self::LeastInFlight`].
    ConsistentHash {
        /// Maximum attempts in flight of a host, in percent of its part by weight of all; at least 100.
        max_load_percent: u32,
    },
}

/// Configuration of outlier detection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutlierRule {
    /// Failures in a row that eject a host; 0: never.
    pub consecutive_failures: u32,
    /// First ejection time.
    pub base_ejection: Nanos,
    /// Maximum fraction of hosts that are ejected at once, in [0, 1]; one always stays.
    pub max_ejected_fraction: f64,
    /// Comparison with the other hosts; None for none.
    pub comparison: Option<OutlierComparison>,
    /// Fraction of hosts that have to be there; with fewer all get attempts. In [0, 1]; None for what
    /// `max_ejected_fraction` leaves.
    pub panic_threshold: Option<f64>,
}

impl Default for OutlierRule {
    /// Five failures eject for ten seconds, at most half of the hosts.
    fn default() -> Self {
        Self {
            consecutive_failures: 5,
            base_ejection: Nanos::from_secs(10),
            max_ejected_fraction: 0.5,
            comparison: None,
            panic_threshold: None,
        }
    }
}

/// Outcome of an attempt at a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOutcome {
    /// Success.
    Ok,
    /// Failure.
    Failed,
    /// The attempt was cancelled: no evidence about the host.
    Cancelled,
}

/// A host as it is chosen: its slot, and which of the slot's hosts it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HostSlot {
    /// Slot, below [`MAX_HOSTS`].
    pub index: usize,
    /// Number of the slot's hosts before.
    pub generation: u32,
}

/// Hosts of one upstream.
#[derive(Clone, Debug)]
pub struct HostBalancer {
    /// By slot; those without a host are not in `live`.
    hosts: Vec<BalancedHost>,
    balance: BalancePolicy,
    outlier_rule: OutlierRule,
    /// Length of the slow start; zero for none.
    slow_start: Nanos,
    /// Set of slots with a host.
    live: u64,
    /// Set of ejected hosts, including those that are probed.
    ejected: u64,
    /// Set of hosts that failed their last health check.
    unhealthy: u64,
    /// Set of hosts that an operator has ejected.
    by_operator: u64,
    /// Set of hosts that failed often enough to be ejected, and stay since too few would be left.
    failing: u64,
    /// Conditions at the last [`Self::changes`].
    seen: SeenConditions,
}

impl HostBalancer {
    /// Healthy, idle hosts; host k is in slot k. A weight of 0 counts as 1; without weights there is one host.
    pub fn new(weights: &[u32], balance: BalancePolicy, outlier_rule: OutlierRule) -> Self {
        let candidate = |(index, weight): (usize, &u32)| Candidate { id: index as u64, weight: *weight };
        let candidates: Vec<Candidate> = weights.iter().enumerate().map(candidate).collect();
        Self::of_candidates(&candidates, balance, outlier_rule)
    }

    /// The same, with IDs: by these hosts keep their slots and their keys.
    pub fn of_candidates(candidates: &[Candidate], balance: BalancePolicy, outlier_rule: OutlierRule) -> Self {
        let one = [Candidate { id: 0, weight: 1 }];
        let candidates = if candidates.is_empty() { &one } else { candidates };
        let hosts: Vec<BalancedHost> =
            candidates.iter().take(MAX_HOSTS).map(|it| BalancedHost::new(*it, 0, None)).collect();
        let live = u64::MAX >> (MAX_HOSTS - hosts.len());
        Self {
            hosts,
            balance,
            outlier_rule,
            slow_start: Nanos::ZERO,
            live,
            ejected: 0,
            unhealthy: 0,
            by_operator: 0,
            failing: 0,
            seen: SeenConditions::default(),
        }
    }

    /// Sets the length of the slow start: a host that comes, or comes back from an ejection, has a tenth of its weight
    /// at first, and all of it after this time.
    pub fn set_slow_start(&mut self, length: Nanos) {
        self.slow_start = length;
    }

    /// Replaces the hosts. Those that stay, by their IDs, keep their slots and state; new ones start slowly. Without
    /// candidates nothing changes. Returns the slot of each candidate; None beyond [`MAX_HOSTS`].
    pub fn set_hosts(&mut self, now: Nanos, candidates: &[Candidate]) -> Vec<Option<HostSlot>> {
        if candidates.is_empty() {
            return Vec::new();
        }
        let slots: Vec<Option<usize>> =
            candidates.iter().map(|wanted| members(self.live).find(|slot| self.hosts[*slot].id == wanted.id)).collect();
        let kept = slots.iter().flatten().fold(0, |set, slot| set | bit(*slot));
        let mut has_changed = self.live != kept;
        self.live &= kept;
        self.ejected &= kept;
        self.unhealthy &= kept;
        self.by_operator &= kept;
        self.failing &= kept;
        self.seen.retain(kept);
        let mut placed = Vec::new();
        for (wanted, slot) in candidates.iter().zip(slots) {
            let slot = match slot {
                Some(slot) => {
                    let before = std::mem::replace(&mut self.hosts[slot].weight, wanted.weight.max(1));
                    has_changed |= before != self.hosts[slot].weight;
                    Some(slot)
                }
                None => {
                    has_changed = true;
                    self.add(now, *wanted)
                }
            };
            placed.push(slot.map(|slot| self.slot(slot)));
        }
        if has_changed {
            // A credit in the measure of other hosts' weights could keep a host from its turns for as many calls.
            self.hosts.iter_mut().for_each(|host| host.credit = 0);
        }
        placed
    }

    /// Puts a host into a free slot, if there is one.
    fn add(&mut self, now: Nanos, wanted: Candidate) -> Option<usize> {
        let slot = (0..MAX_HOSTS).find(|slot| self.live & bit(*slot) == 0)?;
        match self.hosts.get_mut(slot) {
            Some(before) => *before = BalancedHost::new(wanted, before.generation.wrapping_add(1), Some(now)),
            None => self.hosts.push(BalancedHost::new(wanted, 0, Some(now))),
        }
        self.live |= bit(slot);
        Some(slot)
    }

    /// A slot with its current generation.
    pub fn slot(&self, index: usize) -> HostSlot {
        HostSlot { index, generation: self.hosts.get(index).map_or(0, |it| it.generation) }
    }

    /// Host for the next attempt: one that is there and not in `avoid` (bit k is slot k); else one that is there; else
    /// any. With a key, the one that the key belongs to among these.
    pub fn pick(&mut self, now: Nanos, avoid: u64, key: Option<u64>) -> usize {
        let up = if self.is_panicking() { self.live } else { self.live & !self.absent(now) };
        let from = [up & !avoid, up, self.live & !avoid].into_iter().find(|set| *set != 0).unwrap_or(self.live);
        match self.balance {
            BalancePolicy::RoundRobin => self.round_robin(now, from),
            BalancePolicy::LeastInFlight => self.round_robin(now, self.least_loaded(now, from)),
            BalancePolicy::ConsistentHash { max_load_percent } => match key {
                Some(key) => self.by_key(now, from, key, max_load_percent),
                None => self.round_robin(now, self.least_loaded(now, from)),
            },
        }
    }

    /// Records an attempt that is sent to this host.
    pub fn began(&mut self, host: usize) {
        if let Some(it) = self.hosts.get_mut(host) {
            it.in_flight += 1;
            it.probing = true;
        }
    }

    /// Records the end of an attempt at this host. `latency` is the time to its response's head, or a lower bound of it
    /// if the attempt was cancelled; None without evidence.
    pub fn ended(&mut self, now: Nanos, host: HostSlot, outcome: HostOutcome, latency: Option<Nanos>) {
        let index = host.index;
        let is_same = |it: &&mut BalancedHost| it.generation == host.generation;
        let Some(it) = self.hosts.get_mut(index).filter(is_same) else { return };
        it.in_flight = it.in_flight.saturating_sub(1);
        it.probing = false;
        it.totals.add(outcome);
        self.judge(now, index, outcome);
        if let Some(comparison) = self.outlier_rule.comparison
            && self.live & bit(index) != 0
        {
            self.hosts[index].samples.record(now, comparison.window, outcome, latency);
            if self.ejected & bit(index) == 0 && self.is_worse(now, index, &comparison) {
                self.eject(now, index, EjectionReason::WorseThanOthers);
            }
        }
    }

    /// Judges a host by an outcome: that of an attempt that [`Self::began`], or of one at an only host, which needs no
    /// choice.
    pub fn judge(&mut self, now: Nanos, index: usize, outcome: HostOutcome) {
        match outcome {
            HostOutcome::Ok => self.succeeded(now, index),
            HostOutcome::Failed => {
                let Some(it) = self.hosts.get_mut(index) else { return };
                it.failures_in_row = it.failures_in_row.saturating_add(1);
                let (failures, is_back) = (it.failures_in_row, it.ejections > 0);
                let threshold = if is_back { 1 } else { self.outlier_rule.consecutive_failures };
                if threshold > 0 && failures >= threshold {
                    self.eject(now, index, EjectionReason::Failures(failures));
                    self.failing |= bit(index) & self.live & !self.ejected;
                }
            }
            HostOutcome::Cancelled => {}
        }
    }

    /// Whether a host is worse than the others.
    fn is_worse(&self, now: Nanos, index: usize, comparison: &OutlierComparison) -> bool {
        let sums = |slot: usize| self.hosts[slot].samples.sums(now, comparison.window);
        let others: Vec<_> = members(self.live & !self.ejected & !bit(index)).map(sums).collect();
        comparison.is_worse(sums(index), &others)
    }

    /// Records the result of an active health check.
    pub fn health_checked(&mut self, now: Nanos, host: HostSlot, ok: bool) {
        let is_current = self.live & bit(host.index) != 0 && self.slot(host.index) == host;
        match ok {
            _ if !is_current => {}
            true => {
                if self.unhealthy & bit(host.index) != 0 {
                    self.hosts[host.index].warms_since = Some(now);
                }
                self.unhealthy &= !bit(host.index);
                self.by_operator &= !bit(host.index);
                self.restore(now, host.index);
            }
            false => self.unhealthy |= bit(host.index),
        }
    }

    /// Whether this host is ejected now or failed its health check, and gets attempts only if too many are.
    pub fn is_ejected(&self, now: Nanos, host: usize) -> bool {
        self.absent(now) & bit(host) != 0
    }

    /// Whether so few hosts are left that all get attempts.
    pub fn is_panicking(&self) -> bool {
        let OutlierRule { panic_threshold, max_ejected_fraction, .. } = self.outlier_rule;
        let threshold = panic_threshold.unwrap_or(1.0 - max_ejected_fraction);
        let left = (self.live & !self.ejected & !self.unhealthy).count_ones();
        f64::from(left) < threshold * f64::from(self.live.count_ones())
            // Ejections by outcomes alone have a bound of their own.
            && self.unhealthy != 0
    }

    /// Attempts in flight at this host.
    pub fn in_flight(&self, host: usize) -> u32 {
        self.hosts.get(host).map_or(0, |it| it.in_flight)
    }

    /// Slots of the hosts; at least one.
    pub fn slots(&self) -> impl Iterator<Item = HostSlot> {
        members(self.live).map(|slot| self.slot(slot))
    }

    /// Hosts that get no attempts.
    fn absent(&self, now: Nanos) -> u64 {
        self.ejected & !self.ready_to_probe(now) | self.unhealthy
    }

    /// Ejected hosts whose ejection is over, and that may be probed.
    fn ready_to_probe(&self, now: Nanos) -> u64 {
        let ready = |it: &BalancedHost| !it.probing && it.ejected_until <= now;
        members(self.ejected).filter(|host| ready(&self.hosts[*host])).fold(0, |set, host| set | bit(host))
    }

    /// A success ends an ejection whose time is over. Before, it is that of an attempt from before the ejection, and no
    /// evidence against what the host was ejected for.
    fn succeeded(&mut self, now: Nanos, host: usize) {
        let is_over = self.hosts.get(host).is_some_and(|it| it.ejected_until <= now);
        if is_over || self.ejected & bit(host) == 0 {
            self.restore(now, host);
        }
    }

    fn restore(&mut self, now: Nanos, host: usize) {
        if let Some(it) = self.hosts.get_mut(host) {
            (it.failures_in_row, it.ejections) = (0, 0);
            self.failing &= !bit(host);
            if self.ejected & bit(host) != 0 {
                it.warms_since = Some(now);
                it.samples = HostSamples::default();
            }
            self.ejected &= !bit(host);
        }
    }

    /// Ejects a host, unless too many are; a current ejection is not prolonged.
    fn eject(&mut self, now: Nanos, host: usize, reason: EjectionReason) {
        let live = self.live.count_ones() as usize;
        let max_ejected = ((live as f64 * self.outlier_rule.max_ejected_fraction) as usize).min(live.saturating_sub(1));
        let is_ejected = self.ejected & bit(host) != 0;
        let Some(it) = self.hosts.get_mut(host).filter(|_| self.live & bit(host) != 0) else { return };
        if is_ejected && now < it.ejected_until || !is_ejected && self.ejected.count_ones() as usize >= max_ejected {
            return;
        }
        let length = self.outlier_rule.base_ejection.0.saturating_mul(1 << it.ejections.min(MAX_EJECTION_DOUBLINGS));
        it.ejections += 1;
        it.ejected_until = now + Nanos(length);
        it.probing = false;
        it.ejection_reason = reason;
        self.ejected |= bit(host);
        self.failing &= !bit(host);
        self.seen.ejected_again |= if is_ejected { bit(host) } else { 0 };
    }
}

fn bit(host: usize) -> u64 {
    u32::try_from(host).ok().and_then(|host| 1_u64.checked_shl(host)).unwrap_or(0)
}

/// Hosts of a set, in ascending order.
fn members(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(first)
    })
}
