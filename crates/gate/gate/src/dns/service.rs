//! Hosts of a service, from its SRV records and the addresses of their targets (RFC 2782).

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use super::message::SrvRecord;
use super::name::DnsName;
use weir_resilience::upstream::hosts::MAX_HOSTS;

/// Result of a target's address queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TargetAddresses {
    /// At least one.
    Found(Vec<IpAddr>),
    /// There are none.
    Absent,
    /// The query has failed: there may be some.
    Failed,
}

/// Next step of a service's resolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServiceStep {
    /// Query the addresses of these targets first.
    Ask(Vec<DnsName>),
    /// The service's hosts, with their weights of at least 1.
    Hosts(BTreeMap<SocketAddr, u32>),
    /// Address queries have failed, and no address is known.
    Failed,
    /// No target has an address.
    Absent,
}

/// The hosts of the lowest priority number whose targets have an address. A question that failed is no evidence that a
/// target has none, so a service does not go to its next priority by it.
pub(super) fn service_step(records: &[SrvRecord], targets: &BTreeMap<DnsName, TargetAddresses>) -> ServiceStep {
    let priorities: BTreeSet<u16> = records.iter().map(|record| record.priority).collect();
    for priority in priorities {
        // More targets than hosts are of no use.
        let level = || records.iter().filter(|record| record.priority == priority).take(MAX_HOSTS);
        let names: BTreeSet<&DnsName> = level().filter_map(|record| record.target.as_ref()).collect();
        let unknown: Vec<DnsName> =
            names.iter().filter(|name| !targets.contains_key(**name)).map(|name| (*name).clone()).collect();
        if !unknown.is_empty() {
            return ServiceStep::Ask(unknown);
        }
        let mut hosts = BTreeMap::new();
        for record in level() {
            let Some(TargetAddresses::Found(addresses)) = record.target.as_ref().and_then(|name| targets.get(name))
            else {
                continue;
            };
            for address in addresses {
                let weight: &mut u32 = hosts.entry(SocketAddr::new(*address, record.port)).or_default();
                *weight += u32::from(record.weight.max(1));
            }
        }
        if !hosts.is_empty() {
            return ServiceStep::Hosts(hosts);
        }
        if names.iter().any(|name| targets.get(*name) == Some(&TargetAddresses::Failed)) {
            return ServiceStep::Failed;
        }
    }
    ServiceStep::Absent
}
