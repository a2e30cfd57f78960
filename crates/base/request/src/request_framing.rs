//! Framing and connection headers that a caller gives a request.
//!
//! A request has one framing: its body's length. Two framings, or a length that the body does not have, are read as two
//! requests by one part of a service and as one by another (RFC 9112, 6.1 and 11.2), so that they are not sent. A client
//! that sends `Connection: close` sends no further request on that connection (RFC 9112, 9.6).

use std::fmt;

/// Framing and connection options in the header fields that a caller gives for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallerFraming {
    length: LengthHeader,
    closes: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LengthHeader {
    #[default]
    Absent,
    /// Given without a value, which removes the header.
    Removed,
    Bytes(u64),
}

/// Kind of a header of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerHeader {
    /// Length of the body, which is written by [`CallerFraming::has_length`] alone.
    Length,
    /// Any other, which is written as it is.
    Other,
}

/// Reason why the headers of a caller do not frame a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FramingError {
    /// A transfer coding.
    Coding(String),
    /// Not the length of the body: what was given, and the number of bytes.
    Length(String, u64),
    /// The length of a body with this number of bytes was removed.
    Removed(u64),
}

impl fmt::Display for FramingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Coding(value) => write!(
                f,
                "the header 'Transfer-Encoding: {}' cannot be sent: a body is sent with its Content-Length; leave the \
                 header out",
                value.escape_debug()
            ),
            Self::Length(given, bytes) => write!(
                f,
                "the header 'Content-Length: {}' is wrong: the body has {bytes} bytes; leave the header out",
                given.escape_debug()
            ),
            Self::Removed(bytes) => write!(
                f,
                "the header 'Content-Length' cannot be removed: the body of {bytes} bytes would have no end; leave \
                 'Content-Length:' out"
            ),
        }
    }
}

impl std::error::Error for FramingError {}

impl CallerFraming {
    /// Takes a header of the caller.
    ///
    /// # Errors
    /// If no body can be sent with it.
    pub fn take(&mut self, name: &[u8], value: &[u8]) -> Result<CallerHeader, FramingError> {
        let value = value.trim_ascii();
        match name.len() {
            10 if name.eq_ignore_ascii_case(b"connection") => self.closes |= has_close(value),
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let given =
                    if value.is_empty() { LengthHeader::Removed } else { LengthHeader::Bytes(length_of(value)?) };
                if let (LengthHeader::Bytes(first), LengthHeader::Bytes(other)) = (self.length, given)
                    && first != other
                {
                    return Err(FramingError::Length(String::from_utf8_lossy(value).into_owned(), first));
                }
                // A value beside a removal counts, in either order: it is checked against the body.
                if self.length == LengthHeader::Absent || given != LengthHeader::Removed {
                    self.length = given;
                }
                return Ok(CallerHeader::Length);
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") && !value.is_empty() => {
                return Err(FramingError::Coding(String::from_utf8_lossy(value).into_owned()));
            }
            _ => {}
        }
        Ok(CallerHeader::Other)
    }

    /// Whether the request has a Content-Length, which is then that of its body.
    ///
    /// # Errors
    /// If the caller has given another length.
    pub fn has_length(&self, method: &str, body_bytes: u64) -> Result<bool, FramingError> {
        match self.length {
            LengthHeader::Bytes(given) if given != body_bytes => {
                Err(FramingError::Length(given.to_string(), body_bytes))
            }
            LengthHeader::Bytes(_) => Ok(true),
            LengthHeader::Removed if body_bytes > 0 => Err(FramingError::Removed(body_bytes)),
            LengthHeader::Removed => Ok(false),
            LengthHeader::Absent => Ok(body_bytes > 0 || matches!(method, "POST" | "PUT" | "PATCH")),
        }
    }

    /// Whether the request is the last one of its connection.
    pub fn closes(&self) -> bool {
        self.closes
    }

    /// Framing of all headers of a request with a body of this size.
    ///
    /// # Errors
    /// If the headers do not frame this body.
    pub fn of<'h>(
        headers: impl IntoIterator<Item = (&'h [u8], &'h [u8])>,
        method: &str,
        body_bytes: u64,
    ) -> Result<Self, FramingError> {
        let mut framing = Self::default();
        for (name, value) in headers {
            framing.take(name, value)?;
        }
        framing.has_length(method, body_bytes)?;
        Ok(framing)
    }
}

/// Whether a value of `Connection` has the option `close`.
pub fn has_close(value: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// Whether the head of a written request ends its connection.
#[inline]
pub fn closes_connection(head: &[u8]) -> bool {
    let mut rest = head;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        rest = &rest[end + 1..];
        match rest.first() {
            Some(b'\r' | b'\n') | None => return false,
            Some(b'C' | b'c') => {
                let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
                let mut parts = line.splitn(2, |byte| *byte == b':');
                let is_connection = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(b"connection"));
                if is_connection && parts.next().is_some_and(|value| has_close(value.trim_ascii())) {
                    return true;
                }
            }
            Some(_) => {}
        }
    }
    false
}

fn length_of(value: &[u8]) -> Result<u64, FramingError> {
    let digits = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let length = digits.and_then(|digits| digits.parse().ok());
    length.ok_or_else(|| FramingError::Length(String::from_utf8_lossy(value).into_owned(), 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framing(headers: &[(&str, &str)], method: &str, body: u64) -> Result<(bool, bool), FramingError> {
        let mut framing = CallerFraming::default();
        for (name, value) in headers {
            framing.take(name.as_bytes(), value.as_bytes())?;
        }
        Ok((framing.has_length(method, body)?, framing.closes()))
    }

    #[test]
    fn a_body_has_its_own_length_and_no_other_framing() {
        for (headers, method, body, expected) in [
            (&[][..], "GET", 0, Some((false, false))),
            (&[], "POST", 0, Some((true, false))),
            (&[], "GET", 5, Some((true, false))),
            (&[("content-length", "5")], "POST", 5, Some((true, false))),
            (&[("Content-Length", " 0 ")], "DELETE", 0, Some((true, false))),
            (&[("Content-Length", "5"), ("CONTENT-LENGTH", "5")], "POST", 5, Some((true, false))),
            (&[("Content-Length", "")], "POST", 0, Some((false, false))),
            (&[("Content-Length", "")], "POST", 1, None),
            (&[("Content-Length", "1"), ("Content-Length", "")], "GET", 0, None),
            (&[("Content-Length", ""), ("Content-Length", "1")], "GET", 0, None),
            (&[("Content-Length", "5"), ("Content-Length", "")], "GET", 5, Some((true, false))),
            (&[("Content-Length", "7")], "POST", 5, None),
            (&[("Content-Length", "7")], "GET", 0, None),
            (&[("Content-Length", "+5")], "POST", 5, None),
            (&[("Content-Length", "5, 5")], "POST", 5, None),
            (&[("Content-Length", "0x5")], "POST", 5, None),
            (&[("Content-Length", "5"), ("Content-Length", "6")], "POST", 5, None),
            (&[("Content-Length", "18446744073709551616")], "POST", 5, None),
            (&[("Transfer-Encoding", "chunked")], "POST", 5, None),
            (&[("transfer-ENCODING", "gzip")], "GET", 0, None),
            (&[("Transfer-Encoding", "identity")], "GET", 0, None),
            (&[("Transfer-Encoding", "")], "POST", 5, Some((true, false))),
            (&[("Connection", "Keep-Alive, CLOSE")], "GET", 0, Some((false, true))),
            (&[("Connection", "closed")], "GET", 0, Some((false, false))),
        ] {
            assert_eq!(framing(headers, method, body).ok(), expected, "{headers:?} {method} {body}");
        }
        let text = |headers: &[(&str, &str)]| framing(headers, "POST", 5).err().map(|error| error.to_string());
        assert!(text(&[("Content-Length", "7")]).is_some_and(|text| text.contains("has 5 bytes")));
    }

    #[test]
    fn a_written_head_shows_if_it_is_the_last_of_its_connection() {
        for (head, expected) in [
            ("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nconnection:keep-alive ,Close\r\n\r\n", true),
            ("GET / HTTP/1.1\nCookie: a\nConnection: close\n\n", true),
            ("GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\nConnection: close\r\n", false),
            ("GET / HTTP/1.1\r\nX-Connection: close\r\nCache: close\r\n\r\n", false),
            ("GET / HTTP/1.1\r\nConnections: close\r\n\r\n", false),
            ("", false),
        ] {
            assert_eq!(closes_connection(head.as_bytes()), expected, "{head:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_sent_has_the_length_of_its_body(
            headers in prop::collection::vec(
                (prop::sample::select(vec!["Content-Length", "Transfer-Encoding", "X"]), "(|[0-9]{1,2}|chunked)"), 0..4),
            method in prop::sample::select(vec!["GET", "POST", "DELETE"]), body in 0_u64..20,
        ) {
            let pairs: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            if let Ok((has_length, _)) = framing(&pairs, method, body) {
                prop_assert!(has_length || body == 0);
                for (name, value) in &pairs {
                    prop_assert!(*name != "Transfer-Encoding" || value.is_empty());
                    prop_assert!(*name != "Content-Length" || value.is_empty() || value.parse() == Ok(body));
                }
            }
        }
    }
}
