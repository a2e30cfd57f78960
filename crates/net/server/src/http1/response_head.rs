//! The head of a response, and how its body is sent.

use http::header::{CONNECTION, CONTENT_LENGTH, DATE, TRAILER, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use weir_net::lookup::has_field;
use weir_net::wire::{PassedFields, digits, has_token, push_digits, tokens};

/// Facts about the request and the connection that a response's framing depends on.
#[derive(Clone, Debug)]
pub(super) struct FramingRules {
    pub(super) is_head: bool,
    pub(super) is_connect: bool,
    pub(super) version: Version,
    /// Whether the connection may be used again.
    pub(super) keep_alive: bool,
    /// Whether the client takes trailers.
    pub(super) takes_trailers: bool,
}

/// Length of a response's body, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyLength {
    /// There is no body.
    Empty,
    Known(u64),
    Unknown,
}

/// How a response's body is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SentFraming {
    /// Not at all: the response has none.
    None,
    /// As this number of bytes.
    Length(u64),
    /// In chunks, with these trailers.
    Chunked { trailers: Vec<HeaderName> },
    /// Up to the end of the connection.
    UntilClose,
}

impl FramingRules {
    pub(super) fn of(method: &Method, version: Version) -> Self {
        Self {
            is_head: *method == Method::HEAD,
            is_connect: *method == Method::CONNECT,
            version,
            keep_alive: false,
            takes_trailers: false,
        }
    }

    /// Appends the head of a response; returns the coding of its body, and whether it is the connection's last one.
    pub(super) fn write_head(
        &self,
        out: &mut Vec<u8>,
        status: StatusCode,
        (headers, passed): (&HeaderMap, &PassedFields),
        length: BodyLength,
        date: &[u8],
    ) -> (SentFraming, bool) {
        let is_old = self.version == Version::HTTP_10;
        out.extend_from_slice(if is_old { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
        out.extend_from_slice(status.as_str().as_bytes());
        out.push(b' ');
        // Many readers expect a reason; the space before it is not optional (RFC 9112, 4).
        out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
        out.extend_from_slice(b"\r\n");
        let is_tunnel = status == StatusCode::SWITCHING_PROTOCOLS || self.is_connect && status.is_success();
        let has_body = !self.is_head && !is_tunnel && has_content(status);
        let mut is_last = is_tunnel || !self.keep_alive;
        out.extend_from_slice(passed.lines());
        let (mut announced, mut wrote_date, mut keeps) = (None, passed.has_date(), false);
        // There is no length beside it.
        let is_chunked = has_field(headers, &TRANSFER_ENCODING);
        for (name, value) in headers {
            match *name {
                CONTENT_LENGTH => {
                    let is_wrong =
                        is_tunnel || is_chunked || !self.may_have_length(status) || !self.is_length_true(value, length);
                    if announced.is_some() || is_wrong {
                        continue;
                    }
                    announced = digits(value.as_bytes());
                }
                TRANSFER_ENCODING => continue,
                TRAILER if is_old || !has_body => continue,
                CONNECTION => {
                    is_last |= has_token(value.as_bytes(), b"close");
                    keeps |= has_token(value.as_bytes(), b"keep-alive");
                }
                DATE => wrote_date = true,
                _ => {}
            }
            write_field(out, name, value.as_bytes());
        }
        let coding = match (length, announced) {
            _ if !has_body => {
                // A response to HEAD says what one to GET would.
                if let (BodyLength::Known(bytes), None, true) = (length, announced, self.is_head && has_content(status))
                {
                    write_length(out, bytes);
                }
                SentFraming::None
            }
            (_, Some(bytes)) if !is_chunked => match length {
                BodyLength::Known(known) => SentFraming::Length(known),
                _ => SentFraming::Length(bytes),
            },
            (BodyLength::Empty, _) if !is_chunked => {
                write_length(out, 0);
                SentFraming::None
            }
            (BodyLength::Known(bytes), _) if !is_chunked => {
                write_length(out, bytes);
                SentFraming::Length(bytes)
            }
            _ if is_old => SentFraming::UntilClose,
            _ => {
                out.extend_from_slice(b"transfer-encoding: chunked\r\n");
                SentFraming::Chunked { trailers: self.allowed_trailers(headers) }
            }
        };
        is_last |= coding == SentFraming::UntilClose;
        if is_old && !is_last && !keeps {
            out.extend_from_slice(b"connection: keep-alive\r\n");
        } else if !is_old && is_last && !is_tunnel && !headers.contains_key(CONNECTION) {
            out.extend_from_slice(b"connection: close\r\n");
        }
        if !wrote_date {
            out.extend_from_slice(b"date: ");
            out.extend_from_slice(date);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        (coding, is_last)
    }

    /// Whether a response of this status may have a length (RFC 9110, 8.6). That of a 304 is the length of another
    /// response, and some frameworks say 0: it is passed on only to a HEAD request.
    fn may_have_length(&self, status: StatusCode) -> bool {
        has_content(status) || self.is_head && status == StatusCode::NOT_MODIFIED
    }

    /// Whether a Content-Length of the service is passed on: the other end would wait for a body that does not come.
    fn is_length_true(&self, value: &HeaderValue, length: BodyLength) -> bool {
        match (digits(value.as_bytes()), length) {
            (None, _) => false,
            (Some(_), _) if self.is_head => true,
            (Some(said), BodyLength::Empty) => said == 0,
            (Some(said), BodyLength::Known(known)) => said == known,
            (Some(_), BodyLength::Unknown) => true,
        }
    }

    /// Trailers that the response announces and the client takes.
    fn allowed_trailers(&self, headers: &HeaderMap) -> Vec<HeaderName> {
        if !self.takes_trailers {
            return Vec::new();
        }
        let named = headers.get_all(TRAILER).iter().flat_map(|value| tokens(value.as_bytes()));
        named.filter_map(|name| HeaderName::from_bytes(name).ok()).filter(may_be_trailer).collect()
    }
}

/// Whether responses of this status can have a body (RFC 9110, 15).
fn has_content(status: StatusCode) -> bool {
    !status.is_informational() && status != StatusCode::NO_CONTENT && status != StatusCode::NOT_MODIFIED
}

/// Whether a field may come after the body: not one by which a message is framed, routed or authenticated (RFC 9110,
/// 6.5.1).
fn may_be_trailer(name: &HeaderName) -> bool {
    use http::header;
    ![
        header::AUTHORIZATION,
        header::CACHE_CONTROL,
        header::CONNECTION,
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_RANGE,
        header::CONTENT_TYPE,
        header::COOKIE,
        header::EXPECT,
        header::HOST,
        header::MAX_FORWARDS,
        header::RANGE,
        header::SET_COOKIE,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ]
    .contains(name)
}

/// Appends one field.
pub(super) fn write_field(out: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn write_length(out: &mut Vec<u8>, bytes: u64) {
    out.extend_from_slice(b"content-length: ");
    push_digits(out, bytes);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATE_TEXT: &[u8] = b"today";

    fn rules(method: &Method) -> FramingRules {
        FramingRules { keep_alive: true, takes_trailers: true, ..FramingRules::of(method, Version::HTTP_11) }
    }

    fn written(
        rules: &FramingRules,
        status: u16,
        fields: &[(&'static str, &'static str)],
        length: BodyLength,
    ) -> (String, SentFraming, bool) {
        let headers = fields
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let (mut out, passed) = (Vec::new(), PassedFields::default());
        let status = StatusCode::from_u16(status).unwrap();
        let (coding, is_last) = rules.write_head(&mut out, status, (&headers, &passed), length, DATE_TEXT);
        (String::from_utf8(out).unwrap(), coding, is_last)
    }

    #[test]
    fn a_head_has_the_fields_of_the_service_a_length_and_a_date() {
        let get = rules(&Method::GET);
        let (text, coding, is_last) = written(&get, 200, &[("x-a", "b")], BodyLength::Known(5));
        assert_eq!(text, "HTTP/1.1 200 OK\r\nx-a: b\r\ncontent-length: 5\r\ndate: today\r\n\r\n");
        assert_eq!((coding, is_last), (SentFraming::Length(5), false));
        let (text, coding, _) = written(&get, 404, &[("date", "then"), ("content-length", "0")], BodyLength::Empty);
        assert_eq!(text, "HTTP/1.1 404 Not Found\r\ndate: then\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(coding, SentFraming::Length(0));
        let (text, coding, _) = written(&get, 200, &[], BodyLength::Empty);
        assert_eq!(text, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\ndate: today\r\n\r\n");
        assert_eq!(coding, SentFraming::None);
    }

    #[test]
    fn a_body_of_unknown_length_is_in_chunks_or_ends_the_connection() {
        let mut get = rules(&Method::GET);
        let (text, coding, is_last) = written(&get, 200, &[("trailer", "x-sum, host")], BodyLength::Unknown);
        assert!(text.contains("transfer-encoding: chunked\r\n"), "{text}");
        let trailers = vec![HeaderName::from_static("x-sum")];
        assert_eq!((coding, is_last), (SentFraming::Chunked { trailers }, false));
        get.takes_trailers = false;
        let (_, coding, _) = written(&get, 200, &[("trailer", "x-sum")], BodyLength::Unknown);
        assert_eq!(coding, SentFraming::Chunked { trailers: Vec::new() });
        let (text, coding, _) = written(&get, 200, &[("content-length", "7")], BodyLength::Unknown);
        assert!(!text.contains("chunked"), "{text}");
        assert_eq!(coding, SentFraming::Length(7));
        get.version = Version::HTTP_10;
        let (text, coding, is_last) = written(&get, 200, &[("trailer", "x-sum")], BodyLength::Unknown);
        assert_eq!(text, "HTTP/1.0 200 OK\r\ndate: today\r\n\r\n");
        assert_eq!((coding, is_last), (SentFraming::UntilClose, true));
    }

    #[test]
    fn a_response_without_content_says_no_more_than_it_may() {
        let get = rules(&Method::GET);
        for status in [204, 304] {
            let (text, _, _) = written(&get, status, &[("content-length", "0")], BodyLength::Empty);
            assert!(!text.contains("content-length"), "{text}");
            let (text, coding, is_last) = written(&get, status, &[], BodyLength::Unknown);
            assert!(!text.contains("content-length") && !text.contains("chunked"), "{text}");
            assert_eq!((coding, is_last), (SentFraming::None, false));
        }
        let head = rules(&Method::HEAD);
        for (fields, length, expected) in [
            (&[][..], BodyLength::Known(5), Some("content-length: 5\r\n")),
            (&[("content-length", "9")][..], BodyLength::Empty, Some("content-length: 9\r\n")),
            (&[][..], BodyLength::Empty, None),
            (&[][..], BodyLength::Unknown, None),
        ] {
            let (text, coding, _) = written(&head, 200, fields, length);
            assert_eq!(expected.is_some_and(|line| text.contains(line)), text.contains("content-length"), "{text}");
            assert_eq!(expected.is_some(), text.contains("content-length"), "{text}");
            assert_eq!(coding, SentFraming::None);
        }
        let (text, _, _) = written(&head, 304, &[("content-length", "9")], BodyLength::Empty);
        assert!(text.contains("content-length: 9\r\n"), "{text}");
        let (text, _, _) = written(&head, 204, &[("content-length", "0")], BodyLength::Empty);
        assert!(!text.contains("content-length"), "{text}");
        let (text, _, is_last) = written(&rules(&Method::CONNECT), 200, &[], BodyLength::Empty);
        assert!(!text.contains("content-length") && is_last, "{text}");
        let (text, _, is_last) = written(&get, 101, &[("connection", "upgrade")], BodyLength::Empty);
        assert!(!text.contains("content-length") && is_last, "{text}");
    }

    #[test]
    fn a_length_that_is_not_true_is_not_said() {
        let get = rules(&Method::GET);
        for (said, length) in [("9", BodyLength::Known(5)), ("9", BodyLength::Empty), ("x", BodyLength::Known(5))] {
            let (text, _, _) = written(&get, 200, &[("content-length", said)], length);
            let expected = if length == BodyLength::Empty { "content-length: 0\r\n" } else { "content-length: 5\r\n" };
            assert!(text.contains(expected) && text.matches("content-length").count() == 1, "{text}");
        }
        let (text, coding, _) = written(&get, 200, &[("transfer-encoding", "gzip")], BodyLength::Known(5));
        assert!(text.contains("transfer-encoding: chunked\r\n") && !text.contains("gzip"), "{text}");
        let both = [("content-length", "5"), ("transfer-encoding", "chunked")];
        let (text, _, _) = written(&get, 200, &both, BodyLength::Known(5));
        assert!(!text.contains("content-length"), "{text}");
        assert!(matches!(coding, SentFraming::Chunked { .. }));
    }

    #[test]
    fn the_end_of_a_connection_is_announced() {
        let get = rules(&Method::GET);
        let (text, _, is_last) = written(&get, 200, &[("connection", "close")], BodyLength::Empty);
        assert!(is_last && text.matches("connection: close").count() == 1, "{text}");
        let mut closing = get.clone();
        closing.keep_alive = false;
        let (text, _, is_last) = written(&closing, 200, &[], BodyLength::Empty);
        assert!(is_last && text.contains("connection: close\r\n"), "{text}");
        let mut old = get;
        old.version = Version::HTTP_10;
        let (text, _, is_last) = written(&old, 200, &[], BodyLength::Empty);
        assert!(!is_last && text.contains("connection: keep-alive\r\n"), "{text}");
        old.keep_alive = false;
        let (text, _, is_last) = written(&old, 200, &[], BodyLength::Empty);
        assert!(is_last && !text.contains("connection"), "{text}");
    }
}
