//! Fields of a head that nothing reads on its way.

use http::{HeaderMap, HeaderName, HeaderValue};

use super::passed_names::PassedNames;

/// Header fields that are passed on unread, as the lines that they leave as over HTTP/1.1: a name in lower case, a colon,
/// a space, the value. To write a line costs a fraction of what an entry of a map does, and most fields of a message
/// through a gateway are for its ends alone.
#[derive(Clone, Debug, Default)]
pub struct PassedFields {
    lines: Vec<u8>,
    count: usize,
    has_date: bool,
    /// Names of a request's fields.
    names: PassedNames,
}

/// Size of a new buffer in bytes, which most heads do not exceed.
const NEW_BUFFER_BYTES: usize = 512;

impl PassedFields {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Number of fields.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Names of fields that were [offered](Self::offer).
    pub fn names(&self) -> PassedNames {
        self.names
    }

    /// Removes all fields. The memory stays.
    pub fn clear(&mut self) {
        self.lines.clear();
        (self.count, self.has_date, self.names) = (0, false, PassedNames::NONE);
    }

    /// Size of the memory in bytes.
    pub fn capacity(&self) -> usize {
        self.lines.capacity()
    }

    /// The lines, each with its end.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// Whether one of them is a Date.
    pub fn has_date(&self) -> bool {
        self.has_date
    }

    /// Adds a field of a request, which is a part of `head`, if its name is one of these and its value is one line;
    /// returns whether it was added.
    pub fn offer(&mut self, names: PassedNames, head: &[u8], (name, value): (&str, &[u8])) -> bool {
        let Some(found) = names.find(name).filter(|_| is_line(value)) else { return false };
        self.names = self.names.and(found);
        self.push_lower(head, name, value);
        true
    }

    /// Adds a field with a name in lower case.
    pub fn push_header(&mut self, name: &HeaderName, value: &HeaderValue) {
        self.push(name.as_str(), value.as_bytes());
    }

    /// Adds a field whose value is one line, which is a part of `head`.
    pub(crate) fn add(&mut self, head: &[u8], name: &str, value: &[u8]) {
        debug_assert!(is_line(value), "a value with control characters");
        let start = self.lines.len();
        self.push_lower(head, name, value);
        self.has_date |= name.len() == 4 && self.lines[start..].starts_with(b"date");
    }

    /// Adds a field with its name in lower case.
    fn push_lower(&mut self, head: &[u8], name: &str, value: &[u8]) {
        let start = self.lines.len();
        match written_line(head, name, value).filter(|_| self.lines.capacity() > 0) {
            Some(line) => {
                self.count += 1;
                self.lines.extend_from_slice(line);
            }
            None => self.push(name, value),
        }
        self.lines[start..start + name.len()].make_ascii_lowercase();
    }

    fn push(&mut self, name: &str, value: &[u8]) {
        if self.lines.capacity() == 0 {
            self.lines.reserve(NEW_BUFFER_BYTES);
        }
        self.count += 1;
        self.lines.reserve(name.len() + value.len() + 4);
        self.lines.extend_from_slice(name.as_bytes());
        self.lines.extend_from_slice(b": ");
        self.lines.extend_from_slice(value);
        self.lines.extend_from_slice(b"\r\n");
    }

    /// Appends the fields to a map, for a version of HTTP without lines.
    pub fn append_to(&self, headers: &mut HeaderMap) {
        for line in self.lines.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)) {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let value = line[colon + 1..].strip_prefix(b" ").unwrap_or_default();
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&line[..colon]), HeaderValue::from_bytes(value)) {
                headers.append(name, value);
            }
        }
    }
}

/// The line of a field in a head, with its end, if it stands there as it leaves but for the case of its name: most do, and
/// one copy costs less than four.
fn written_line<'h>(head: &'h [u8], name: &str, value: &[u8]) -> Option<&'h [u8]> {
    let start = name.as_ptr().addr().wrapping_sub(head.as_ptr().addr());
    let from_name = head.get(start..)?;
    let line = from_name.get(..name.len() + value.len() + 4)?;
    let (before, after) = line[name.len()..].split_at(2);
    let (found, end) = after.split_at(value.len());
    (before == b": " && end == b"\r\n" && found.as_ptr() == value.as_ptr()).then_some(line)
}

/// Whether a value has no control characters: a folded one has its line ends. A tab counts, too, since it is rare.
pub(crate) fn is_line(value: &[u8]) -> bool {
    let (chunks, rest) = value.as_chunks::<8>();
    // The last bytes once more, as a whole chunk, if there are enough.
    let last = value.last_chunk::<8>().filter(|_| !rest.is_empty());
    let rest = if last.is_some() { &[] } else { rest };
    chunks.iter().chain(last).all(|chunk| !has_control(u64::from_ne_bytes(*chunk)))
        && rest.iter().all(|byte| *byte >= b' ' && *byte != DELETE)
}

const DELETE: u8 = 0x7f;

/// Whether one of eight bytes is below a space, or DEL.
fn has_control(bytes: u64) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // Borrows go to higher bytes, so that only a byte above one that is found can be found by mistake.
    let below = bytes.wrapping_sub(ONES * u64::from(b' ')) & !bytes;
    let deleted = bytes ^ (ONES * u64::from(DELETE));
    (below | (deleted.wrapping_sub(ONES) & !deleted)) & HIGH != 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn fields_are_lines_and_lines_are_fields() {
        let mut passed = PassedFields::default();
        assert!(passed.is_empty() && !passed.has_date());
        for (name, value) in [("ETag", "\"a: b\""), ("Set-Cookie", "a"), ("X-Empty", ""), ("set-cookie", "b")] {
            passed.add(b"", name, value.as_bytes());
        }
        assert_eq!(passed.lines(), b"etag: \"a: b\"\r\nset-cookie: a\r\nx-empty: \r\nset-cookie: b\r\n");
        assert!(!passed.has_date());
        passed.add(b"", "DATE", b"now");
        assert!(passed.has_date());
        let mut map = HeaderMap::new();
        passed.append_to(&mut map);
        assert_eq!((map.len(), passed.count()), (5, 5));
        assert_eq!(map["etag"], "\"a: b\"");
        assert_eq!(map["x-empty"], "");
        assert_eq!(map.get_all("set-cookie").iter().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn fields_of_some_names_are_taken() {
        let (mut passed, names) = (PassedFields::default(), PassedNames::unread_by("accept"));
        for (name, value, is_taken) in
            [("User-Agent", "a", true), ("Accept", "b", false), ("Range", "a\r\n b", false), ("Host", "c", false)]
        {
            assert_eq!(passed.offer(names, b"", (name, value.as_bytes())), is_taken, "{name}");
        }
        assert_eq!(passed.lines(), b"user-agent: a\r\n");
        assert!(passed.names().are_in(names) && !passed.names().are_in(names.without("user-agent")));
        passed.clear();
        assert!(passed.is_empty() && passed.names() == PassedNames::NONE && passed.capacity() > 0);
    }

    #[test]
    fn a_line_that_leaves_as_it_came_is_copied_whole_and_others_are_written() {
        let head = b"Accept: a b\r\nACCEPT:  c\r\nAccept:d\r\nAccept: e \r\nAccept: f\nAccept: g\r\nAccept:\r\n";
        let mut whole = PassedFields::default();
        let mut expected = Vec::new();
        for line in head.split_inclusive(|byte| *byte == b'\n') {
            let colon = line.iter().position(|byte| *byte == b':').unwrap();
            let (name, value) = (std::str::from_utf8(&line[..colon]).unwrap(), line[colon + 1..].trim_ascii());
            whole.add(head, name, value);
            expected.extend([b"accept: ", value, b"\r\n"].concat());
            let is_written = written_line(head, name, value).is_some();
            assert_eq!(is_written, matches!(value, b"a b" | b"g"), "{}", value.escape_ascii());
        }
        assert_eq!(whole.lines(), expected);
        // A name and a value of different fields, and of another head.
        let (name, value) = (std::str::from_utf8(&head[..6]).unwrap(), &head[21..22]);
        assert_eq!((written_line(head, name, value), written_line(&head[20..], name, value)), (None, None));
    }

    #[test]
    fn a_line_is_what_a_value_can_hold_without_tabs() {
        for length in 1..28 {
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    let mut value = vec![if byte < 0x80 { 0x80 } else { b' ' }; length];
                    value[at] = byte;
                    let expected = HeaderValue::from_bytes(&value).is_ok() && byte != b'\t';
                    assert_eq!(is_line(&value), expected, "{byte} at {at} of {length}");
                }
            }
        }
        assert!(is_line(b""));
    }
}
