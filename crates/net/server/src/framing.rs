//! Checks of a request's framing: where its body ends must be unambiguous.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use super::body::ResponseBody;
use weir_net::lookup::has_field;

/// Reason why a request's Transfer-Encoding is rejected (RFC 9112, 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InvalidTransferCoding {
    /// A coding other than `chunked`: nothing here decodes it, and the next reader may.
    Unknown,
    /// `chunked` more than once.
    Repeated,
}

impl InvalidTransferCoding {
    /// The error of a request's transfer codings; None if there are none, or only chunked.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        if !has_field(headers, &header::TRANSFER_ENCODING) {
            return None;
        }
        let mut chunked = false;
        let values =
            headers.get_all(header::TRANSFER_ENCODING).iter().flat_map(|value| value.as_bytes().split(|b| *b == b','));
        for coding in values.map(<[u8]>::trim_ascii).filter(|coding| !coding.is_empty()) {
            if !coding.eq_ignore_ascii_case(b"chunked") {
                return Some(Self::Unknown);
            }
            if std::mem::replace(&mut chunked, true) {
                return Some(Self::Repeated);
            }
        }
        None
    }

    pub(super) fn response(self) -> Response<ResponseBody> {
        match self {
            Self::Unknown => {
                closing_response(StatusCode::NOT_IMPLEMENTED, "the only transfer coding here is chunked\n")
            }
            Self::Repeated => closing_response(StatusCode::BAD_REQUEST, "the body is chunked more than once\n"),
        }
    }
}

/// The response to a head with too many fields.
pub(super) fn too_many_fields() -> Response<ResponseBody> {
    closing_response(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the head has too many fields\n")
}

/// Whether a value has white space at an end, which over HTTP/2 is malformed (RFC 9113, 8.2.1): over HTTP/1 it would be
/// another value.
pub(super) fn has_padded_value(headers: &HeaderMap) -> bool {
    let is_padding = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    headers.values().map(HeaderValue::as_bytes).any(|value| is_padding(value.first()) || is_padding(value.last()))
}

/// The response to such a head.
pub(super) fn padded_value() -> Response<ResponseBody> {
    closing_response(StatusCode::BAD_REQUEST, "a header field has white space at an end of its value\n")
}

/// A response with a line of text that closes the connection.
fn closing_response(status: StatusCode, line: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(line));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_chunked_once_or_not_at_all() {
        use InvalidTransferCoding::{Repeated, Unknown};
        for (lines, expected) in [
            (&[][..], None),
            (&["chunked"], None),
            (&["Chunked , "], None),
            (&["gzip, chunked"], Some(Unknown)),
            (&["gzip", "chunked"], Some(Unknown)),
            (&["x, chunked"], Some(Unknown)),
            (&["identity"], Some(Unknown)),
            (&["chunked;a=b"], Some(Unknown)),
            (&["chunked, chunked"], Some(Repeated)),
            (&["chunked", "chunked"], Some(Repeated)),
        ] {
            let headers =
                lines.iter().map(|line| (header::TRANSFER_ENCODING, HeaderValue::from_static(line))).collect();
            assert_eq!(InvalidTransferCoding::of(&headers), expected, "{lines:?}");
        }
    }
}
