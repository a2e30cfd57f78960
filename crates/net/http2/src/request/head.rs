//! The head of a request: places of its parts in HTTP/1.1 text, and its fields in HTTP/2.

use std::ops::Range;

use super::RequestHeadError;
use crate::field::{is_field_value, is_token, trim};

/// Maximum size of a head, in bytes: places are 32-bit numbers.
const MAX_HEAD_BYTES: usize = 1 << 30;

/// Fields about the connection, which HTTP/2 does not have (RFC 9113 section 8.2.2), and `Host`, which becomes
/// `:authority`.
const DROPPED_NAMES: [&str; 7] =
    ["host", "connection", "keep-alive", "transfer-encoding", "upgrade", "proxy-connection", "http2-settings"];

/// Places of a head's parts; reused from one head to the next.
#[derive(Debug, Default)]
pub struct RequestHead {
    method: Range<usize>,
    authority: Range<usize>,
    path: Range<usize>,
    lines: Vec<RequestLine>,
    /// Values of `Connection`, which name further fields about the connection.
    connection: Vec<Range<usize>>,
    /// The current name in lower case.
    name: Vec<u8>,
}

/// Places of a field's name and value.
#[derive(Clone, Debug)]
struct RequestLine {
    name: Range<usize>,
    value: Range<usize>,
}

impl RequestHead {
    /// Finds the parts of a head, the empty line included.
    ///
    /// # Errors
    /// If it is not the head of a request.
    pub fn parse(&mut self, text: &[u8]) -> Result<(), RequestHeadError> {
        if text.len() > MAX_HEAD_BYTES {
            return Err(RequestHeadError::TooLarge);
        }
        self.lines.clear();
        self.connection.clear();
        self.authority = 0..0;
        let mut lines = Lines { text, at: 0 };
        let first = lines.next().ok_or(RequestHeadError::End)?;
        self.request_line(text, first)?;
        let has_authority = !self.authority.is_empty();
        loop {
            let line = lines.next().ok_or(RequestHeadError::End)?;
            if line.is_empty() {
                break;
            }
            let line = field_line(text, line)?;
            let name = &text[line.name.clone()];
            if name.eq_ignore_ascii_case(b"host") && !has_authority {
                self.authority = line.value.clone();
            } else if name.eq_ignore_ascii_case(b"connection") {
                self.connection.push(line.value.clone());
            }
            self.lines.push(line);
        }
        if lines.at == text.len() { Ok(()) } else { Err(RequestHeadError::End) }
    }

    /// Whether its method is HEAD, so that the response has no content.
    pub fn is_head(&self, text: &[u8]) -> bool {
        text.get(self.method.clone()) == Some(b"HEAD")
    }

    /// Passes the fields on, in the order that HTTP/2 needs; `text` is the parsed one.
    pub fn fields(&mut self, text: &[u8], scheme: &[u8], mut hand_on: impl FnMut(&[u8], &[u8])) {
        hand_on(b":method", &text[self.method.clone()]);
        hand_on(b":scheme", scheme);
        if !self.authority.is_empty() {
            hand_on(b":authority", &text[self.authority.clone()]);
        }
        let path = &text[self.path.clone()];
        hand_on(b":path", if path.is_empty() { b"/" } else { path });
        for line in &self.lines {
            self.name.clear();
            self.name.extend(text[line.name.clone()].iter().map(u8::to_ascii_lowercase));
            let (name, value) = (self.name.as_slice(), &text[line.value.clone()]);
            if self.connection.iter().any(|tokens| names(&text[tokens.clone()], name)) {
                continue;
            }
            match name {
                b"te" if value.eq_ignore_ascii_case(b"trailers") => hand_on(name, b"trailers"),
                b"te" => {}
                // One field for each cookie, so that each is compressed alone (RFC 9113 section 8.2.3).
                b"cookie" => {
                    let crumbs = value.split(|byte| *byte == b';').map(trim).filter(|crumb| !crumb.is_empty());
                    crumbs.for_each(|crumb| hand_on(name, crumb));
                }
                _ if DROPPED_NAMES.iter().any(|dropped| dropped.as_bytes() == name) => {}
                _ => hand_on(name, value),
            }
        }
    }

    fn request_line(&mut self, text: &[u8], line: Range<usize>) -> Result<(), RequestHeadError> {
        let bytes = &text[line.clone()];
        let method = bytes.iter().position(|byte| *byte == b' ').ok_or(RequestHeadError::RequestLine)?;
        let version = bytes.iter().rposition(|byte| *byte == b' ').ok_or(RequestHeadError::RequestLine)?;
        let is_whole = version > method + 1 && bytes[version + 1..].starts_with(b"HTTP/1.");
        let target = bytes.get(method + 1..version).unwrap_or_default();
        if !is_whole || !is_token(&bytes[..method]) || target.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
            return Err(RequestHeadError::RequestLine);
        }
        if &bytes[..method] == b"CONNECT" {
            return Err(RequestHeadError::Connect);
        }
        self.method = line.start..line.start + method;
        let (start, end) = (line.start + method + 1, line.start + version);
        let scheme_length = ["http://", "https://"]
            .iter()
            .find(|scheme| target.get(..scheme.len()).is_some_and(|t| t.eq_ignore_ascii_case(scheme.as_bytes())))
            .map(|scheme| scheme.len());
        let Some(scheme_length) = scheme_length else {
            self.path = start..end;
            return Ok(());
        };
        // As to a proxy: its authority replaces that of Host (RFC 9112 section 3.2.2).
        let behind = &target[scheme_length..];
        let authority = behind.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(behind.len());
        self.authority = start + scheme_length..start + scheme_length + authority;
        self.path = self.authority.end..end;
        if text.get(self.path.start) == Some(&b'?') || self.authority.is_empty() {
            return Err(RequestHeadError::RequestLine);
        }
        Ok(())
    }
}

/// Whether a list of tokens has this name.
fn names(tokens: &[u8], name: &[u8]) -> bool {
    tokens.split(|byte| *byte == b',').any(|token| trim(token).eq_ignore_ascii_case(name))
}

/// Places of the lines of a text, without their ends; ends with the last one that has an end.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        let end = start + self.text[start..].iter().position(|byte| *byte == b'\n')?;
        self.at = end + 1;
        let has_return = end > start && self.text[end - 1] == b'\r';
        Some(start..end - usize::from(has_return))
    }
}

fn field_line(text: &[u8], line: Range<usize>) -> Result<RequestLine, RequestHeadError> {
    let bytes = &text[line.clone()];
    let colon = bytes.iter().position(|byte| *byte == b':').ok_or(RequestHeadError::Field)?;
    let value = trim(&bytes[colon + 1..]);
    if !is_token(&bytes[..colon]) || !is_field_value(value) {
        return Err(RequestHeadError::Field);
    }
    let blanks = bytes[colon + 1..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let start = line.start + colon + 1 + blanks;
    Ok(RequestLine { name: line.start..line.start + colon, value: start..start + value.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Result<Vec<String>, RequestHeadError> {
        let mut head = RequestHead::default();
        head.parse(text.as_bytes())?;
        let mut all = Vec::new();
        head.fields(text.as_bytes(), b"http", |name, value| {
            all.push(format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
        });
        Ok(all)
    }

    #[test]
    fn a_head_becomes_fields_without_those_of_the_connection() {
        let text = "POST /a?b HTTP/1.1\r\nHost: h:1\r\nUser-Agent: weir/1\r\nConnection: keep-alive, X-Hop\r\n\
                    X-HOP: 1\r\nKeep-Alive: 5\r\nTransfer-Encoding: chunked\r\nUpgrade: h2c\r\nProxy-Connection: x\r\n\
                    TE: gzip\r\nte: Trailers\r\nCookie: a=1; b=2;c=3\r\nX-Empty:\r\nX-Y:  z \r\nContent-Length: 3\r\n\r\n";
        let expected = [
            ":method=POST",
            ":scheme=http",
            ":authority=h:1",
            ":path=/a?b",
            "user-agent=weir/1",
            "te=trailers",
            "cookie=a=1",
            "cookie=b=2",
            "cookie=c=3",
            "x-empty=",
            "x-y=z",
            "content-length=3",
        ];
        assert_eq!(fields(text).expect("valid"), expected);
    }

    #[test]
    fn the_target_may_be_absolute_or_an_asterisk() {
        let absolute = fields("GET http://other:8/p?q HTTP/1.1\r\nHost: h\r\n\r\n").expect("valid");
        assert_eq!(absolute, [":method=GET", ":scheme=http", ":authority=other:8", ":path=/p?q"]);
        let empty = fields("GET HTTPS://other HTTP/1.1\r\n\r\n").expect("valid");
        assert_eq!(empty, [":method=GET", ":scheme=http", ":authority=other", ":path=/"]);
        let asterisk = fields("OPTIONS * HTTP/1.1\nHost: h\n\n").expect("valid");
        assert_eq!(asterisk, [":method=OPTIONS", ":scheme=http", ":authority=h", ":path=*"]);
    }

    #[test]
    fn what_is_not_a_head_is_an_error() {
        let cases = [
            ("", RequestHeadError::End),
            ("GET / HTTP/1.1\r\n", RequestHeadError::End),
            ("GET / HTTP/1.1\r\nA: b\r\n\r\nrest", RequestHeadError::End),
            ("GET /\r\n\r\n", RequestHeadError::RequestLine),
            ("GET  HTTP/1.1\r\n\r\n", RequestHeadError::RequestLine),
            ("GET /a b HTTP/1.1\r\n\r\n", RequestHeadError::RequestLine),
            ("G:T / HTTP/1.1\r\n\r\n", RequestHeadError::RequestLine),
            ("GET http:///x HTTP/1.1\r\n\r\n", RequestHeadError::RequestLine),
            ("CONNECT h:1 HTTP/1.1\r\n\r\n", RequestHeadError::Connect),
            ("GET / HTTP/1.1\r\nA\r\n\r\n", RequestHeadError::Field),
            ("GET / HTTP/1.1\r\n: b\r\n\r\n", RequestHeadError::Field),
            ("GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", RequestHeadError::Field),
            ("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", RequestHeadError::Field),
            ("GET / HTTP/1.1\r\nA: b\0\r\n\r\n", RequestHeadError::Field),
        ];
        for (text, error) in cases {
            assert_eq!(fields(text), Err(error), "{text:?}");
        }
    }
}
