//! Networks of trusted proxies.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weir_base::fault::Fault;

/// Trusted proxies: those whose forwarding headers are kept and extended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies(Vec<Network>);

/// A network: addresses with the same first bits (CIDR). IPv4-mapped IPv6 addresses are IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// First address and prefix length, 0 to 32.
    V4(Ipv4Addr, u32),
    /// First address and prefix length, 0 to 128.
    V6(Ipv6Addr, u32),
}

impl Proxies {
    /// All proxies of these networks.
    pub fn new(networks: Vec<Network>) -> Self {
        Self(networks)
    }

    /// Whether a proxy at this address is trusted.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }
}

impl Network {
    /// Parses `10.0.0.0/8`, `2001:db8::/32`, or one address.
    ///
    /// # Errors
    /// The fault, a text to follow the value.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        const NETWORK_REMEDY: &str = r#"write it as "10.0.0.0/8", "2001:db8::/32", or one address"#;
        let wrong = |what: &str| Fault::new(what, NETWORK_REMEDY);
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong("is not a network"))?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => width,
            Some(bits) => {
                let plain = !bits.is_empty() && bits.len() <= 3 && bits.bytes().all(|b| b.is_ascii_digit());
                let bits = Some(bits).filter(|_| plain).and_then(|bits| bits.parse().ok());
                bits.filter(|bits| *bits <= width).ok_or_else(|| wrong("is not a network"))?
            }
        };
        let network = match (address, address.to_canonical()) {
            (IpAddr::V6(_), IpAddr::V4(mapped)) if bits >= 96 => Self::V4(mapped, bits - 96),
            (IpAddr::V6(address), _) => Self::V6(address, bits),
            (IpAddr::V4(address), _) => Self::V4(address, bits),
        };
        let first = network.first();
        if first != network {
            let remedy = format!("write the network as \"{first}\", or the address alone");
            return Err(Fault::new("has bits beyond its prefix", remedy));
        }
        Ok(network)
    }

    /// Network by its first address.
    fn first(self) -> Self {
        match self {
            Self::V4(address, bits) => Self::V4((address.to_bits() & mask(32, bits) as u32).into(), bits),
            Self::V6(address, bits) => Self::V6((address.to_bits() & mask(128, bits)).into(), bits),
        }
    }

    /// Whether the address is in the network.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self, address.to_canonical()) {
            (Self::V4(of, bits), IpAddr::V4(address)) => {
                (of.to_bits() ^ address.to_bits()) & mask(32, bits) as u32 == 0
            }
            (Self::V6(of, bits), IpAddr::V6(address)) => (of.to_bits() ^ address.to_bits()) & mask(128, bits) == 0,
            _ => false,
        }
    }
}

impl std::fmt::Display for Proxies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, network) in self.0.iter().enumerate() {
            write!(f, "{}{network}", if index > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

/// The first `bits` of `width` bits, set.
fn mask(width: u32, bits: u32) -> u128 {
    let low = u128::MAX.checked_shl(width - bits).unwrap_or(0);
    if width == 128 { low } else { low & ((1 << width) - 1) }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::V4(address, bits) => write!(f, "{address}/{bits}"),
            Self::V6(address, bits) => write!(f, "{address}/{bits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use proptest::prelude::*;

    use super::*;

    fn has(network: &str, address: &str) -> bool {
        Network::parse(network).unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn a_network_has_the_addresses_that_begin_as_it_does() {
        for (network, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("::ffff:10.0.0.0/104", "10.1.2.3", true),
            ("0.0.0.0/0", "255.255.255.255", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "::1", true),
            ("::/0", "127.0.0.1", false),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("::1", "::1", true),
        ] {
            assert_eq!(has(network, address), expected, "{network} {address}");
        }
    }

    #[test]
    fn what_is_no_network_is_said_with_a_remedy() {
        for wrong in
            ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "10.0.0/8", "::/129", "proxy", "10.0.0.0/8/8", "[::1]"]
        {
            assert_eq!(Network::parse(wrong).unwrap_err().what, "is not a network", "{wrong}");
        }
        let Fault { what, remedy } = Network::parse("10.0.0.1/8").unwrap_err();
        assert_eq!(what, "has bits beyond its prefix");
        assert_eq!(remedy, "write the network as \"10.0.0.0/8\", or the address alone");
    }

    /// The same by comparison of bits as text.
    fn naive(network: u128, bits: u32, address: u128, width: usize) -> bool {
        let text = |number: u128| format!("{number:0width$b}");
        text(network)[..bits as usize] == text(address)[..bits as usize]
    }

    proptest! {
        #[test]
        fn networks_have_what_bits_say(network: u128, address: u128, bits in 0_u32..=128, flip in 0_u32..128) {
            for address in [address, network, network ^ 1 << flip] {
                let of = Network::V6(network.into(), bits);
                let contains = of.contains(IpAddr::V6(address.into()));
                let is_mapped = IpAddr::V6(address.into()).to_canonical().is_ipv4();
                prop_assert_eq!(contains, !is_mapped && naive(network, bits, address, 128));
                prop_assert_eq!(Network::parse(&of.first().to_string()).map(|read| read.to_string()).ok(), match of.first() {
                    Network::V6(first, bits) if bits >= 96 && first.to_ipv4_mapped().is_some() => {
                        Some(Network::V4(first.to_ipv4_mapped().unwrap(), bits - 96).to_string())
                    }
                    first => Some(first.to_string()),
                });
                let (network, address, bits) = (network as u32, address as u32, bits % 33);
                let contains = Network::V4(network.into(), bits).contains(IpAddr::V4(address.into()));
                prop_assert_eq!(contains, naive(network.into(), bits, address.into(), 32));
            }
        }
    }
}
