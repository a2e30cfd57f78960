//! What an operator sees of a host, beside a naive record of what happened.

use super::*;

#[test]
fn a_condition_says_who_has_decided() {
    let rule = OutlierRule { panic_threshold: Some(0.0), ..TOUCHY };
    let mut hosts = HostBalancer::new(&[1, 1, 1], BalancePolicy::RoundRobin, rule);
    let now = Nanos::from_secs(1);
    let all = |hosts: &HostBalancer, now| [0, 1, 2].map(|host| hosts.condition(now, host).name());
    fails(&mut hosts, now, 0, 2);
    assert!(hosts.eject_by_operator(hosts.slot(1)));
    hosts.health_checked(now, hosts.slot(2), false);
    assert_eq!(all(&hosts, now), ["ejected_outlier", "ejected_operator", "unhealthy"]);
    assert_eq!(hosts.condition(now, 0), HostCondition::Outlier(Nanos::SECOND));
    // A further failed check does not take the operator's name away, and a passed one ends both.
    hosts.health_checked(now, hosts.slot(1), false);
    let later = now + Nanos::SECOND;
    assert_eq!(all(&hosts, later), ["probed", "ejected_operator", "unhealthy"]);
    (1..3).for_each(|host| hosts.health_checked(later, hosts.slot(host), true));
    hosts.began(0);
    assert_eq!(hosts.condition(later, 0), HostCondition::Probed, "while the probe is in flight, too");
    ended(&mut hosts, later, 0, HostOutcome::Ok);
    assert_eq!(all(&hosts, later), ["healthy"; 3]);
    assert_eq!(hosts.totals(0), HostTotals { succeeded: 1, failed: 2 });
}

#[test]
fn a_host_in_the_slot_of_another_is_new() {
    let candidate = |id| Candidate { id, weight: 1 };
    let mut hosts = HostBalancer::of_candidates(&[candidate(1), candidate(2)], BalancePolicy::RoundRobin, TOUCHY);
    let before = hosts.slot(1);
    fails(&mut hosts, Nanos::ZERO, 1, 1);
    assert!(hosts.eject_by_operator(before));
    hosts.set_hosts(Nanos(1), &[candidate(1), candidate(3)]);
    assert_eq!((hosts.condition(Nanos(1), 1), hosts.totals(1)), (HostCondition::Healthy, HostTotals::default()));
    assert!(!hosts.eject_by_operator(before), "the host that was meant is gone");
    assert_eq!(hosts.condition(Nanos(2), 1), HostCondition::Healthy);
}

proptest! {
    #[test]
    fn conditions_are_those_of_a_naive_record(
        steps in prop::collection::vec((0_u8..6, 0_usize..4, 0_u64..700), 1..200),
    ) {
        let rule = OutlierRule { consecutive_failures: 2, base_ejection: Nanos(1000), ..STEADY };
        let mut hosts = HostBalancer::new(&[1; 4], BalancePolicy::RoundRobin, rule);
        let mut now = Nanos(1);
        let (mut by_operator, mut failed_check) = ([false; 4], [false; 4]);
        let mut totals = [HostTotals::default(); 4];
        for (kind, host, later) in steps {
            let slot = hosts.slot(host);
            match kind {
                0 => {
                    let before = [0, 1, 2, 3].map(|host| hosts.condition(now, host));
                    let left = (0..4).filter(|other| *other != host && before[*other] == HostCondition::Healthy);
                    // Half of the hosts have to be left.
                    let may = left.count() >= 2;
                    prop_assert_eq!(hosts.eject_by_operator(slot), may);
                    if may {
                        by_operator[host] = true;
                    } else {
                        prop_assert_eq!([0, 1, 2, 3].map(|host| hosts.condition(now, host)), before);
                    }
                }
                1 => {
                    hosts.health_checked(now, slot, false);
                    failed_check[host] = true;
                }
                2 => {
                    hosts.health_checked(now, slot, true);
                    (by_operator[host], failed_check[host]) = (false, false);
                }
                3 => {
                    fails(&mut hosts, now, host, 1);
                    totals[host].failed += 1;
                }
                4 => {
                    hosts.began(host);
                    ended(&mut hosts, now, host, HostOutcome::Ok);
                    totals[host].succeeded += 1;
                }
                _ => now += Nanos(later),
            }
            for host in 0..4 {
                let condition = hosts.condition(now, host);
                prop_assert_eq!(condition == HostCondition::Operator, by_operator[host]);
                prop_assert_eq!(condition == HostCondition::Unhealthy, failed_check[host] && !by_operator[host]);
                // No attempt is in flight between two steps, so one that is probed could have one.
                let gets_none = !matches!(condition, HostCondition::Healthy | HostCondition::Probed);
                prop_assert_eq!(hosts.is_ejected(now, host), gets_none);
                prop_assert_eq!(hosts.totals(host), totals[host]);
            }
        }
    }
}
