//! Names of `/etc/hosts`, which come before DNS.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses of a name in a file as `/etc/hosts`; empty if it does not have the name. `localhost`, and what ends with
/// it, is this machine in any case (RFC 6761, section 6.3).
pub(super) fn addresses(text: &str, name: &str) -> Vec<IpAddr> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let mut found = Vec::new();
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(Ok(address)) = words.next().map(str::parse::<IpAddr>) else { continue };
        if words.any(|word| word.eq_ignore_ascii_case(name)) && !found.contains(&address) {
            found.push(address);
        }
    }
    if found.is_empty() && is_localhost(name) {
        return vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    }
    found
}

fn is_localhost(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}
