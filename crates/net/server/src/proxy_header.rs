//! The PROXY protocol, versions 1 and 2: the header by which a proxy names the client of a connection, before the
//! client's own bytes (HAProxy's specification, `doc/proxy-protocol.txt`).
//!
//! Only the source address is used. A header that is not valid in every part is rejected: what follows it would be read
//! at the wrong place, as a request that was never sent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Result of reading the first bytes of a connection from a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// The beginning of a header, so far valid.
    Incomplete,
    /// A header.
    Complete {
        /// Length of the header in bytes; the client's own bytes follow.
        length: usize,
        /// Address of the client; None if the connection is the proxy's own (`LOCAL`), or the proxy does not know it
        /// (`UNKNOWN`).
        source: Option<SocketAddr>,
    },
    /// No valid header; the reason.
    Invalid(&'static str),
}

/// First bytes of a header of version 2.
const V2_SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes of a header of version 2 before the addresses.
const V2_FIXED_BYTES: usize = 16;
/// Maximum length of a header of version 1, by the specification.
const V1_MAX_BYTES: usize = 107;
/// Maximum length of a header of version 2: addresses, a host name, certificates' names and checksum; no buffer for
/// more is kept for a connection that has sent no request yet.
const V2_MAX_BYTES: usize = 4096;
/// Type of the additional field that has the header's checksum.
const TLV_CRC32C: u8 = 3;

impl ProxyHeader {
    /// Parses the first bytes of a connection.
    pub fn parse(bytes: &[u8]) -> Self {
        let known = bytes.len().min(V2_SIGNATURE.len());
        if bytes[..known] == V2_SIGNATURE[..known] {
            return parse_v2(bytes);
        }
        let known = bytes.len().min(6);
        if bytes[..known] == b"PROXY "[..known] {
            return parse_v1(bytes);
        }
        Self::Invalid("no PROXY header")
    }
}

fn parse_v1(bytes: &[u8]) -> ProxyHeader {
    let Some(end) = bytes.iter().take(V1_MAX_BYTES).position(|byte| *byte == b'\n') else {
        let is_long = bytes.len() >= V1_MAX_BYTES;
        return if is_long { ProxyHeader::Invalid("the PROXY line is too long") } else { ProxyHeader::Incomplete };
    };
    let length = end + 1;
    let line = bytes[..end].strip_suffix(b"\r").and_then(|line| std::str::from_utf8(line).ok());
    let Some(line) = line else { return ProxyHeader::Invalid("the PROXY line does not end with CRLF") };
    let mut words = line.split(' ').skip(1);
    let is_ipv6 = match words.next() {
        // Whatever follows is to be ignored.
        Some("UNKNOWN") => return ProxyHeader::Complete { length, source: None },
        Some("TCP4") => false,
        Some("TCP6") => true,
        _ => return ProxyHeader::Invalid("the PROXY line has an unknown protocol"),
    };
    let mut address = || words.next()?.parse::<IpAddr>().ok().filter(|address| address.is_ipv6() == is_ipv6);
    let addresses = (address(), address());
    let mut port = || {
        let word = words.next()?;
        let is_plain = word.bytes().all(|byte| byte.is_ascii_digit()) && (word == "0" || !word.starts_with('0'));
        word.parse::<u16>().ok().filter(|_| is_plain)
    };
    match (addresses, (port(), port()), words.next()) {
        ((Some(source), Some(_)), (Some(port), Some(_)), None) => {
            ProxyHeader::Complete { length, source: Some(SocketAddr::new(source, port)) }
        }
        _ => ProxyHeader::Invalid("the PROXY line has invalid addresses"),
    }
}

fn parse_v2(bytes: &[u8]) -> ProxyHeader {
    let Some(fixed) = bytes.get(V2_SIGNATURE.len()..V2_FIXED_BYTES) else { return ProxyHeader::Incomplete };
    let (version_and_command, family) = (fixed[0], fixed[1]);
    if version_and_command >> 4 != 2 {
        return ProxyHeader::Invalid("the PROXY header has an unknown version");
    }
    let is_local = match version_and_command & 15 {
        0 => true,
        1 => false,
        _ => return ProxyHeader::Invalid("the PROXY header has an unknown command"),
    };
    let length = V2_FIXED_BYTES + usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if length > V2_MAX_BYTES {
        return ProxyHeader::Invalid("the PROXY header is too long");
    }
    let Some(header) = bytes.get(..length) else { return ProxyHeader::Incomplete };
    let rest = &header[V2_FIXED_BYTES..];
    // Family and transport. Of other families, and of datagrams, nothing is known but their length.
    let (address_bytes, source) = match family {
        0x11 => (12, source_v4(rest)),
        0x21 => (36, source_v6(rest)),
        0x31 => (216, None),
        _ => (rest.len(), None),
    };
    let Some(fields) = rest.get(address_bytes..) else {
        return ProxyHeader::Invalid("the PROXY header is too short for its addresses");
    };
    if let Err(why) = check_fields(header, fields) {
        return ProxyHeader::Invalid(why);
    }
    ProxyHeader::Complete { length, source: if is_local { None } else { source } }
}

fn source_v4(rest: &[u8]) -> Option<SocketAddr> {
    let address = <[u8; 4]>::try_from(rest.get(..4)?).ok()?;
    let port = <[u8; 2]>::try_from(rest.get(8..10)?).ok()?;
    Some(SocketAddr::new(Ipv4Addr::from(address).into(), u16::from_be_bytes(port)))
}

fn source_v6(rest: &[u8]) -> Option<SocketAddr> {
    let address = <[u8; 16]>::try_from(rest.get(..16)?).ok()?;
    let port = <[u8; 2]>::try_from(rest.get(32..34)?).ok()?;
    Some(SocketAddr::new(Ipv6Addr::from(address).into(), u16::from_be_bytes(port)))
}

/// Checks the framing of the additional fields, and the checksum if there is one.
fn check_fields(header: &[u8], mut fields: &[u8]) -> Result<(), &'static str> {
    while let [kind, high, low, rest @ ..] = fields {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some((value, others)) = rest.split_at_checked(length) else {
            return Err("a field of the PROXY header is cut");
        };
        if *kind == TLV_CRC32C {
            let sum = <[u8; 4]>::try_from(value).map_err(|_| "the PROXY header's checksum has a wrong length")?;
            let start = header.len() - others.len() - value.len();
            if crc32c(header, start..start + value.len()) != u32::from_be_bytes(sum) {
                return Err("the PROXY header's checksum is wrong");
            }
        }
        fields = others;
    }
    if fields.is_empty() { Ok(()) } else { Err("a field of the PROXY header is cut") }
}

/// CRC-32C (Castagnoli) of the bytes, with those of `zeroed` as zeros.
fn crc32c(bytes: &[u8], zeroed: std::ops::Range<usize>) -> u32 {
    let mut sum = !0_u32;
    for (index, byte) in bytes.iter().enumerate() {
        sum ^= u32::from(if zeroed.contains(&index) { 0 } else { *byte });
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0x82f6_3b78 } else { sum >> 1 };
        }
    }
    !sum
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use proptest::prelude::*;

    use super::*;

    fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
        [&V2_SIGNATURE[..], &[0x20 | command, family], &length, rest].concat()
    }

    fn source(bytes: &[u8]) -> Option<String> {
        match ProxyHeader::parse(bytes) {
            ProxyHeader::Complete { source, .. } => source.map(|source| source.to_string()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_of_version_1_parse() {
        for (line, expected) in [
            ("PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n", Some("192.0.2.1:56324")),
            ("PROXY TCP6 2001:db8::1 ::1 65535 0\r\n", Some("[2001:db8::1]:65535")),
            ("PROXY UNKNOWN\r\n", None),
            ("PROXY UNKNOWN ffff:f...f:ffff whatever 1\r\n", None),
        ] {
            assert_eq!(source(format!("{line}GET / HTTP/1.1\r\n").as_bytes()).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn other_lines_are_rejected() {
        for line in [
            "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 56324\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443 1\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 56324 65536\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 +1 443\r\n",
            "PROXY TCP4 192.0.2.1 192.0.2.2 01 443\r\n",
            "PROXY TCP4  192.0.2.1 192.0.2.2 1 443\r\n",
            "PROXY TCP4 2001:db8::1 ::1 1 443\r\n",
            "PROXY TCP6 192.0.2.1 192.0.2.2 1 443\r\n",
            "PROXY UDP4 192.0.2.1 192.0.2.2 1 443\r\n",
            "PROXY \r\n",
            "PROXY\r\n",
            "GET / HTTP/1.1\r\n",
            "proxy TCP4 192.0.2.1 192.0.2.2 1 443\r\n",
        ] {
            assert!(matches!(ProxyHeader::parse(line.as_bytes()), ProxyHeader::Invalid(_)), "{line}");
        }
        let long = format!("PROXY UNKNOWN {}", "x".repeat(V1_MAX_BYTES));
        assert!(matches!(ProxyHeader::parse(long.as_bytes()), ProxyHeader::Invalid(_)));
    }

    #[test]
    fn headers_of_version_2_parse() {
        let v4 = [&[192, 0, 2, 1, 192, 0, 2, 2][..], &56324_u16.to_be_bytes(), &443_u16.to_be_bytes()].concat();
        assert_eq!(source(&v2(1, 0x11, &v4)).as_deref(), Some("192.0.2.1:56324"));
        assert_eq!(source(&v2(0, 0x11, &v4)), None, "LOCAL");
        assert_eq!(source(&v2(0, 0, &[])), None);
        assert_eq!(source(&v2(1, 0x31, &[0; 216])), None, "Unix");
        let v6 = [&[0; 15][..], &[1], &[0; 16], &80_u16.to_be_bytes(), &443_u16.to_be_bytes()].concat();
        assert_eq!(source(&v2(1, 0x21, &v6)).as_deref(), Some("[::1]:80"));
        let with_name = [&v4[..], &[2, 0, 3], b"a.b"].concat();
        assert_eq!(source(&v2(1, 0x11, &with_name)).as_deref(), Some("192.0.2.1:56324"));
        for wrong in [
            v2(2, 0x11, &v4),
            v2(1, 0x11, &v4[..11]),
            v2(1, 0x21, &v4),
            v2(1, 0x11, &[&v4[..], &[2, 0]].concat()),
            v2(1, 0x11, &[&v4[..], &[2, 0, 9, 1]].concat()),
            v2(1, 0x11, &vec![0; V2_MAX_BYTES]),
        ] {
            assert!(matches!(ProxyHeader::parse(&wrong), ProxyHeader::Invalid(_)), "{wrong:?}");
        }
    }

    #[test]
    fn checksums_are_verified() {
        assert_eq!(crc32c(b"123456789", 0..0), 0xe306_9283, "the check value of CRC-32C");
        let v4 = [192, 0, 2, 1, 192, 0, 2, 2, 0, 80, 0, 81];
        let mut header = v2(1, 0x11, &[&v4[..], &[TLV_CRC32C, 0, 4], &[0; 4]].concat());
        let sum = crc32c(&header, 0..0).to_be_bytes();
        let end = header.len();
        header[end - 4..].copy_from_slice(&sum);
        assert_eq!(source(&header).as_deref(), Some("192.0.2.1:80"));
        header[20] ^= 1;
        assert!(matches!(ProxyHeader::parse(&header), ProxyHeader::Invalid(_)));
    }

    proptest! {
        #[test]
        fn any_address_survives_and_no_prefix_is_taken_for_the_whole(
            address: [u8; 16], is_v4: bool, ports: (u16, u16), rest in proptest::collection::vec(any::<u8>(), 0..20)
        ) {
            let ip: IpAddr = if is_v4 { IpAddr::from([address[0], address[1], address[2], address[3]]) } else { address.into() };
            let kind = if is_v4 { "TCP4" } else { "TCP6" };
            let line = format!("PROXY {kind} {ip} {ip} {} {}\r\n", ports.0, ports.1).into_bytes();
            let octets = match ip { IpAddr::V4(ip) => ip.octets().to_vec(), IpAddr::V6(ip) => ip.octets().to_vec() };
            let body = [&octets[..], &octets, &ports.0.to_be_bytes(), &ports.1.to_be_bytes()].concat();
            let binary = v2(1, if is_v4 { 0x11 } else { 0x21 }, &body);
            for header in [line, binary] {
                for cut in 0..header.len() {
                    prop_assert_eq!(ProxyHeader::parse(&header[..cut]), ProxyHeader::Incomplete);
                }
                let whole = ProxyHeader::parse(&[&header[..], &rest].concat());
                let source = Some(SocketAddr::new(ip, ports.0));
                prop_assert_eq!(whole, ProxyHeader::Complete { length: header.len(), source });
            }
        }

        #[test]
        fn any_bytes_are_judged_alike_with_more_behind_them(bytes in proptest::collection::vec(any::<u8>(), 0..300), signed: bool) {
            let bytes = if signed { [&V2_SIGNATURE[..], &[0x21], &bytes].concat() } else { bytes };
            match ProxyHeader::parse(&bytes) {
                ProxyHeader::Incomplete => {}
                ProxyHeader::Complete { length, .. } => prop_assert!(length <= bytes.len()),
                invalid @ ProxyHeader::Invalid(_) => {
                    let longer = ProxyHeader::parse(&[&bytes[..], b"\r\nmore"].concat());
                    prop_assert_eq!(longer, invalid);
                }
            }
        }
    }
}
