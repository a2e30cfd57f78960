//! Hosts of services, against a naive oracle.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use proptest::prelude::*;

use super::super::message::SrvRecord;
use super::super::name::DnsName;
use super::super::service::{ServiceStep, TargetAddresses, service_step};
use super::name;

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

fn record(priority: u16, weight: u16, port: u16, target: &str) -> SrvRecord {
    SrvRecord { priority, weight, port, target: DnsName::new(target) }
}

fn hosts(list: &[(u8, u16, u32)]) -> BTreeMap<SocketAddr, u32> {
    list.iter().map(|(last, port, weight)| (SocketAddr::new(address(*last), *port), *weight)).collect()
}

#[test]
fn hosts_are_those_of_the_first_priority_with_an_address() {
    let records = [
        record(10, 0, 80, "a.test"),
        record(10, 5, 81, "b.test"),
        record(20, 7, 82, "c.test"),
        record(10, 3, 80, "also-a.test"),
    ];
    let mut targets = BTreeMap::new();
    let ServiceStep::Ask(asked) = service_step(&records, &targets) else { panic!("nothing is asked") };
    assert_eq!(asked, [name("a.test"), name("also-a.test"), name("b.test")]);
    targets.insert(name("a.test"), TargetAddresses::Found(vec![address(1)]));
    targets.insert(name("also-a.test"), TargetAddresses::Found(vec![address(1)]));
    targets.insert(name("b.test"), TargetAddresses::Found(vec![address(2), address(3)]));
    let expected = hosts(&[(1, 80, 4), (2, 81, 5), (3, 81, 5)]);
    assert_eq!(service_step(&records, &targets), ServiceStep::Hosts(expected));

    // A failed question is no evidence that a target has no address.
    for target in ["a.test", "also-a.test", "b.test"] {
        targets.insert(name(target), TargetAddresses::Absent);
    }
    targets.insert(name("b.test"), TargetAddresses::Failed);
    assert_eq!(service_step(&records, &targets), ServiceStep::Failed);
    targets.insert(name("b.test"), TargetAddresses::Absent);
    assert_eq!(service_step(&records, &targets), ServiceStep::Ask(vec![name("c.test")]));
    targets.insert(name("c.test"), TargetAddresses::Found(vec![address(9)]));
    assert_eq!(service_step(&records, &targets), ServiceStep::Hosts(hosts(&[(9, 82, 7)])));
}

#[test]
fn a_service_may_not_be_available() {
    let records = [record(0, 0, 0, ".")];
    assert_eq!(records[0].target, None);
    assert_eq!(service_step(&records, &BTreeMap::new()), ServiceStep::Absent);
}

#[derive(Clone, Debug)]
struct Zone {
    records: Vec<SrvRecord>,
    targets: BTreeMap<DnsName, TargetAddresses>,
}

fn zone() -> impl Strategy<Value = Zone> {
    let target = |index: usize| if index == 6 { None } else { Some(name(&format!("t{index}.test"))) };
    let record = (0u16..4, prop_oneof![Just(0u16), any::<u16>()], 1u16..4, 0usize..7)
        .prop_map(move |(priority, weight, port, index)| SrvRecord { priority, weight, port, target: target(index) });
    let known = prop_oneof![
        proptest::collection::vec((0u8..5).prop_map(address), 1..4).prop_map(TargetAddresses::Found),
        Just(TargetAddresses::Absent),
        Just(TargetAddresses::Absent),
        Just(TargetAddresses::Failed),
    ];
    (proptest::collection::vec(record, 0..12), proptest::collection::vec(known, 6)).prop_map(move |(records, known)| {
        let targets =
            known.into_iter().enumerate().filter_map(|(index, known)| Some((target(index)?, known))).collect();
        Zone { records, targets }
    })
}

/// The hosts, the targets that have to be asked for, and whether a question fails, by looking at each number.
fn oracle(zone: &Zone) -> (BTreeMap<SocketAddr, u32>, BTreeSet<DnsName>, bool) {
    let mut asked = BTreeSet::new();
    for priority in 0..8 {
        let of: Vec<&SrvRecord> = zone.records.iter().filter(|record| record.priority == priority).collect();
        asked.extend(of.iter().filter_map(|record| record.target.clone()));
        let mut flat = Vec::new();
        let mut has_failed = false;
        for record in of {
            match record.target.as_ref().map(|target| &zone.targets[target]) {
                Some(TargetAddresses::Found(all)) => {
                    for address in all {
                        flat.push((
                            SocketAddr::new(*address, record.port),
                            if record.weight == 0 { 1 } else { record.weight },
                        ));
                    }
                }
                Some(TargetAddresses::Failed) => has_failed = true,
                _ => {}
            }
        }
        if !flat.is_empty() || has_failed {
            let mut hosts = BTreeMap::new();
            for (host, _) in &flat {
                let weight = flat.iter().filter(|(other, _)| other == host).map(|(_, weight)| u32::from(*weight)).sum();
                hosts.insert(*host, weight);
            }
            return (hosts, asked, has_failed);
        }
    }
    (BTreeMap::new(), asked, false)
}

proptest! {
    #[test]
    fn hosts_are_those_of_the_oracle(zone in zone()) {
        let (expected, needed, has_failed) = oracle(&zone);
        let mut known = BTreeMap::new();
        let last = loop {
            match service_step(&zone.records, &known) {
                ServiceStep::Ask(names) => {
                    prop_assert!(!names.is_empty());
                    for name in names {
                        let answer = zone.targets[&name].clone();
                        prop_assert!(known.insert(name, answer).is_none(), "asked twice");
                    }
                }
                last => break last,
            }
        };
        prop_assert_eq!(known.keys().cloned().collect::<BTreeSet<_>>(), needed, "no priority is asked for in vain");
        match last {
            ServiceStep::Hosts(hosts) => prop_assert_eq!(hosts, expected),
            ServiceStep::Failed => prop_assert!(has_failed && expected.is_empty()),
            ServiceStep::Absent => prop_assert!(!has_failed && expected.is_empty()),
            ServiceStep::Ask(_) => unreachable!(),
        }
    }
}
