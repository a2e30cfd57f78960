//! Load balancing and outlier detection: the host of an attempt.
//!
//! Round robin is smooth and weighted, as in nginx: each host's credit grows by its weight, and the host with the
//! highest credit is picked and pays the sum of all weights. After a number of failures in a row a host is ejected
//! (Envoy's outlier detection); each further ejection is twice as long, up to sixteen times the first. After its
//! ejection a host gets one attempt at a time until one succeeds.
//!
//! When everything fails the cause is hardly a single host, and ejecting all would be an outage. So only a fraction may
//! be ejected at once, one host always stays, and each pick returns a host.

use crate::Nanos;

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
}

impl Default for OutlierRule {
    /// Five failures eject for ten seconds, at most half of the hosts.
    fn default() -> Self {
        Self { consecutive_failures: 5, base_ejection: Nanos::from_secs(10), max_ejected_fraction: 0.5 }
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

#[derive(Clone, Debug)]
struct BalancedHost {
    weight: u32,
    /// Credit of the round robin.
    credit: i64,
    in_flight: u32,
    failures_in_row: u32,
    /// Of an ejected host: end of the ejection, number of ejections, whether an attempt probes it.
    ejected_until: Nanos,
    ejections: u32,
    probing: bool,
}

/// Hosts of one upstream, numbered from 0.
#[derive(Clone, Debug)]
pub struct HostBalancer {
    hosts: Vec<BalancedHost>,
    balance: BalancePolicy,
    outlier_rule: OutlierRule,
    /// Set of ejected hosts, including those that are probed.
    ejected: u64,
}

impl HostBalancer {
    /// Healthy, idle hosts. A weight of 0 counts as 1; without weights there is one host.
    pub fn new(weights: &[u32], balance: BalancePolicy, outlier_rule: OutlierRule) -> Self {
        let weights = if weights.is_empty() { &[1] } else { weights };
        let host = |weight: &u32| BalancedHost {
            weight: (*weight).max(1),
            credit: 0,
            in_flight: 0,
            failures_in_row: 0,
            ejected_until: Nanos::ZERO,
            ejections: 0,
            probing: false,
        };
        let hosts = weights.iter().take(MAX_HOSTS).map(host).collect();
        Self { hosts, balance, outlier_rule, ejected: 0 }
    }

    /// Host for the next attempt: one that is not ejected and not in `avoid` (bit k is host k); else one that is not
    /// ejected; else any.
    pub fn pick(&mut self, now: Nanos, avoid: u64) -> usize {
        let all = u64::MAX >> (MAX_HOSTS - self.hosts.len());
        let up = all & !self.ejected | self.ready_to_probe(now);
        let from = [up & !avoid, up, all & !avoid].into_iter().find(|set| *set != 0).unwrap_or(all);
        let from = if self.balance == BalancePolicy::LeastInFlight { self.least_loaded(from) } else { from };
        self.round_robin(from)
    }

    /// Records an attempt that is sent to this host.
    pub fn began(&mut self, host: usize) {
        if let Some(it) = self.hosts.get_mut(host) {
            it.in_flight += 1;
            it.probing = true;
        }
    }

    /// Records the end of an attempt at this host.
    pub fn ended(&mut self, now: Nanos, host: usize, outcome: HostOutcome) {
        let Some(it) = self.hosts.get_mut(host) else { return };
        it.in_flight = it.in_flight.saturating_sub(1);
        it.probing = false;
        match outcome {
            HostOutcome::Ok => self.restore(host),
            HostOutcome::Failed => {
                it.failures_in_row = it.failures_in_row.saturating_add(1);
                let threshold = if it.ejections > 0 { 1 } else { self.outlier_rule.consecutive_failures };
                if threshold > 0 && it.failures_in_row >= threshold {
                    self.eject(now, host);
                }
            }
            HostOutcome::Cancelled => {}
        }
    }

    /// Records the result of an active health check.
    pub fn health_checked(&mut self, now: Nanos, host: usize, ok: bool) {
        if ok { self.restore(host) } else { self.eject(now, host) }
    }

    /// Whether this host is ejected now, and gets attempts only if all are.
    pub fn is_ejected(&self, now: Nanos, host: usize) -> bool {
        self.ejected & bit(host) & !self.ready_to_probe(now) != 0
    }

    /// Attempts in flight at this host.
    pub fn in_flight(&self, host: usize) -> u32 {
        self.hosts.get(host).map_or(0, |it| it.in_flight)
    }

    /// Number of hosts; at least 1.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Ejected hosts whose ejection is over, and that may be probed.
    fn ready_to_probe(&self, now: Nanos) -> u64 {
        let ready = |it: &BalancedHost| !it.probing && it.ejected_until <= now;
        members(self.ejected).filter(|host| ready(&self.hosts[*host])).fold(0, |set, host| set | bit(host))
    }

    fn restore(&mut self, host: usize) {
        if let Some(it) = self.hosts.get_mut(host) {
            (it.failures_in_row, it.ejections) = (0, 0);
            self.ejected &= !bit(host);
        }
    }

    /// Ejects a host, unless too many are; a current ejection is not prolonged.
    fn eject(&mut self, now: Nanos, host: usize) {
        let max_ejected =
            ((self.hosts.len() as f64 * self.outlier_rule.max_ejected_fraction) as usize).min(self.hosts.len() - 1);
        let is_ejected = self.ejected & bit(host) != 0;
        let Some(it) = self.hosts.get_mut(host) else { return };
        if is_ejected && now < it.ejected_until || !is_ejected && self.ejected.count_ones() as usize >= max_ejected {
            return;
        }
        let length = self.outlier_rule.base_ejection.0.saturating_mul(1 << it.ejections.min(MAX_EJECTION_DOUBLINGS));
        it.ejections += 1;
        it.ejected_until = now + Nanos(length);
        it.probing = false;
        self.ejected |= bit(host);
    }

    /// Hosts of a set that would have the fewest attempts in flight per weight with one more.
    fn least_loaded(&self, from: u64) -> u64 {
        let mut least = 0;
        let mut best: Option<&BalancedHost> = None;
        for host in members(from) {
            let it = &self.hosts[host];
            let load = |of: &BalancedHost, per: &BalancedHost| (u64::from(of.in_flight) + 1) * u64::from(per.weight);
            match best.map(|best| load(it, best).cmp(&load(best, it))) {
                Some(std::cmp::Ordering::Greater) => {}
                Some(std::cmp::Ordering::Equal) => least |= bit(host),
                Some(std::cmp::Ordering::Less) | None => (least, best) = (bit(host), Some(it)),
            }
        }
        least
    }

    fn round_robin(&mut self, from: u64) -> usize {
        let mut sum = 0;
        let mut chosen: Option<(usize, i64)> = None;
        for host in members(from) {
            let it = &mut self.hosts[host];
            it.credit += i64::from(it.weight);
            sum += i64::from(it.weight);
            if chosen.is_none_or(|(_, credit)| credit < it.credit) {
                chosen = Some((host, it.credit));
            }
        }
        let host = chosen.map_or(0, |(host, _)| host);
        self.hosts[host].credit -= sum;
        host
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STEADY: OutlierRule =
        OutlierRule { consecutive_failures: 0, base_ejection: Nanos::SECOND, max_ejected_fraction: 0.5 };
    const TOUCHY: OutlierRule =
        OutlierRule { consecutive_failures: 2, base_ejection: Nanos::SECOND, max_ejected_fraction: 0.5 };

    fn fails(hosts: &mut HostBalancer, now: Nanos, host: usize, times: u32) {
        for _ in 0..times {
            hosts.began(host);
            hosts.ended(now, host, HostOutcome::Failed);
        }
    }

    #[test]
    fn turns_are_spread_evenly() {
        let mut hosts = HostBalancer::new(&[5, 1, 1], BalancePolicy::RoundRobin, STEADY);
        let turns: Vec<usize> = (0..7).map(|_| hosts.pick(Nanos::ZERO, 0)).collect();
        assert_eq!(turns, [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn each_ejection_is_longer_and_ends_with_one_probe() {
        let mut hosts = HostBalancer::new(&[1, 1], BalancePolicy::RoundRobin, TOUCHY);
        let mut now = Nanos::from_secs(1);
        fails(&mut hosts, now, 0, 1);
        assert!(!hosts.is_ejected(now, 0));
        fails(&mut hosts, now, 0, 1);
        for rest in [1, 2, 4, 8, 16, 16] {
            let back = now + Nanos::from_secs(rest);
            assert!(hosts.is_ejected(Nanos(back.0 - 1), 0) && !hosts.is_ejected(back, 0), "{rest}");
            assert!((0..4).all(|_| hosts.pick(Nanos(back.0 - 1), 0) == 1));
            now = back;
            assert_eq!(hosts.pick(now, 0b10), 0);
            hosts.began(0);
            assert!(hosts.is_ejected(now, 0), "one at a time");
            hosts.ended(now, 0, HostOutcome::Failed);
        }
        now += Nanos::from_secs(16);
        hosts.began(0);
        hosts.ended(now, 0, HostOutcome::Cancelled);
        assert!(!hosts.is_ejected(now, 0), "it may be tried again");
        hosts.began(0);
        hosts.ended(now, 0, HostOutcome::Ok);
        hosts.began(0);
        assert!(!hosts.is_ejected(now, 0));
        fails(&mut hosts, now, 0, 2);
        assert!(
            hosts.is_ejected(now + Nanos(999_999_999), 0) && !hosts.is_ejected(now + Nanos::SECOND, 0),
            "from the start"
        );
    }

    #[test]
    fn a_health_check_ejects_a_host_and_restores_it() {
        let mut hosts = HostBalancer::new(&[1, 1, 1], BalancePolicy::RoundRobin, STEADY);
        hosts.health_checked(Nanos(1), 2, false);
        assert!(hosts.is_ejected(Nanos(2), 2));
        hosts.health_checked(Nanos(1), 1, false);
        assert!(!hosts.is_ejected(Nanos(2), 1), "half at most");
        hosts.health_checked(Nanos(3), 2, true);
        assert!(!hosts.is_ejected(Nanos(3), 2));
    }

    #[test]
    fn least_in_flight_picks_the_idlest_host() {
        let mut hosts = HostBalancer::new(&[2, 1], BalancePolicy::LeastInFlight, STEADY);
        let mut taken = [0; 2];
        for _ in 0..30 {
            let host = hosts.pick(Nanos::ZERO, 0);
            hosts.began(host);
            taken[host] += 1;
        }
        assert_eq!(taken, [20, 10]);
        (0..5).for_each(|_| hosts.ended(Nanos::ZERO, 1, HostOutcome::Ok));
        assert!((0..5).all(|_| {
            let host = hosts.pick(Nanos::ZERO, 0);
            hosts.began(host);
            host == 1
        }));
        assert_eq!((hosts.in_flight(0), hosts.in_flight(1), hosts.len()), (20, 10, 2));
    }

    #[test]
    fn without_hosts_there_is_one_and_the_sixty_fourth_is_the_last() {
        assert_eq!(HostBalancer::new(&[], BalancePolicy::RoundRobin, STEADY).pick(Nanos::ZERO, u64::MAX), 0);
        let mut many = HostBalancer::new(&[0; 100], BalancePolicy::RoundRobin, STEADY);
        let last = (0..64).map(|_| many.pick(Nanos::ZERO, 0)).max();
        assert_eq!((many.len(), last), (64, Some(63)));
    }

    proptest! {
        #[test]
        fn picks_follow_the_weights_in_every_round(weights in prop::collection::vec(1_u32..9, 1..9)) {
            let mut hosts = HostBalancer::new(&weights, BalancePolicy::RoundRobin, STEADY);
            for _ in 0..3 {
                let mut turns = vec![0; weights.len()];
                for _ in 0..weights.iter().sum() {
                    turns[hosts.pick(Nanos::ZERO, 0)] += 1;
                }
                prop_assert_eq!(&turns, &weights);
            }
        }

        #[test]
        fn an_ejected_host_is_not_picked_while_another_can_serve(
            weights in prop::collection::vec(0_u32..4, 1..6),
            least: bool, failures in 0_u32..4, max_ejected in 0.0..=1.0,
            steps in prop::collection::vec((0_u8..6, 0_usize..6, 0_u64..700, 0_u64..64), 1..200),
        ) {
            let health = OutlierRule { consecutive_failures: failures, base_ejection: Nanos(1000), max_ejected_fraction: max_ejected };
            let balance = if least { BalancePolicy::LeastInFlight } else { BalancePolicy::RoundRobin };
            let mut hosts = HostBalancer::new(&weights, balance, health);
            let mut in_flight = vec![0_u32; weights.len()];
            let mut now = Nanos(0);
            for (kind, host, later, avoid) in steps {
                let host = host % weights.len();
                match kind {
                    0..3 => {
                        let up: Vec<usize> = (0..weights.len()).filter(|host| !hosts.is_ejected(now, *host)).collect();
                        prop_assert!(up.len() as f64 >= (weights.len() as f64 * (1.0 - max_ejected)).floor());
                        let wanted: Vec<usize> = up.iter().copied().filter(|host| avoid >> host & 1 == 0).collect();
                        let host = hosts.pick(now, avoid);
                        prop_assert!(host < weights.len());
                        prop_assert!(wanted.is_empty() || wanted.contains(&host));
                        prop_assert!(up.is_empty() || up.contains(&host));
                        hosts.began(host);
                        in_flight[host] += 1;
                    }
                    3 => hosts.health_checked(now, host, later % 2 == 0),
                    _ if in_flight[host] > 0 => {
                        let outcome = [HostOutcome::Ok, HostOutcome::Failed, HostOutcome::Failed, HostOutcome::Cancelled][avoid as usize % 4];
                        hosts.ended(now, host, outcome);
                        in_flight[host] -= 1;
                    }
                    _ => {}
                }
                prop_assert_eq!(hosts.in_flight(host), in_flight[host]);
                if avoid % 4 == 0 {
                    now += Nanos(later);
                }
            }
        }
    }
}
