//! The system's DNS servers, as `/etc/resolv.conf` has them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};

use super::name::DnsName;
use weir_base::Nanos;

/// Port of DNS.
pub(crate) const DNS_PORT: u16 = 53;
/// Time for a server's response. The system's is 5 s, with a caller who waits for it.
const DEFAULT_TIMEOUT: Nanos = Nanos::from_secs(2);
/// Rounds through the servers.
const DEFAULT_ATTEMPTS: u32 = 2;
/// Bounds of the options, as the system has them.
const MAX_TIMEOUT_S: u64 = 30;
const MAX_ATTEMPTS: u32 = 5;
const MAX_NDOTS: usize = 15;
/// Servers beyond these are ignored, as by the system.
const MAX_SERVERS: usize = 3;

/// DNS servers with their timeout, number of attempts and search list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DnsServers {
    /// Addresses in the order of queries; at least one.
    pub(super) addresses: Vec<SocketAddr>,
    /// Domains of relative names.
    pub(super) search: Vec<String>,
    /// Number of dots from which a name is queried as absolute before the search list.
    pub(super) ndots: usize,
    /// Time for a server's response.
    pub(super) timeout: Nanos,
    /// Rounds through the servers, at least 1.
    pub(super) attempts: u32,
}

impl DnsServers {
    /// These servers, for absolute names.
    pub(super) fn of_addresses(addresses: Vec<SocketAddr>) -> Self {
        Self { addresses, search: Vec::new(), ndots: 1, timeout: DEFAULT_TIMEOUT, attempts: DEFAULT_ATTEMPTS }
    }

    /// The servers of a file as `/etc/resolv.conf`. What it does not know, it ignores, as the system does; without a
    /// server there is that of this machine.
    pub(super) fn parse(text: &str) -> Self {
        let mut servers = Self::of_addresses(Vec::new());
        for line in text.lines() {
            let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
            match words.next() {
                Some("nameserver") => servers.addresses.extend(words.next().and_then(server)),
                // The last line holds.
                Some("search" | "domain") => servers.search = words.map(str::to_owned).collect(),
                Some("options") => words.for_each(|option| servers.set_option(option)),
                _ => {}
            }
        }
        servers.addresses.truncate(MAX_SERVERS);
        if servers.addresses.is_empty() {
            servers.addresses.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), DNS_PORT));
        }
        servers
    }

    fn set_option(&mut self, option: &str) {
        let Some((name, value)) = option.split_once(':') else { return };
        let Ok(number) = value.parse::<u32>() else { return };
        match name {
            "ndots" => self.ndots = (number as usize).min(MAX_NDOTS),
            "timeout" => self.timeout = Nanos::from_secs(u64::from(number).clamp(1, MAX_TIMEOUT_S)),
            "attempts" => self.attempts = number.clamp(1, MAX_ATTEMPTS),
            _ => {}
        }
    }

    /// Absolute names that a name may stand for, in the order of queries.
    pub(super) fn candidates(&self, name: &str) -> Vec<DnsName> {
        let as_it_is = DnsName::new(name);
        if name.ends_with('.') {
            return as_it_is.into_iter().collect();
        }
        let searched = self.search.iter().filter_map(|domain| {
            let domain = domain.trim_matches('.');
            if domain.is_empty() { DnsName::new(name) } else { DnsName::new(&format!("{name}.{domain}")) }
        });
        let mut all: Vec<DnsName> = Vec::new();
        let is_first = name.matches('.').count() >= self.ndots;
        let (before, after) = if is_first { (as_it_is, None) } else { (None, as_it_is) };
        for candidate in before.into_iter().chain(searched).chain(after) {
            if !all.contains(&candidate) {
                all.push(candidate);
            }
        }
        all
    }
}

/// Address of a server; the zone of a link-local one has to be a number.
fn server(text: &str) -> Option<SocketAddr> {
    if let Some((address, zone)) = text.split_once('%') {
        return Some(SocketAddrV6::new(address.parse().ok()?, DNS_PORT, 0, zone.parse().ok()?).into());
    }
    Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, DNS_PORT))
}
