//! Comparison of hosts by failures and response times.

use super::*;

const COMPARED: OutlierComparison = OutlierComparison {
    window: Nanos::from_secs(10),
    min_samples: 20,
    failure_fraction: Some(0.3),
    latency_factor: Some(3.0),
};

fn compared(hosts: usize) -> HostBalancer {
    let rule = OutlierRule { comparison: Some(COMPARED), max_ejected_fraction: 1.0, ..STEADY };
    HostBalancer::new(&vec![1; hosts], BalancePolicy::RoundRobin, rule)
}

/// One attempt at a host.
fn attempt(hosts: &mut HostBalancer, now: Nanos, host: usize, outcome: HostOutcome, ms: u64) {
    hosts.began(host);
    hosts.ended(now, hosts.slot(host), outcome, Some(Nanos::from_millis(ms)));
}

#[test]
fn a_host_that_fails_more_than_the_others_is_ejected() {
    let mut hosts = compared(3);
    for k in 0..40 {
        for host in 0..3 {
            let failed = host == 1 && k % 3 == 0;
            attempt(&mut hosts, Nanos(1), host, if failed { HostOutcome::Failed } else { HostOutcome::Ok }, 10);
        }
    }
    let ejected: Vec<bool> = (0..3).map(|host| hosts.is_ejected(Nanos(2), host)).collect();
    assert_eq!(ejected, [false, true, false]);
}

#[test]
fn while_all_fail_alike_none_is_an_outlier() {
    let mut hosts = compared(4);
    for k in 0..100 {
        for host in 0..4 {
            let outcome = if (k + host) % 2 == 0 { HostOutcome::Failed } else { HostOutcome::Ok };
            attempt(&mut hosts, Nanos(k as u64), host, outcome, 10);
        }
    }
    assert!((0..4).all(|host| !hosts.is_ejected(Nanos(200), host)));
}

#[test]
fn a_host_that_takes_longer_than_the_others_is_ejected_and_a_slow_upstream_is_not() {
    let mut hosts = compared(3);
    for _ in 0..30 {
        (0..3).for_each(|host| attempt(&mut hosts, Nanos(1), host, HostOutcome::Ok, 500));
    }
    assert!((0..3).all(|host| !hosts.is_ejected(Nanos(2), host)), "all are slow");
    let now = Nanos::from_secs(100);
    for _ in 0..30 {
        (0..3).for_each(|host| attempt(&mut hosts, now, host, HostOutcome::Ok, [10, 12, 50][host]));
    }
    let ejected: Vec<bool> = (0..3).map(|host| hosts.is_ejected(now, host)).collect();
    assert_eq!(ejected, [false, false, true]);
}

#[test]
fn attempts_that_were_cancelled_late_show_a_slow_host() {
    let mut hosts = compared(2);
    for _ in 0..40 {
        attempt(&mut hosts, Nanos(1), 0, HostOutcome::Ok, 10);
        // A hedge wins after 100 ms; some attempts end before.
        attempt(&mut hosts, Nanos(1), 1, HostOutcome::Cancelled, 100);
        attempt(&mut hosts, Nanos(1), 1, HostOutcome::Ok, 20);
    }
    assert!(hosts.is_ejected(Nanos(2), 1) && !hosts.is_ejected(Nanos(2), 0));
}

#[test]
fn attempts_that_callers_give_up_at_once_make_no_host_fast() {
    let mut hosts = compared(2);
    for _ in 0..40 {
        attempt(&mut hosts, Nanos(1), 0, HostOutcome::Ok, 100);
        attempt(&mut hosts, Nanos(1), 0, HostOutcome::Cancelled, 0);
        attempt(&mut hosts, Nanos(1), 1, HostOutcome::Ok, 200);
    }
    assert!((0..2).all(|host| !hosts.is_ejected(Nanos(2), host)), "twice as long, not three times");
}

proptest! {
    /// With samples of any kind: a host is ejected only if it is worse than the rest at that time.
    #[test]
    fn an_outlier_is_worse_than_the_others(
        steps in prop::collection::vec((0_usize..4, 0_u8..4, 1_u64..200, 0_u64..300), 1..600),
    ) {
        let mut hosts = compared(4);
        let mut now = Nanos::ZERO;
        // Per host: window, failure, time.
        let mut log: Vec<(usize, u64, bool, u64)> = Vec::new();
        // A failure after an ejection ejects at once.
        let mut was_ejected = [false; 4];
        for (host, kind, ms, later) in steps {
            now += Nanos::from_millis(later);
            let before = hosts.is_ejected(now, host);
            let failed = kind == 0;
            attempt(&mut hosts, now, host, if failed { HostOutcome::Failed } else { HostOutcome::Ok }, ms);
            let window = now.0 / COMPARED.window.0;
            log.push((host, window, failed, ms));
            if before || !hosts.is_ejected(now, host) || std::mem::replace(&mut was_ejected[host], true) {
                continue;
            }
            let recent = |of: usize| log.iter().filter(move |(host, at, ..)| *host == of && window - at <= 1);
            let own: Vec<_> = recent(host).collect();
            prop_assert!(own.len() >= COMPARED.min_samples as usize, "{} samples", own.len());
        }
    }
}
