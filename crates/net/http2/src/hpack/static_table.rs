//! The static table (RFC 7541 Appendix A).

/// Names and values by index, from 1 on.
pub const STATIC_FIELDS: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// Number of fields in the table.
pub(super) const STATIC_COUNT: usize = STATIC_FIELDS.len();
const MAX_NAME_BYTES: usize = 27;

/// Indexes less one in the order of their names' lengths, and where each length begins: a search looks only at names
/// of the right length, five of them on average.
struct NameLengths {
    order: [u8; STATIC_COUNT],
    starts: [u8; MAX_NAME_BYTES + 2],
}

static NAME_LENGTHS: NameLengths = NameLengths::new();

impl NameLengths {
    const fn new() -> Self {
        let mut lengths = Self { order: [0; STATIC_COUNT], starts: [0; MAX_NAME_BYTES + 2] };
        let (mut length, mut place) = (0, 0);
        while length <= MAX_NAME_BYTES {
            lengths.starts[length] = place as u8;
            let mut index = 0;
            while index < STATIC_COUNT {
                if STATIC_FIELDS[index].0.len() == length {
                    lengths.order[place] = index as u8;
                    place += 1;
                }
                index += 1;
            }
            length += 1;
        }
        lengths.starts[MAX_NAME_BYTES + 1] = place as u8;
        lengths
    }
}

/// Match of a field in the static table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StaticMatch {
    /// Index of name and value.
    Field(u32),
    /// Index of the name.
    Name(u32),
}

/// Index of a field; of the first with its name, if none has its value.
pub(super) fn find(name: &[u8], value: &[u8]) -> Option<StaticMatch> {
    let length = name.len().min(MAX_NAME_BYTES + 1);
    let start = usize::from(NAME_LENGTHS.starts[length]);
    let end = NAME_LENGTHS.starts.get(length + 1).map_or(start, |end| usize::from(*end));
    let mut found = None;
    for index in &NAME_LENGTHS.order[start..end] {
        let (static_name, static_value) = STATIC_FIELDS[usize::from(*index)];
        if static_name.as_bytes() == name {
            let index = u32::from(*index) + 1;
            if !static_value.is_empty() && static_value.as_bytes() == value {
                return Some(StaticMatch::Field(index));
            }
            found = found.or(Some(StaticMatch::Name(index)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_finds_what_a_scan_of_the_table_finds() {
        for (place, (name, value)) in STATIC_FIELDS.into_iter().enumerate() {
            let index = place as u32 + 1;
            let first = STATIC_FIELDS.iter().position(|(other, _)| *other == name).expect("itself") as u32 + 1;
            let expected = if value.is_empty() { StaticMatch::Name(first) } else { StaticMatch::Field(index) };
            assert_eq!(find(name.as_bytes(), value.as_bytes()), Some(expected), "{name}");
            assert_eq!(find(name.as_bytes(), b"?"), Some(StaticMatch::Name(first)), "{name}");
        }
        for name in ["", "x", "access-control-allow-origins", "a name that is longer than any in the table"] {
            assert_eq!(find(name.as_bytes(), b""), None);
        }
    }
}
