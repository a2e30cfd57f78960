//! Keys of callers, by which calls are spread over upstreams and hosts.

use std::net::IpAddr;

use http::{HeaderMap, HeaderValue};

use super::cluster_hash::cluster_hash;
use super::config::{KeySource, Proxies};
use super::forwarding::client_address;
use super::routing::cookies;

/// The key of a request; None without a value, or with an empty one.
pub(super) fn key(source: &KeySource, headers: &HeaderMap, peer: IpAddr, proxies: &Proxies, seed: u64) -> Option<u64> {
    let value = match source {
        KeySource::Header(name) => headers.get(name).map(HeaderValue::as_bytes),
        KeySource::Cookie { name, .. } => cookies(headers, name).next(),
        KeySource::Address => return Some(hash(seed, &network(headers, peer, proxies))),
    };
    value.filter(|value| !value.is_empty()).map(|value| hash(seed, value))
}

/// Hash of a key's value. A caller cannot find a value for a given hash without the seed.
pub(super) fn hash(seed: u64, value: &[u8]) -> u64 {
    cluster_hash(&[&seed.to_be_bytes(), value])
}

/// The caller's IPv4 address, or its IPv6 /64, since one caller has all addresses of that.
pub(super) fn network(headers: &HeaderMap, peer: IpAddr, proxies: &Proxies) -> [u8; 8] {
    network_of(client_address(headers, peer, proxies))
}

/// Network of an address, which counts as one caller.
pub(super) fn network_of(address: IpAddr) -> [u8; 8] {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            [0, 0, 0, 0, a, b, c, d]
        }
        IpAddr::V6(address) => {
            let [a, b, c, d, e, f, g, h, ..] = address.octets();
            [a, b, c, d, e, f, g, h]
        }
    }
}
