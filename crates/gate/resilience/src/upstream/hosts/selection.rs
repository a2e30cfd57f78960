//! The host of the next attempt among those that may have it.
//!
//! Round robin is smooth and weighted, as in nginx: each host's credit grows by its weight, and the host with the
//! highest credit is picked and pays the sum of all weights.
//!
//! A key belongs to a host by [rendezvous hashing](crate::upstream::rendezvous); a host whose attempts in flight are at
//! its bound is passed over, so that one popular key does not overload one host (Mirrokni, Thorup and Zadimoghaddam,
//! "Consistent Hashing with Bounded Loads", 2018).

use super::{BalancedHost, HostBalancer, bit, members};
use crate::upstream::rendezvous::Candidate;
use weir_base::Nanos;

/// Weights of hosts are multiplied by this, so that a slow start has steps.
const WEIGHT_SCALE: u32 = 100;

/// Fraction of its weight that a host starts slowly with, in parts of [`WEIGHT_SCALE`].
const FIRST_WEIGHT: u32 = 10;

impl HostBalancer {
    /// Weight of a host now, times [`WEIGHT_SCALE`].
    pub(super) fn current_weight(&self, now: Nanos, host: &BalancedHost) -> u32 {
        let age = host.warms_since.map_or(Nanos::NEVER, |since| now - since);
        if age >= self.slow_start {
            return host.weight.saturating_mul(WEIGHT_SCALE);
        }
        // Not NEVER, since it is less than the slow start.
        let part = (u128::from(age.0) * u128::from(WEIGHT_SCALE) / u128::from(self.slow_start.0)) as u32;
        host.weight.saturating_mul(part.max(FIRST_WEIGHT))
    }

    /// Hosts of a set that would have the fewest attempts in flight per weight with one more.
    pub(super) fn least_loaded(&self, now: Nanos, from: u64) -> u64 {
        let mut least = 0;
        // Attempts and weight of the best so far.
        let mut best: Option<(u64, u64)> = None;
        for host in members(from) {
            let it = &self.hosts[host];
            let (attempts, weight) = (u64::from(it.in_flight) + 1, u64::from(self.current_weight(now, it)));
            match best.map(|(of_best, best_weight)| (attempts * best_weight).cmp(&(of_best * weight))) {
                Some(std::cmp::Ordering::Greater) => {}
                Some(std::cmp::Ordering::Equal) => least |= bit(host),
                Some(std::cmp::Ordering::Less) | None => (least, best) = (bit(host), Some((attempts, weight))),
            }
        }
        least
    }

    pub(super) fn round_robin(&mut self, now: Nanos, from: u64) -> usize {
        let mut sum = 0;
        let mut chosen: Option<(usize, i64)> = None;
        for host in members(from) {
            let weight = i64::from(self.current_weight(now, &self.hosts[host]));
            let it = &mut self.hosts[host];
            it.credit += weight;
            sum += weight;
            if chosen.is_none_or(|(_, credit)| credit < it.credit) {
                chosen = Some((host, it.credit));
            }
        }
        let host = chosen.map_or(0, |(host, _)| host);
        if let Some(it) = self.hosts.get_mut(host) {
            it.credit -= sum;
        }
        host
    }

    /// The host that a key belongs to, among those below their bounds.
    pub(super) fn by_key(&self, now: Nanos, from: u64, key: u64, max_load_percent: u32) -> usize {
        let (mut attempts, mut weights) = (1_u128, 0_u128);
        for host in members(from) {
            attempts += u128::from(self.hosts[host].in_flight);
            weights += u128::from(self.current_weight(now, &self.hosts[host]));
        }
        let mut best: Option<(usize, f64)> = None;
        for host in members(from) {
            let it = &self.hosts[host];
            let weight = self.current_weight(now, it);
            // Rounded up: together the hosts then have room for one more.
            let bound = (attempts * u128::from(weight) * u128::from(max_load_percent.max(100))).div_ceil(weights * 100);
            if u128::from(it.in_flight) >= bound {
                continue;
            }
            let cost = Candidate { id: it.id, weight }.cost(key);
            if best.is_none_or(|(_, least)| cost < least) {
                best = Some((host, cost));
            }
        }
        best.map_or_else(|| members(from).next().unwrap_or(0), |(host, _)| host)
    }
}
