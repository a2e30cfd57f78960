//! Distinguished names of certificates (RFC 5280, 4.1.2.4) as text (RFC 4514).

use std::fmt;

/// A name as a list of attributes, in the order of the certificate: the most general first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DistinguishedName(Vec<NameAttribute>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct NameAttribute {
    /// Short name of the type, or its number.
    kind: String,
    value: String,
    /// Whether it belongs to the attribute before it (a multi-valued RDN).
    continues: bool,
}

/// Short names of attribute types (RFC 4514, 3, and OpenSSL's for the others), by their encoded numbers.
const ATTRIBUTE_NAMES: [(&[u8], &str); 12] = [
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 4], "SN"),
    (&[0x55, 4, 5], "serialNumber"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "STREET"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "emailAddress"),
];

const TAG_OID: u8 = 0x06;
const TAG_BMP_STRING: u8 = 0x1e;
const TAG_SEQUENCE: u8 = 0x30;
const TAG_SET: u8 = 0x31;

impl DistinguishedName {
    /// Parses the contents of a `Name`: its relative names, in DER. None if they are malformed.
    pub(super) fn parse(der: &[u8]) -> Option<Self> {
        // Some readers return the contents, some the whole.
        let mut names = match der.first() {
            Some(&TAG_SEQUENCE) => element(der, TAG_SEQUENCE).filter(|(_, rest)| rest.is_empty())?.0,
            _ => der,
        };
        let mut attributes = Vec::new();
        while !names.is_empty() {
            let (mut set, rest) = element(names, TAG_SET)?;
            names = rest;
            let mut continues = false;
            while !set.is_empty() {
                let (pair, rest) = element(set, TAG_SEQUENCE)?;
                set = rest;
                let (oid, value) = element(pair, TAG_OID)?;
                let (tag, value, rest) = any_element(value)?;
                if !rest.is_empty() {
                    return None;
                }
                attributes.push(NameAttribute { kind: kind_name(oid)?, value: text(tag, value), continues });
                continues = true;
            }
        }
        Some(Self(attributes))
    }

    /// The most specific common name.
    pub(super) fn common_name(&self) -> Option<&str> {
        self.0.iter().rev().find(|attribute| attribute.kind == "CN").map(|attribute| attribute.value.as_str())
    }
}

impl fmt::Display for DistinguishedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relative names in reverse, the attributes of one in order.
        let mut groups: Vec<&[NameAttribute]> = self.0.chunk_by(|_, next| next.continues).collect();
        groups.reverse();
        for (index, group) in groups.iter().enumerate() {
            for attribute in *group {
                let separator = match (attribute.continues, index) {
                    (true, _) => "+",
                    (false, 0) => "",
                    (false, _) => ",",
                };
                write!(f, "{separator}{}={}", attribute.kind, escape(&attribute.value))?;
            }
        }
        Ok(())
    }
}

/// Escapes a value (RFC 4514, 2.4).
fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (index, c) in value.chars().enumerate() {
        match c {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => escaped.extend(['\\', c]),
            ' ' if index == 0 || index == last => escaped.push_str("\\ "),
            '#' if index == 0 => escaped.push_str("\\#"),
            c if c.is_ascii_control() => escaped.push_str(&format!("\\{:02X}", u32::from(c))),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Value of an attribute's string. Bytes other than text are replaced.
fn text(tag: u8, value: &[u8]) -> String {
    if tag == TAG_BMP_STRING {
        let units: Vec<u16> = value.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
        return String::from_utf16_lossy(&units);
    }
    String::from_utf8_lossy(value).into_owned()
}

/// Short name of an attribute type, or its number with dots.
fn kind_name(oid: &[u8]) -> Option<String> {
    if let Some((_, name)) = ATTRIBUTE_NAMES.iter().find(|(known, _)| *known == oid) {
        return Some((*name).to_owned());
    }
    let mut arcs: Vec<u64> = Vec::new();
    let mut arc = 0_u64;
    for byte in oid {
        arc = arc.checked_mul(128)?.checked_add(u64::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            if arcs.is_empty() {
                let first = (arc / 40).min(2);
                arcs.extend([first, arc - first * 40]);
            } else {
                arcs.push(arc);
            }
            arc = 0;
        }
    }
    if arcs.is_empty() || oid.last().is_none_or(|last| last & 0x80 != 0) {
        return None;
    }
    Some(arcs.iter().map(u64::to_string).collect::<Vec<_>>().join("."))
}

/// Contents of the first element, which has this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    any_element(der).filter(|(found, ..)| *found == tag).map(|(_, contents, rest)| (contents, rest))
}

/// Tag and contents of the first element, and what follows it.
fn any_element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => (usize::from(*rest.first()?), &rest[1..]),
        0x82 => (usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?])), &rest[2..]),
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use proptest::prelude::*;

    use super::*;

    fn tagged(tag: u8, contents: &[u8]) -> Vec<u8> {
        let length = u16::try_from(contents.len()).unwrap().to_be_bytes();
        let head = if contents.len() < 128 { vec![tag, length[1]] } else { vec![tag, 0x82, length[0], length[1]] };
        [head, contents.to_vec()].concat()
    }

    fn attribute(oid: &[u8], tag: u8, value: &[u8]) -> Vec<u8> {
        tagged(TAG_SEQUENCE, &[tagged(TAG_OID, oid), tagged(tag, value)].concat())
    }

    fn name(sets: &[Vec<u8>]) -> Option<DistinguishedName> {
        DistinguishedName::parse(&sets.iter().map(|set| tagged(TAG_SET, set)).collect::<Vec<_>>().concat())
    }

    #[test]
    fn names_are_written_from_the_most_specific_part() {
        let (country, organization, common) = (
            attribute(&[0x55, 4, 6], 0x13, b"NZ"),
            attribute(&[0x55, 4, 10], 0x0c, b"A, \"B\" + C"),
            attribute(&[0x55, 4, 3], 0x0c, " #billing ".as_bytes()),
        );
        let read = name(&[country, organization, common]).unwrap();
        assert_eq!(read.to_string(), r#"CN=\ #billing\ ,O=A\, \"B\" \+ C,C=NZ"#);
        assert_eq!(read.common_name(), Some(" #billing "));
    }

    #[test]
    fn rare_forms_are_read() {
        let pair = [attribute(&[0x55, 4, 3], 0x1e, b"\0a\0b"), attribute(&[0x55, 4, 11], 0x0c, b"x")].concat();
        let own = attribute(&[0x2a, 3, 0x81, 0], 0x0c, &[b'y'; 200]);
        let read = name(&[pair, own]).unwrap();
        assert_eq!(read.to_string(), format!("1.2.3.128={},CN=ab+OU=x", "y".repeat(200)));
        assert_eq!(name(&[]).unwrap().to_string(), "");
        assert_eq!(name(&[]).unwrap().common_name(), None);
    }

    #[test]
    fn malformed_names_are_none() {
        let whole = tagged(TAG_SET, &attribute(&[0x55, 4, 3], 0x0c, b"name"));
        for cut in 1..whole.len() {
            assert_eq!(DistinguishedName::parse(&whole[..cut]), None, "{cut}");
        }
        assert_eq!(name(&[attribute(&[0x55, 0x84], 0x0c, b"cut number")]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Some(name) = DistinguishedName::parse(&bytes) {
                prop_assert!(!name.to_string().contains('\n'));
            }
        }

        /// Escaped values stay distinct, and are recovered.
        #[test]
        fn values_survive_their_escapes(value in "[ -~\u{e4}\n\0]{0,12}") {
            let escaped = escape(&value);
            let mut read = Vec::new();
            let mut bytes = escaped.bytes().peekable();
            while let Some(byte) = bytes.next() {
                prop_assert!(byte >= 0x20 && !b"\"+,;<>".contains(&byte) || byte == b'\\', "{escaped}");
                if byte != b'\\' {
                    read.push(byte);
                    continue;
                }
                let next = bytes.next().unwrap();
                match (next as char).to_digit(16) {
                    Some(high) => read.push((high * 16 + (bytes.next().unwrap() as char).to_digit(16).unwrap()) as u8),
                    None => read.push(next),
                }
            }
            prop_assert_eq!(read, value.into_bytes());
        }
    }
}
