//! Hosts that come and go, keys, slow starts and health checks.

use super::*;

fn candidates(ids: &[u64]) -> Vec<Candidate> {
    ids.iter().map(|id| Candidate { id: *id, weight: 1 }).collect()
}

fn by_hash(ids: &[u64]) -> HostBalancer {
    let balance = BalancePolicy::ConsistentHash { max_load_percent: 125 };
    HostBalancer::of_candidates(&candidates(ids), balance, STEADY)
}

#[test]
fn a_key_stays_at_its_host_when_others_come_and_go() {
    let mut hosts = by_hash(&[10, 20, 30]);
    let owners: Vec<usize> = (0..300).map(|key| hosts.pick(Nanos::ZERO, 0, Some(key))).collect();
    let now = Nanos::from_secs(1);
    let placed = hosts.set_hosts(now, &candidates(&[30, 40, 10]));
    let slots: Vec<usize> = placed.iter().flatten().map(|slot| slot.index).collect();
    assert_eq!(slots, [2, 1, 0], "20 has gone, and 40 has its slot");
    for (key, owner) in (0..300).zip(owners) {
        let next = hosts.pick(now, 0, Some(key));
        assert!(owner == 1 || next == owner || next == 1, "{key}: {owner} {next}");
    }
}

#[test]
fn an_attempt_at_a_host_that_has_gone_counts_for_no_other() {
    let mut hosts = HostBalancer::of_candidates(&candidates(&[1, 2]), BalancePolicy::LeastInFlight, TOUCHY);
    let before = hosts.slot(1);
    hosts.began(1);
    hosts.began(1);
    hosts.set_hosts(Nanos(5), &candidates(&[1, 3]));
    assert_eq!((hosts.in_flight(1), hosts.slot(1).generation), (0, 1));
    hosts.began(1);
    for _ in 0..2 {
        hosts.ended(Nanos(6), before, HostOutcome::Failed, None);
        hosts.health_checked(Nanos(6), before, false);
    }
    assert_eq!((hosts.in_flight(1), hosts.is_ejected(Nanos(6), 1)), (1, false));
}

#[test]
fn without_new_hosts_the_old_ones_stay_and_beyond_64_there_are_none() {
    let mut hosts = by_hash(&[1, 2]);
    assert_eq!((hosts.set_hosts(Nanos(1), &[]).len(), hosts.slots().count()), (0, 2));
    let many: Vec<u64> = (1..80).collect();
    let placed = hosts.set_hosts(Nanos(1), &candidates(&many));
    assert_eq!((placed.iter().flatten().count(), hosts.slots().count()), (64, 64));
}

#[test]
fn a_host_keeps_its_turns_when_large_weights_change() {
    let weighted = |ids: &[(u64, u32)]| -> Vec<Candidate> {
        ids.iter().map(|(id, weight)| Candidate { id: *id, weight: *weight }).collect()
    };
    let turns = |hosts: &mut HostBalancer| -> Vec<usize> { (0..6).map(|_| hosts.pick(Nanos(1), 0, None)).collect() };
    let large = weighted(&[(1, 65_535), (2, 1)]);
    for before in 0..4 {
        // Others have gone, have come, or have other weights.
        for after in [&[(2, 1), (3, 1)][..], &[(1, 1), (2, 1)]] {
            let mut hosts = HostBalancer::of_candidates(&large, BalancePolicy::RoundRobin, STEADY);
            for _ in 0..[1, 2, 32_768, 65_536][before] {
                hosts.pick(Nanos::ZERO, 0, None);
            }
            hosts.set_hosts(Nanos(1), &weighted(after));
            let turns = turns(&mut hosts);
            assert_eq!(turns.iter().filter(|slot| **slot == 0).count(), 3, "{before} {turns:?}");
        }
    }
}

#[test]
fn a_popular_key_does_not_overload_its_host() {
    let mut hosts = by_hash(&[1, 2, 3, 4]);
    for sent in 1..=400_u32 {
        let host = hosts.pick(Nanos::ZERO, 0, Some(7));
        hosts.began(host);
        let bound = (sent * 125).div_ceil(400);
        assert!(hosts.in_flight(host) <= bound, "{} of {sent}", hosts.in_flight(host));
    }
    // 125 on its own host, then on the next one of the key, and so on.
    let mut loads: Vec<u32> = (0..4).map(|host| hosts.in_flight(host)).collect();
    loads.sort_unstable();
    assert_eq!(loads, [25, 125, 125, 125]);
}

#[test]
fn a_new_host_starts_slowly() {
    let mut hosts = HostBalancer::of_candidates(&candidates(&[1]), BalancePolicy::RoundRobin, STEADY);
    hosts.set_slow_start(Nanos::from_secs(10));
    let begin = Nanos::from_secs(100);
    hosts.set_hosts(begin, &candidates(&[1, 2]));
    let mut share = |after_s: u64| {
        let now = begin + Nanos::from_secs(after_s);
        (0..1100).filter(|_| hosts.pick(now, 0, None) == 1).count()
    };
    assert_eq!(share(0), 100, "a tenth of the other's");
    let half = share(5);
    assert!((365..=368).contains(&half), "{half}");
    let whole = share(10);
    assert!((549..=551).contains(&whole), "{whole}");
}

#[test]
fn a_host_that_fails_its_check_has_no_attempts_until_one_succeeds() {
    let mut hosts = HostBalancer::new(&[1, 1, 1], BalancePolicy::RoundRobin, STEADY);
    hosts.health_checked(Nanos(1), hosts.slot(2), false);
    assert!((0..9).all(|_| hosts.pick(Nanos::from_secs(1000), 0, None) != 2), "time alone does not end it");
    hosts.health_checked(Nanos(2), hosts.slot(2), true);
    assert!((0..3).any(|_| hosts.pick(Nanos(3), 0, None) == 2));
}

#[test]
fn with_too_few_healthy_hosts_all_get_attempts() {
    let mut hosts = HostBalancer::new(&[1; 4], BalancePolicy::RoundRobin, STEADY);
    (0..2).for_each(|host| hosts.health_checked(Nanos(1), hosts.slot(host), false));
    assert!(!hosts.is_panicking(), "half are left");
    hosts.health_checked(Nanos(1), hosts.slot(2), false);
    assert!(hosts.is_panicking());
    let mut seen = [0; 4];
    (0..8).for_each(|_| seen[hosts.pick(Nanos(2), 0, None)] += 1);
    assert_eq!(seen, [2; 4]);
    hosts.health_checked(Nanos(3), hosts.slot(0), true);
    assert!(!hosts.is_panicking() && hosts.is_ejected(Nanos(3), 1));
}

proptest! {
    /// The host of a key, and loads, against a search without shortcuts.
    #[test]
    fn a_key_goes_to_its_cheapest_host_below_its_bound(
        ids in prop::collection::btree_set(0_u64..1000, 1..12),
        keys in prop::collection::vec((0_u64..20, 0_u64..4096), 1..100),
        percent in 100_u32..300,
    ) {
        let ids: Vec<u64> = ids.into_iter().collect();
        let balance = BalancePolicy::ConsistentHash { max_load_percent: percent };
        let mut hosts = HostBalancer::of_candidates(&candidates(&ids), balance, STEADY);
        let mut loads = vec![0_u64; ids.len()];
        for (key, avoid) in keys {
            let mut open: Vec<usize> = (0..ids.len()).filter(|host| avoid >> host & 1 == 0).collect();
            if open.is_empty() {
                open = (0..ids.len()).collect();
            }
            let total = 1 + open.iter().map(|host| loads[*host]).sum::<u64>();
            let has_room = |host: &&usize| loads[**host] < (total * u64::from(percent)).div_ceil(open.len() as u64 * 100);
            let cost = |host: usize| Candidate { id: ids[host], weight: 100 }.cost(key);
            let expected = open.iter().filter(has_room).min_by(|a, b| cost(**a).total_cmp(&cost(**b)));
            let host = hosts.pick(Nanos::ZERO, avoid, Some(key));
            prop_assert_eq!(Some(&host), expected);
            hosts.began(host);
            loads[host] += 1;
        }
    }

    #[test]
    fn sets_of_hosts_keep_those_that_stay(
        sets in prop::collection::vec(prop::collection::btree_set(0_u64..12, 1..9), 1..12),
    ) {
        let mut hosts = by_hash(&[0]);
        let mut known: std::collections::BTreeMap<u64, HostSlot> = [(0, hosts.slot(0))].into();
        let mut used = std::collections::BTreeSet::from([hosts.slot(0)].map(|slot| (slot.index, slot.generation)));
        for set in sets {
            let ids: Vec<u64> = set.iter().copied().collect();
            let placed = hosts.set_hosts(Nanos(1), &candidates(&ids));
            let mut now = std::collections::BTreeMap::new();
            for (id, slot) in ids.iter().zip(placed) {
                let slot = slot.unwrap();
                match known.get(id) {
                    Some(before) => prop_assert_eq!(*before, slot),
                    None => prop_assert!(used.insert((slot.index, slot.generation)), "a slot and generation is one host"),
                }
                now.insert(*id, slot);
            }
            prop_assert_eq!(hosts.slots().count(), ids.len());
            known = now;
        }
    }
}
