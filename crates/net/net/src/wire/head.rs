//! The head of a response: status, and where the response ends.

use std::mem::MaybeUninit;

use bytes::Bytes;

use super::WireError;

/// Maximum size of a head, in bytes.
pub(crate) const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Maximum number of headers.
pub(crate) const MAX_HEADERS: usize = 256;

/// Framing of a response's body (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFraming {
    /// Ends after this number of bytes.
    Length(u64),
    /// Ends with a chunk of size 0 and trailers.
    Chunked,
    /// Ends when the connection closes.
    UntilClose,
}

/// Fields of a head that change what a client does with the response, noted when the head is parsed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadNotes {
    /// Whether it sets a cookie.
    pub sets_cookie: bool,
    /// Whether its body has a content encoding.
    pub is_encoded: bool,
}

/// Status and framing of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireHead {
    /// The status, 100..=999.
    pub status: u16,
    /// Noted fields.
    pub notes: HeadNotes,
    pub(super) body: BodyFraming,
    /// Whether the connection may be used again.
    pub(super) keep_alive: bool,
    /// Length of the head, in bytes.
    pub(super) length: usize,
}

impl WireHead {
    /// Parses a head at the start of `bytes`; `None` if it is incomplete.
    ///
    /// `bodyless`: the request was a HEAD, so the response has no body in any case.
    ///
    /// # Errors
    /// The reason why the bytes are not a response head.
    pub fn parse(bytes: &[u8], bodyless: bool) -> Result<Option<Self>, WireError> {
        let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut []);
        let length = match lenient_parser().parse_response_with_uninit_headers(&mut response, bytes, &mut headers) {
            Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD_BYTES => length,
            Ok(httparse::Status::Partial) if bytes.len() <= MAX_HEAD_BYTES => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(WireError::HeadTooLarge),
            Err(_) => return Err(no_head(bytes)),
        };
        let status = response.code.unwrap_or(0);
        if status < 100 {
            return Err(WireError::NotHttp(printable(bytes)));
        }
        let framing = WireFraming::of(response.headers, response.version == Some(1))?;
        let body = match status {
            _ if bodyless => BodyFraming::Length(0),
            100..200 | 204 | 304 => BodyFraming::Length(0),
            _ => framing.body,
        };
        let reusable = framing.keep_alive && body != BodyFraming::UntilClose && status != 101;
        Ok(Some(Self { status, notes: framing.notes, body, keep_alive: reusable, length }))
    }

    /// Whether another response follows to the same request: 1xx, but 101 is final.
    pub(super) fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }
}

/// As lenient as browsers and curl: responses of real services must be measured, not rejected.
pub fn lenient_parser() -> httparse::ParserConfig {
    let mut config = httparse::ParserConfig::default();
    config
        .allow_obsolete_multiline_headers_in_responses(true)
        .allow_spaces_after_header_name_in_responses(true)
        .allow_multiple_spaces_in_response_status_delimiters(true);
    config
}

struct WireFraming {
    body: BodyFraming,
    keep_alive: bool,
    notes: HeadNotes,
}

impl WireFraming {
    fn of(headers: &[httparse::Header<'_>], is_1_1: bool) -> Result<Self, WireError> {
        let (mut length, mut coding) = (None, None);
        let (mut keep_alive, mut notes) = (is_1_1, HeadNotes::default());
        for header in headers {
            let name = header.name;
            if name.eq_ignore_ascii_case("content-length") {
                let value = content_length(header.value).ok_or(WireError::BadLength)?;
                if length.replace(value).is_some_and(|earlier| earlier != value) {
                    return Err(WireError::BadLength);
                }
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                coding = Some(last_token_is(header.value, b"chunked"));
            } else if name.eq_ignore_ascii_case("connection") {
                if has_token(header.value, b"close") {
                    keep_alive = false;
                } else if has_token(header.value, b"keep-alive") {
                    keep_alive = true;
                }
            } else if name.eq_ignore_ascii_case("set-cookie") {
                notes.sets_cookie = true;
            } else if name.eq_ignore_ascii_case("content-encoding") {
                notes.is_encoded = true;
            }
        }
        let body = match (coding, length) {
            (Some(true), _) => BodyFraming::Chunked,
            (Some(false), _) | (None, None) => BodyFraming::UntilClose,
            (None, Some(length)) => BodyFraming::Length(length),
        };
        // Both at once enable response smuggling; RFC 9112 6.3 has the connection closed after it.
        let ambiguous = coding.is_some() && length.is_some();
        Ok(Self { body, keep_alive: keep_alive && !ambiguous, notes })
    }
}

/// A length, or a list of equal ones ("42, 42"), which RFC 9110 8.6 allows to count as one.
pub(crate) fn content_length(value: &[u8]) -> Option<u64> {
    let mut lengths = tokens(value).map(digits);
    let first = lengths.next()??;
    lengths.all(|other| other == Some(first)).then_some(first)
}

/// Parses digits and nothing else: u64's own parser would accept a plus sign.
pub fn digits(text: &[u8]) -> Option<u64> {
    let start = (!text.is_empty()).then_some(0_u64)?;
    text.iter().try_fold(start, |number, b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Appends a number in digits. Each response has a length, and the standard library's formatting is for more than that.
pub fn push_digits(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len() - 1;
    while number > 0 {
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        start -= usize::from(number > 0);
    }
    out.extend_from_slice(&digits[start..]);
}

/// Elements of a list.
pub fn tokens(value: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    value.split(|b| *b == b',').map(<[u8]>::trim_ascii)
}

/// Whether a list has this element, in any case.
pub fn has_token(value: &[u8], token: &[u8]) -> bool {
    tokens(value).any(|t| t.eq_ignore_ascii_case(token))
}

/// Empty elements do not count (RFC 9110, 5.6.1).
fn last_token_is(value: &[u8], token: &[u8]) -> bool {
    tokens(value).rfind(|t| !t.is_empty()).is_some_and(|t| t.eq_ignore_ascii_case(token))
}

/// `part` of `bytes`, as a part of `owned`, which is a copy of them or of their beginning.
pub fn shared_part(owned: &Bytes, bytes: &[u8], part: &[u8]) -> Bytes {
    let start = part.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
    match owned.len().checked_sub(part.len()) {
        Some(most) if start <= most => owned.slice(start..start + part.len()),
        // An empty part may point elsewhere.
        _ => Bytes::copy_from_slice(part),
    }
}

pub(crate) fn printable(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(40)];
    start.escape_ascii().to_string()
}

/// Reason why bytes are not a head: an invalid header, or how they begin.
pub(crate) fn no_head(bytes: &[u8]) -> WireError {
    let line = if bytes.starts_with(b"HTTP/1.") { invalid_header(bytes) } else { None };
    line.map_or_else(|| WireError::NotHttp(printable(bytes)), |line| WireError::BadHeader(printable(line)))
}

/// First invalid header of a head: its name is empty or holds what no name holds, or its value does.
fn invalid_header(bytes: &[u8]) -> Option<&[u8]> {
    let lines = bytes.split(|byte| *byte == b'\n').skip(1);
    let mut lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).take_while(|line| !line.is_empty());
    lines.find(|line| {
        let is_folded = line.starts_with(b" ") || line.starts_with(b"\t");
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let name = name.trim_ascii_end();
        let is_name = !name.is_empty() && http::HeaderName::from_bytes(name).is_ok() && !value.is_empty();
        let is_value = value.iter().all(|byte| *byte == b'\t' || *byte >= b' ' && *byte != 0x7f);
        !(is_folded || is_name && is_value)
    })
}

/// Cache of the last head. A service under load sends the same head again and again (all but the `Date`, which changes
/// once a second), and a comparison costs a tenth of parsing.
#[derive(Debug, Default)]
pub struct HeadCache {
    bytes: Vec<u8>,
    bodyless: bool,
    head: Option<WireHead>,
}

impl HeadCache {
    /// Maximum size of a cached head, in bytes.
    const MAX_CACHED_HEAD_BYTES: usize = 2048;

    /// Like [`WireHead::parse`].
    ///
    /// # Errors
    /// As there.
    pub fn parse(&mut self, bytes: &[u8], bodyless: bool) -> Result<Option<WireHead>, WireError> {
        if let Some(head) = self.head
            && self.bodyless == bodyless
            && bytes.starts_with(&self.bytes)
        {
            return Ok(Some(head));
        }
        let head = WireHead::parse(bytes, bodyless)?;
        if let Some(found) = head
            && found.length <= Self::MAX_CACHED_HEAD_BYTES
        {
            self.bytes.clear();
            self.bytes.extend_from_slice(&bytes[..found.length]);
            (self.bodyless, self.head) = (bodyless, head);
        }
        Ok(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<WireHead>, WireError> {
        WireHead::parse(text.as_bytes(), false)
    }

    fn body(text: &str) -> (BodyFraming, bool) {
        let head = parse(text).expect("valid").expect("whole");
        (head.body, head.keep_alive)
    }

    #[test]
    fn the_end_of_a_body_is_found_as_rfc_9112_says() {
        use BodyFraming::{Chunked, Length, UntilClose};
        let cases = [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", (Length(5), true)),
            ("HTTP/1.1 200\r\ncOnTeNt-LeNgTh:5\r\n\r\n", (Length(5), true)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", (Length(5), true)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", (Length(5), true)),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", (Chunked, true)),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n", (Chunked, true)),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, ,\r\n\r\n", (Chunked, true)),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", (UntilClose, false)),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", (Chunked, false)),
            ("HTTP/1.1 200 OK\r\n\r\n", (UntilClose, false)),
            ("HTTP/1.1 204 No Content\r\n\r\n", (Length(0), true)),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", (Length(0), true)),
            ("HTTP/1.1 101 Switching\r\n\r\n", (Length(0), false)),
            ("HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 1\r\n\r\n", (Length(1), false)),
            ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", (Length(1), false)),
            ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n", (Length(1), true)),
            ("HTTP/1.1 200 OK\r\nX-Folded: a\r\n b\r\nContent-Length: 3\r\n\r\n", (Length(3), true)),
            ("HTTP/1.1 200 OK\nContent-Length: 3\n\n", (Length(3), true)),
        ];
        for (text, expected) in cases {
            assert_eq!(body(text), expected, "{text}");
        }
    }

    #[test]
    fn numbers_are_their_digits() {
        for number in [0, 1, 9, 10, 11, 99, 100, 1_024, 65_536, 1_000_000_007, u64::MAX - 1, u64::MAX] {
            let mut out = b"x".to_vec();
            push_digits(&mut out, number);
            assert_eq!(out, format!("x{number}").into_bytes());
            assert_eq!(digits(&out[1..]), Some(number));
        }
    }

    #[test]
    fn the_response_to_a_head_request_never_has_a_body() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n";
        let head = WireHead::parse(text, true).expect("valid").expect("whole");
        assert_eq!((head.body, head.keep_alive), (BodyFraming::Length(0), true));
    }

    #[test]
    fn malformed_and_incomplete_heads_differ() {
        assert_eq!(parse("HTTP/1.1 200 OK\r\nContent-Le"), Ok(None));
        assert_eq!(parse(""), Ok(None));
        assert!(matches!(parse("SSH-2.0-OpenSSH_9\r\n"), Err(WireError::NotHttp(s)) if s.starts_with("SSH-2.0")));
        assert!(matches!(parse("HTTP/1.1 007 Bond\r\n\r\n"), Err(WireError::NotHttp(_))));
        for line in ["X A: e", ": empty", "no colon", "X: a\u{1}b"] {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{line}\r\n\r\n");
            let named = line.escape_default().to_string().replace("\\u{1}", "\\x01");
            assert_eq!(parse(&head), Err(WireError::BadHeader(named)), "{line}");
        }
        for length in ["-1", "+1", "1 2", "0x5", "99999999999999999999", "5, 6", ""] {
            let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            assert_eq!(parse(&text), Err(WireError::BadLength), "{length}");
        }
        let long = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(MAX_HEAD_BYTES));
        assert_eq!(parse(&long), Err(WireError::HeadTooLarge));
    }

    #[test]
    fn a_cached_head_is_the_parsed_head() {
        let mut cache = HeadCache::default();
        let heads =
            ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"];
        for text in [heads[0], heads[0], heads[1], heads[0]] {
            for bodyless in [false, true, true, false] {
                assert_eq!(cache.parse(text.as_bytes(), bodyless), WireHead::parse(text.as_bytes(), bodyless));
            }
        }
        assert_eq!(cache.parse(b"HTTP/1.1 200 OK\r\nContent-Le", false), Ok(None));
    }
}
