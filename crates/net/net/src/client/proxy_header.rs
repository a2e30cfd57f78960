//! The header of the PROXY protocol that begins a connection to an origin, and names the client that it is for
//! (HAProxy's specification, `doc/proxy-protocol.txt`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Version of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyVersion {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// First bytes of a header of version 2, with its version.
const V2_START: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

impl ProxyVersion {
    /// The header for a client's connection; without a client for one of this end's own, such as a health check. The
    /// client's destination is unknown here, and is the unspecified address.
    pub(super) fn header(self, client: Option<SocketAddr>) -> Vec<u8> {
        let client = client.map(|client| SocketAddr::new(client.ip().to_canonical(), client.port()));
        match (self, client) {
            (Self::V1, None) => b"PROXY UNKNOWN\r\n".to_vec(),
            (Self::V1, Some(client)) => {
                let (family, unspecified) = if client.is_ipv4() { ("TCP4", "0.0.0.0") } else { ("TCP6", "::") };
                format!("PROXY {family} {} {unspecified} {} 0\r\n", client.ip(), client.port()).into_bytes()
            }
            (Self::V2, None) => [&V2_START[..], &[0x20, 0, 0, 0]].concat(),
            (Self::V2, Some(client)) => {
                let port = client.port().to_be_bytes();
                match client.ip() {
                    IpAddr::V4(ip) => {
                        let to = Ipv4Addr::UNSPECIFIED.octets();
                        [&V2_START[..], &[0x21, 0x11, 0, 12], &ip.octets(), &to, &port, &[0, 0]].concat()
                    }
                    IpAddr::V6(ip) => {
                        let to = Ipv6Addr::UNSPECIFIED.octets();
                        [&V2_START[..], &[0x21, 0x21, 0, 36], &ip.octets(), &to, &port, &[0, 0]].concat()
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn headers_have_the_bytes_of_the_specification() {
        let text = |client: &str| String::from_utf8(ProxyVersion::V1.header(Some(client.parse().unwrap()))).unwrap();
        assert_eq!(text("192.0.2.7:51364"), "PROXY TCP4 192.0.2.7 0.0.0.0 51364 0\r\n");
        assert_eq!(text("[::ffff:192.0.2.7]:1"), "PROXY TCP4 192.0.2.7 0.0.0.0 1 0\r\n");
        assert_eq!(text("[2001:db8::1]:65535"), "PROXY TCP6 2001:db8::1 :: 65535 0\r\n");
        assert_eq!(ProxyVersion::V1.header(None), b"PROXY UNKNOWN\r\n");
        let start = b"\r\n\r\n\0\r\nQUIT\n";
        let binary = |client: &str| ProxyVersion::V2.header(Some(client.parse().unwrap()));
        assert_eq!(
            binary("1.2.3.4:258"),
            [&start[..], &[0x21, 0x11, 0, 12, 1, 2, 3, 4, 0, 0, 0, 0, 1, 2, 0, 0]].concat()
        );
        let six = binary("[2001:db8::1]:258");
        assert_eq!(
            (&six[12..20], six.len(), &six[48..]),
            (&[0x21, 0x21, 0, 36, 0x20, 1, 0xd, 0xb8][..], 52, &[1, 2, 0, 0][..])
        );
        assert_eq!(ProxyVersion::V2.header(None), [&start[..], &[0x20, 0, 0, 0]].concat());
    }
}
