//! Load balancing and outlier detection by examples and properties.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod changes;
mod conditions;
mod outliers;
mod sets;
mod simulation;

use proptest::prelude::*;

use super::*;

const STEADY: OutlierRule = OutlierRule {
    consecutive_failures: 0,
    base_ejection: Nanos::SECOND,
    max_ejected_fraction: 0.5,
    comparison: None,
    panic_threshold: None,
};
const TOUCHY: OutlierRule = OutlierRule { consecutive_failures: 2, ..STEADY };

fn ended(hosts: &mut HostBalancer, now: Nanos, host: usize, outcome: HostOutcome) {
    hosts.ended(now, hosts.slot(host), outcome, None);
}

fn fails(hosts: &mut HostBalancer, now: Nanos, host: usize, times: u32) {
    for _ in 0..times {
        hosts.began(host);
        ended(hosts, now, host, HostOutcome::Failed);
    }
}

#[test]
fn turns_are_spread_evenly() {
    let mut hosts = HostBalancer::new(&[5, 1, 1], BalancePolicy::RoundRobin, STEADY);
    let turns: Vec<usize> = (0..7).map(|_| hosts.pick(Nanos::ZERO, 0, None)).collect();
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
        assert!((0..4).all(|_| hosts.pick(Nanos(back.0 - 1), 0, None) == 1));
        now = back;
        assert_eq!(hosts.pick(now, 0b10, None), 0);
        hosts.began(0);
        assert!(hosts.is_ejected(now, 0), "one at a time");
        ended(&mut hosts, now, 0, HostOutcome::Failed);
    }
    now += Nanos::from_secs(16);
    hosts.began(0);
    ended(&mut hosts, now, 0, HostOutcome::Cancelled);
    assert!(!hosts.is_ejected(now, 0), "it may be tried again");
    hosts.began(0);
    ended(&mut hosts, now, 0, HostOutcome::Ok);
    hosts.began(0);
    assert!(!hosts.is_ejected(now, 0));
    fails(&mut hosts, now, 0, 2);
    assert!(
        hosts.is_ejected(now + Nanos(999_999_999), 0) && !hosts.is_ejected(now + Nanos::SECOND, 0),
        "from the start"
    );
}

#[test]
fn least_in_flight_picks_the_idlest_host() {
    let mut hosts = HostBalancer::new(&[2, 1], BalancePolicy::LeastInFlight, STEADY);
    let mut taken = [0; 2];
    for _ in 0..30 {
        let host = hosts.pick(Nanos::ZERO, 0, None);
        hosts.began(host);
        taken[host] += 1;
    }
    assert_eq!(taken, [20, 10]);
    (0..5).for_each(|_| ended(&mut hosts, Nanos::ZERO, 1, HostOutcome::Ok));
    assert!((0..5).all(|_| {
        let host = hosts.pick(Nanos::ZERO, 0, None);
        hosts.began(host);
        host == 1
    }));
    assert_eq!((hosts.in_flight(0), hosts.in_flight(1), hosts.slots().count()), (20, 10, 2));
}

#[test]
fn without_hosts_there_is_one_and_the_sixty_fourth_is_the_last() {
    assert_eq!(HostBalancer::new(&[], BalancePolicy::RoundRobin, STEADY).pick(Nanos::ZERO, u64::MAX, None), 0);
    let mut many = HostBalancer::new(&[0; 100], BalancePolicy::RoundRobin, STEADY);
    let last = (0..64).map(|_| many.pick(Nanos::ZERO, 0, None)).max();
    assert_eq!((many.slots().count(), last), (64, Some(63)));
}

proptest! {
    #[test]
    fn picks_follow_the_weights_in_every_round(weights in prop::collection::vec(1_u32..9, 1..9)) {
        let mut hosts = HostBalancer::new(&weights, BalancePolicy::RoundRobin, STEADY);
        for _ in 0..3 {
            let mut turns = vec![0; weights.len()];
            for _ in 0..weights.iter().sum() {
                turns[hosts.pick(Nanos::ZERO, 0, None)] += 1;
            }
            prop_assert_eq!(&turns, &weights);
        }
    }

    #[test]
    fn an_ejected_host_is_not_picked_while_another_can_serve(
        weights in prop::collection::vec(0_u32..4, 1..6),
        balance in 0_usize..3, failures in 0_u32..4, max_ejected in 0.0..=1.0,
        steps in prop::collection::vec((0_u8..6, 0_usize..6, 0_u64..700, 0_u64..64), 1..200),
    ) {
        let rule = OutlierRule {
            consecutive_failures: failures, base_ejection: Nanos(1000), max_ejected_fraction: max_ejected, ..STEADY
        };
        let hash = BalancePolicy::ConsistentHash { max_load_percent: 125 };
        let balance = [BalancePolicy::RoundRobin, BalancePolicy::LeastInFlight, hash][balance];
        let mut hosts = HostBalancer::new(&weights, balance, rule);
        let mut in_flight = vec![0_u32; weights.len()];
        let mut now = Nanos(0);
        let mut unhealthy = 0_u64;
        for (kind, host, later, avoid) in steps {
            let host = host % weights.len();
            match kind {
                0..3 => {
                    let up: Vec<usize> = (0..weights.len()).filter(|host| !hosts.is_ejected(now, *host)).collect();
                    let all = if hosts.is_panicking() { (0..weights.len()).collect() } else { up.clone() };
                    if unhealthy == 0 {
                        prop_assert!(up.len() as f64 >= (weights.len() as f64 * (1.0 - max_ejected)).floor());
                        prop_assert!(!hosts.is_panicking());
                    }
                    let wanted: Vec<usize> = all.iter().copied().filter(|host| avoid >> host & 1 == 0).collect();
                    let host = hosts.pick(now, avoid, (later % 3 > 0).then_some(later));
                    prop_assert!(host < weights.len());
                    prop_assert!(wanted.is_empty() || wanted.contains(&host));
                    prop_assert!(all.is_empty() || all.contains(&host));
                    hosts.began(host);
                    in_flight[host] += 1;
                }
                3 => {
                    let ok = later % 2 == 0;
                    hosts.health_checked(now, hosts.slot(host), ok);
                    unhealthy = if ok { unhealthy & !bit(host) } else { unhealthy | bit(host) };
                }
                _ if in_flight[host] > 0 => {
                    let outcomes =
                        [HostOutcome::Ok, HostOutcome::Failed, HostOutcome::Failed, HostOutcome::Cancelled];
                    ended(&mut hosts, now, host, outcomes[avoid as usize % 4]);
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
