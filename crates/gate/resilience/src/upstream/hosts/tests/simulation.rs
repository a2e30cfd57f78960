//! Hours in virtual time: slow starts, outages, checks and comparisons, with calls that come at random.

use super::*;
use weir_base::rng::SeededRng;

/// A host as it really is.
#[derive(Clone, Copy)]
struct HostBehavior {
    /// Fraction of attempts that fail.
    failing: f64,
    mean_ms: f64,
}

/// Attempts of an hour.
struct Hour {
    hosts: HostBalancer,
    random: SeededRng,
    now: Nanos,
    /// Attempts by slot.
    sent: Vec<u64>,
    failed: u64,
    /// Attempts in flight: their ends, slots, outcomes and latencies.
    in_flight: std::collections::BTreeMap<(u64, u64), (HostSlot, HostOutcome, Nanos)>,
    number: u64,
}

const CALLS_PER_S: f64 = 50.0;

impl Hour {
    fn new(hosts: HostBalancer, seed: u64) -> Self {
        let random = SeededRng::new(seed, 9);
        let in_flight = std::collections::BTreeMap::new();
        Self { hosts, random, now: Nanos::ZERO, sent: vec![0; MAX_HOSTS], failed: 0, in_flight, number: 0 }
    }

    fn run(&mut self, seconds: u64, world: impl Fn(Nanos, usize) -> HostBehavior) {
        let end = self.now + Nanos::from_secs(seconds);
        loop {
            let next = self.now + Nanos((self.random.exponential() / CALLS_PER_S * 1e9) as u64);
            while let Some(((at, _), (slot, outcome, latency))) =
                self.in_flight.first_key_value().map(|(key, value)| (*key, *value)).filter(|((at, _), _)| *at <= next.0)
            {
                self.in_flight.pop_first();
                self.hosts.ended(Nanos(at), slot, outcome, Some(latency));
            }
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            let host = self.hosts.pick(next, 0, None);
            self.hosts.began(host);
            self.sent[host] += 1;
            let it = world(next, host);
            let failed = self.random.unit() <= it.failing;
            self.failed += u64::from(failed);
            let latency = Nanos((self.random.exponential() * it.mean_ms * 1e6) as u64);
            self.number += 1;
            let outcome = if failed { HostOutcome::Failed } else { HostOutcome::Ok };
            self.in_flight.insert(((next + latency).0, self.number), (self.hosts.slot(host), outcome, latency));
        }
    }

    /// Attempts by slot since the last call.
    fn take_sent(&mut self) -> Vec<u64> {
        std::mem::replace(&mut self.sent, vec![0; MAX_HOSTS])
    }
}

const GOOD: HostBehavior = HostBehavior { failing: 0.0, mean_ms: 20.0 };

fn rule() -> OutlierRule {
    let comparison = OutlierComparison {
        window: Nanos::from_secs(10),
        min_samples: 50,
        failure_fraction: Some(0.2),
        latency_factor: Some(3.0),
    };
    OutlierRule { comparison: Some(comparison), ..OutlierRule::default() }
}

#[test]
fn in_hours_without_a_fault_of_one_host_none_is_ejected() {
    for balance in [BalancePolicy::RoundRobin, BalancePolicy::LeastInFlight] {
        let mut hour =
            Hour::new(HostBalancer::new(&[1; 4], balance, OutlierRule { consecutive_failures: 0, ..rule() }), 1);
        // Latencies that differ by half, a few failures everywhere, and a stall of all each minute.
        let world = |now: Nanos, host: usize| HostBehavior {
            failing: if (now.0 / 1_000_000_000).is_multiple_of(60) { 0.3 } else { 0.01 },
            mean_ms: 20.0 + 10.0 * (host % 2) as f64,
        };
        for _ in 0..4 * 60 {
            hour.run(60, world);
            let ejected = (0..4).filter(|host| hour.hosts.is_ejected(hour.now, *host)).count();
            assert_eq!(ejected, 0, "{balance:?} at {}", hour.now);
        }
    }
}

#[test]
fn a_host_that_fails_a_third_of_its_attempts_costs_few_of_them() {
    let mut hour = Hour::new(HostBalancer::new(&[1; 4], BalancePolicy::RoundRobin, rule()), 2);
    let world = |_, host| HostBehavior { failing: if host == 2 { 0.33 } else { 0.0 }, ..GOOD };
    hour.run(3600, world);
    let sent = hour.take_sent();
    let part = sent[2] as f64 / sent.iter().sum::<u64>() as f64;
    assert!(part < 0.12, "without ejection it is a quarter: {part:.3}");
    assert!(part > 0.0, "it is tried again");
}

#[test]
fn a_host_that_becomes_slow_loses_its_attempts_and_has_them_again_when_it_is_well() {
    let mut hour = Hour::new(HostBalancer::new(&[1; 4], BalancePolicy::RoundRobin, rule()), 3);
    hour.hosts.set_slow_start(Nanos::from_secs(30));
    let slow = |_, host| HostBehavior { mean_ms: if host == 0 { 200.0 } else { 20.0 }, ..GOOD };
    hour.run(600, |_, _| GOOD);
    hour.take_sent();
    hour.run(1800, slow);
    let sent = hour.take_sent();
    let part = sent[0] as f64 / sent.iter().sum::<u64>() as f64;
    assert!(part < 0.15, "{part:.3}");
    hour.run(300, |_, _| GOOD);
    hour.take_sent();
    hour.run(3600, |_, _| GOOD);
    let sent = hour.take_sent();
    let part = sent[0] as f64 / sent.iter().sum::<u64>() as f64;
    assert!((0.23..0.27).contains(&part), "{part:.3}");
}

#[test]
fn a_dependency_that_fails_for_an_hour_ejects_no_more_than_half_and_leaves_nothing_behind() {
    let mut hour = Hour::new(HostBalancer::new(&[1; 4], BalancePolicy::RoundRobin, rule()), 4);
    for _ in 0..60 {
        hour.run(60, |_, _| HostBehavior { failing: 0.9, ..GOOD });
        let left = (0..4).filter(|host| !hour.hosts.is_ejected(hour.now, *host)).count();
        assert!(left >= 2, "{left}");
    }
    hour.run(400, |_, _| GOOD);
    hour.take_sent();
    hour.run(600, |_, _| GOOD);
    let sent = hour.take_sent();
    let all = sent.iter().sum::<u64>() as f64;
    assert!(sent[..4].iter().all(|count| (0.2..0.3).contains(&(*count as f64 / all))), "{:?}", &sent[..4]);
}

#[test]
fn with_checks_that_fail_everywhere_attempts_go_on() {
    let mut hour = Hour::new(HostBalancer::new(&[1; 4], BalancePolicy::RoundRobin, rule()), 5);
    for minute in 0..120 {
        // The path of the check is wrong after the first half hour, at one host after the other.
        for host in 0..4 {
            let ok = minute < 30 + host as u64;
            hour.hosts.health_checked(hour.now, hour.hosts.slot(host), ok);
        }
        hour.run(60, |_, _| GOOD);
        let sent = hour.take_sent();
        let served = sent[..4].iter().filter(|count| **count > 0).count();
        let expected = [4, 3, 2][(minute as usize).saturating_sub(29).min(2)];
        let expected = if minute >= 32 { 4 } else { expected };
        assert_eq!(served, expected, "minute {minute}: {:?}", &sent[..4]);
    }
    assert_eq!(hour.failed, 0);
}

/// What happens at each hour of the day below, from its tenth minute on.
fn trouble(hour: u64) -> (u64, fn(u64, u64, usize) -> HostBehavior) {
    match hour % 4 {
        // A host is down for two minutes.
        0 => (120, |hour, _, host| HostBehavior { failing: f64::from(host as u64 == hour / 4 % 4), ..GOOD }),
        // A host is ten times slower for five minutes.
        1 => (300, |hour, _, host| HostBehavior {
            mean_ms: if host as u64 == hour / 4 % 4 { 200.0 } else { 20.0 },
            ..GOOD
        }),
        // What all depend on is down for a minute.
        2 => (60, |_, _, _| HostBehavior { failing: 1.0, ..GOOD }),
        // A host fails and works by turns of five seconds, for three minutes.
        _ => (180, |hour, second, host| HostBehavior {
            failing: f64::from(host as u64 == hour / 4 % 4 && second / 5 % 2 == 0),
            ..GOOD
        }),
    }
}

#[test]
fn after_each_trouble_of_a_day_and_each_release_the_hosts_are_as_before() {
    let mut day = Hour::new(HostBalancer::new(&[1; 4], BalancePolicy::RoundRobin, rule()), 6);
    day.hosts.set_slow_start(Nanos::from_secs(60));
    let mut candidates: Vec<Candidate> = (0..4).map(|id| Candidate { id, weight: 1 }).collect();
    for hour in 0..24 {
        day.run(600, |_, _| GOOD);
        day.failed = 0;
        let (seconds, world) = trouble(hour);
        let began = day.now;
        day.run(seconds, |now, host| world(hour, (now - began).0 / 1_000_000_000, host));
        day.take_sent();
        // Of one host's attempts few fail, though it is tried again; of all hosts' all must.
        let most = match hour % 4 {
            0 => 20,
            1 => 0,
            2 => u64::MAX,
            _ => 200,
        };
        assert!(day.failed <= most, "hour {hour}: {} of {:.0} failed", day.failed, seconds as f64 * CALLS_PER_S);
        day.run(300, |_, _| GOOD);
        // A release replaces one host after the other, with requests in flight; each new one starts slowly.
        for index in 0..4 {
            candidates[index].id = 4 * (hour + 1) + index as u64;
            day.hosts.set_hosts(day.now, &candidates);
            day.take_sent();
            day.run(5, |_, _| GOOD);
            let sent = day.take_sent();
            // The slot of the host that went is free, and there is no other.
            assert!(sent[index] < sent.iter().sum::<u64>() / 8, "hour {hour}: {:?}", &sent[..6]);
            day.run(115, |_, _| GOOD);
        }
        day.run(300, |_, _| GOOD);
        day.take_sent();
        day.run(3600 - (600 + seconds + 300 + 480 + 300), |_, _| GOOD);
        let sent = day.take_sent();
        let all = sent.iter().sum::<u64>() as f64;
        let shares: Vec<f64> = sent.iter().filter(|count| **count > 0).map(|count| *count as f64 / all).collect();
        assert_eq!(shares.len(), 4, "hour {hour}");
        assert!(shares.iter().all(|share| (0.24..0.26).contains(share)), "hour {hour}: {shares:?}");
        assert!(!day.hosts.is_panicking());
    }
}
