//! The head of a request: parsing, and where the body ends.
//!
//! An ambiguous request is an error (RFC 9112, sections 2.2, 5 and 6): a gateway in front of this one may read it in
//! another way.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, TE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, Version};
use weir_net::wire::{BodyDecoder, Chunked, PassedFields, PassedNames, digits, has_token, shared_part, tokens};

/// Maximum length of a target in bytes, which is that of [`Uri`].
const MAX_TARGET_BYTES: usize = u16::MAX as usize - 1;
/// Header fields that are parsed on the stack; a larger limit is for a few heads.
const USUAL_FIELDS: usize = 64;

/// Maximum size of a head.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// Bytes, the empty line included.
    pub bytes: usize,
    /// Header fields.
    pub fields: usize,
}

/// The head of a request.
#[derive(Debug)]
pub struct ParsedHead {
    /// Method, target, version, headers. A Content-Length beside chunks is removed.
    pub request: Request<()>,
    /// Decoder of the body that follows.
    pub body: BodyDecoder,
    /// Whether the client wants to use the connection again, and may.
    pub keep_alive: bool,
    /// Whether the client waits for a 100 before it sends the body.
    pub expects_continue: bool,
    /// Whether the client takes trailers.
    pub takes_trailers: bool,
}

/// Fields of a head: what they are put into.
#[derive(Debug, Default)]
pub struct HeadFields {
    /// An empty map, whose memory is used.
    pub headers: HeaderMap,
    /// Names of fields that are put into `passed` in place of the map, since nothing reads them.
    pub passed_names: PassedNames,
    /// These fields.
    pub passed: PassedFields,
}

/// Reason why bytes are not the head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadError {
    /// Invalid or ambiguous.
    Malformed,
    /// The target exceeds 65,534 bytes.
    TargetTooLong,
    /// Larger than [`HeadLimits`] allow.
    TooLarge,
}

impl HeadError {
    /// Status of the response.
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::TargetTooLong => StatusCode::URI_TOO_LONG,
            Self::TooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        }
    }
}

impl ParsedHead {
    /// Parses the head at the start of `bytes` as [`Self::parse`] does, with the target as it is.
    pub(super) fn parse_bytes(
        bytes: &[u8],
        limits: HeadLimits,
        fields: &mut HeadFields,
    ) -> Result<Option<(Self, usize)>, HeadError> {
        let mut room = [const { MaybeUninit::uninit() }; USUAL_FIELDS];
        match Self::parse_fields(bytes, limits, fields, &mut room[..limits.fields.min(USUAL_FIELDS)]) {
            Err(httparse::Error::TooManyHeaders) if limits.fields > USUAL_FIELDS => {
                let mut room = vec![const { MaybeUninit::uninit() }; limits.fields];
                match Self::parse_fields(bytes, limits, fields, &mut room) {
                    Ok(parsed) => parsed,
                    Err(httparse::Error::TooManyHeaders) => Err(HeadError::TooLarge),
                    Err(_) => Err(HeadError::Malformed),
                }
            }
            Err(httparse::Error::TooManyHeaders) => Err(HeadError::TooLarge),
            Err(_) => Err(HeadError::Malformed),
            Ok(parsed) => parsed,
        }
    }

    fn parse_fields<'b>(
        bytes: &'b [u8],
        limits: HeadLimits,
        fields: &mut HeadFields,
        room: &mut [MaybeUninit<httparse::Header<'b>>],
    ) -> Result<Result<Option<(Self, usize)>, HeadError>, httparse::Error> {
        let mut parsed = httparse::Request::new(&mut []);
        let parser = httparse::ParserConfig::default();
        let httparse::Status::Complete(length) = parser.parse_request_with_uninit_headers(&mut parsed, bytes, room)?
        else {
            let is_full = bytes.len() >= limits.bytes;
            return Ok(if is_full { Err(HeadError::TooLarge) } else { Ok(None) });
        };
        if length > limits.bytes {
            return Ok(Err(HeadError::TooLarge));
        }
        Ok(Self::from_parsed(&parsed, &bytes[..length], fields).map(|head| Some((head, length))))
    }

    fn from_parsed(
        parsed: &httparse::Request<'_, '_>,
        bytes: &[u8],
        fields: &mut HeadFields,
    ) -> Result<Self, HeadError> {
        let (Some(method), Some(target), Some(version)) = (parsed.method, parsed.path, parsed.version) else {
            return Err(HeadError::Malformed);
        };
        if target.len() > MAX_TARGET_BYTES {
            return Err(HeadError::TargetTooLong);
        }
        if !has_whole_line_ends(parsed, bytes) {
            return Err(HeadError::Malformed);
        }
        let owned = Bytes::copy_from_slice(bytes);
        let is_1_1 = version == 1;
        let mut framing = RequestFraming::new(is_1_1);
        let HeadFields { headers, passed_names, passed } = fields;
        for field in parsed.headers.iter() {
            if passed.offer(*passed_names, field.name, field.value) {
                continue;
            }
            let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| HeadError::Malformed)?;
            if !framing.add(&name, field.value)? {
                continue;
            }
            let value = HeaderValue::from_maybe_shared(shared_part(&owned, bytes, field.value))
                .map_err(|_| HeadError::Malformed)?;
            headers.try_append(name, value).map_err(|_| HeadError::TooLarge)?;
        }
        let body = framing.body()?;
        if framing.is_chunked {
            headers.remove(CONTENT_LENGTH);
        }
        let mut request = Request::new(());
        *request.method_mut() = Method::from_bytes(method.as_bytes()).map_err(|_| HeadError::Malformed)?;
        *request.uri_mut() =
            Uri::from_maybe_shared(shared_part(&owned, bytes, target.as_bytes())).map_err(|_| HeadError::Malformed)?;
        *request.version_mut() = if is_1_1 { Version::HTTP_11 } else { Version::HTTP_10 };
        *request.headers_mut() = std::mem::take(headers);
        Ok(Self {
            request,
            keep_alive: framing.allows_keep_alive(),
            expects_continue: is_1_1 && framing.expects_continue && !body.is_ended(),
            takes_trailers: framing.takes_trailers,
            body,
        })
    }
}

/// Whether a line that ends behind the first `before` bytes is empty: only that can complete a head, so a head that
/// comes byte by byte is not parsed at each.
pub(super) fn has_empty_line(bytes: &[u8], before: usize) -> bool {
    let is_end = |at: usize| bytes[at] == b'\n' && (bytes[..at].ends_with(b"\n") || bytes[..at].ends_with(b"\n\r"));
    (before..bytes.len()).any(is_end)
}

/// Whether each line ends with CR LF. A reader in front of this one may take LF alone (RFC 9112, 2.2) for a part of a
/// value.
fn has_whole_line_ends(parsed: &httparse::Request<'_, '_>, bytes: &[u8]) -> bool {
    let starts_after_line_end = |name: &str| {
        let start = (name.as_ptr() as usize).saturating_sub(bytes.as_ptr() as usize);
        bytes.get(..start).is_some_and(|before| before.ends_with(b"\r\n"))
    };
    bytes.ends_with(b"\r\n\r\n") && parsed.headers.iter().all(|field| starts_after_line_end(field.name))
}

/// Header fields that decide where the request ends and whether its connection does.
#[derive(Debug)]
struct RequestFraming {
    is_1_1: bool,
    length: Option<u64>,
    has_transfer_coding: bool,
    /// Whether the last transfer coding is `chunked`.
    is_chunked: bool,
    closes: bool,
    keeps: bool,
    expects_continue: bool,
    takes_trailers: bool,
}

impl RequestFraming {
    fn new(is_1_1: bool) -> Self {
        Self {
            is_1_1,
            length: None,
            has_transfer_coding: false,
            is_chunked: false,
            closes: false,
            keeps: false,
            expects_continue: false,
            takes_trailers: false,
        }
    }

    /// Reads a field; returns whether it belongs into the map of headers.
    fn add(&mut self, name: &HeaderName, value: &[u8]) -> Result<bool, HeadError> {
        match *name {
            CONTENT_LENGTH => {
                let length = digits(value).ok_or(HeadError::Malformed)?;
                match self.length.replace(length) {
                    Some(earlier) if earlier == length => return Ok(false),
                    Some(_) => return Err(HeadError::Malformed),
                    None => {}
                }
            }
            TRANSFER_ENCODING => {
                // Without chunks in its version, HTTP/1.0 has no end of such a body.
                if !self.is_1_1 {
                    return Err(HeadError::Malformed);
                }
                self.has_transfer_coding = true;
                self.is_chunked = tokens(value).next_back().is_some_and(|last| last.eq_ignore_ascii_case(b"chunked"));
            }
            CONNECTION => {
                self.closes |= has_token(value, b"close");
                self.keeps |= has_token(value, b"keep-alive");
            }
            EXPECT => self.expects_continue = value.eq_ignore_ascii_case(b"100-continue"),
            TE => self.takes_trailers |= has_token(value, b"trailers"),
            _ => {}
        }
        Ok(true)
    }

    fn body(&self) -> Result<BodyDecoder, HeadError> {
        match self.length {
            _ if self.is_chunked => Ok(BodyDecoder::chunked(Chunked::strict())),
            // Its end would be that of the connection, which a request cannot have.
            _ if self.has_transfer_coding => Err(HeadError::Malformed),
            Some(length) => Ok(BodyDecoder::length(length)),
            None => Ok(BodyDecoder::ended()),
        }
    }

    /// A length beside chunks enables smuggling: RFC 9112 (6.1) has the connection closed after the response.
    fn allows_keep_alive(&self) -> bool {
        let is_contradictory = self.has_transfer_coding && self.length.is_some();
        (self.is_1_1 || self.keeps) && !self.closes && !is_contradictory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: HeadLimits = HeadLimits { bytes: 8192, fields: 100 };

    fn parse(text: &str) -> Result<Option<(ParsedHead, usize)>, HeadError> {
        ParsedHead::parse(text.as_bytes(), LIMITS, &mut HeadFields::default())
    }

    fn head(fields: &str) -> ParsedHead {
        parse(&format!("POST /a?b HTTP/1.1\r\n{fields}\r\n")).unwrap().unwrap().0
    }

    #[test]
    fn a_head_is_method_target_version_and_fields() {
        let text = "\r\nPATCH /a?b=%20 HTTP/1.0\r\nHost: x\r\nEmpty:\r\nMany: 1\r\nmany:  2 \r\n\r\nrest";
        let (head, length) = parse(text).unwrap().unwrap();
        assert_eq!(length, text.len() - 4);
        assert_eq!(head.request.method(), "PATCH");
        assert_eq!(head.request.uri(), "/a?b=%20");
        assert_eq!(head.request.version(), Version::HTTP_10);
        assert_eq!(head.request.headers()["host"], "x");
        assert_eq!(head.request.headers()["empty"], "");
        assert_eq!(head.request.headers().get_all("many").iter().collect::<Vec<_>>(), ["1", "2"]);
        assert!(head.body.is_ended());
        assert!(!head.keep_alive);
    }

    #[test]
    fn lines_end_with_cr_and_lf() {
        for text in [
            "GET / HTTP/1.1\nHost: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\nTransfer-Encoding: chunked\r\n\r\n",
            "GET / HTTP/1.1\n\n",
        ] {
            assert_eq!(parse(text).unwrap_err(), HeadError::Malformed, "{text:?}");
        }
        for text in ["GET / HTTP/1.1\r\n\r\n", "\r\nGET / HTTP/1.1\r\nHost: x\r\nA:\r\n\r\n"] {
            assert!(parse(text).unwrap().is_some(), "{text:?}");
        }
    }

    #[test]
    fn a_body_has_a_length_or_chunks() {
        assert_eq!(head("").body.remaining(), Some(0));
        assert_eq!(head("Content-Length: 5\r\n").body.remaining(), Some(5));
        assert_eq!(head("Content-Length: 5\r\nContent-Length: 5\r\n").body.remaining(), Some(5));
        assert_eq!(head("Content-Length: 5\r\nContent-Length: 5\r\n").request.headers().len(), 1);
        let both = head("Content-Length: 5\r\nTransfer-Encoding: Chunked\r\n");
        assert_eq!(both.body.remaining(), None);
        assert!(!both.keep_alive);
        assert!(!both.request.headers().contains_key("content-length"));
        assert!(head("Transfer-Encoding: chunked\r\n").keep_alive);
        for wrong in [
            "Content-Length: 5, 5\r\n",
            "Content-Length: \r\n",
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: 0x5\r\n",
            "Transfer-Encoding: gzip\r\n",
            "Transfer-Encoding: chunked, gzip\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n",
            "Transfer-Encoding:\r\n",
            "Transfer-Encoding: chunked,\r\n",
        ] {
            let text = format!("POST / HTTP/1.1\r\n{wrong}\r\n");
            assert_eq!(parse(&text).unwrap_err(), HeadError::Malformed, "{wrong}");
        }
        let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(parse(old).unwrap_err(), HeadError::Malformed);
    }

    #[test]
    fn a_connection_goes_on_unless_either_end_closes_it() {
        assert!(head("").keep_alive);
        assert!(!head("Connection: x, Close\r\n").keep_alive);
        assert!(!head("Connection: close\r\nConnection: keep-alive\r\n").keep_alive);
        let old = |fields: &str| parse(&format!("GET / HTTP/1.0\r\n{fields}\r\n")).unwrap().unwrap().0.keep_alive;
        assert!(!old(""));
        assert!(old("Connection: Keep-Alive\r\n"));
        assert!(!old("Connection: keep-alive, close\r\n"));
    }

    #[test]
    fn a_client_that_waits_has_a_body_to_send() {
        assert!(head("Expect: 100-Continue\r\nContent-Length: 1\r\n").expects_continue);
        assert!(!head("Expect: 100-continue\r\n").expects_continue);
        let old = "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n";
        assert!(!parse(old).unwrap().unwrap().0.expects_continue);
        assert!(head("TE: deflate, trailers\r\n").takes_trailers);
    }

    #[test]
    fn a_head_beyond_a_limit_is_an_error() {
        let many = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(count));
        assert_eq!(parse(&many(100)).unwrap().unwrap().0.request.headers().len(), 100);
        assert_eq!(parse(&many(101)).unwrap_err(), HeadError::TooLarge);
        let limits = HeadLimits { bytes: 8192, fields: 3 };
        let few = |text: &str| ParsedHead::parse(text.as_bytes(), limits, &mut HeadFields::default());
        assert!(few(&many(3)).is_ok());
        assert_eq!(few(&many(4)).unwrap_err(), HeadError::TooLarge);
        assert_eq!(parse(&"x".repeat(8192)).unwrap_err(), HeadError::TooLarge);
        assert!(parse(&"x".repeat(8191)).unwrap().is_none());
        let wide = HeadLimits { bytes: 1 << 20, fields: 10 };
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(MAX_TARGET_BYTES));
        let parsed = ParsedHead::parse(long.as_bytes(), wide, &mut HeadFields::default());
        assert_eq!(parsed.unwrap_err(), HeadError::TargetTooLong);
    }

    #[test]
    fn a_head_ends_with_an_empty_line() {
        for (text, before, expected) in [
            ("a\r\n\r\n", 0, true),
            ("a\r\n\r\n", 4, true),
            ("a\n\n", 2, true),
            ("a\n\r\n", 3, true),
            ("a\r\n\r\nb", 5, false),
            ("a\r\nb\r\n", 0, false),
            ("\r\r\n", 0, false),
        ] {
            assert_eq!(has_empty_line(text.as_bytes(), before), expected, "{text:?} {before}");
        }
    }

    proptest! {
        #[test]
        fn a_head_in_pieces_is_incomplete_until_its_last_byte(
            fields in proptest::collection::vec(("[a-zA-Z-]{1,9}x", "[ -~]{0,20}"), 0..80),
        ) {
            let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let text = format!("GET /path HTTP/1.1\r\n{lines}\r\n");
            for cut in 0..text.len() {
                prop_assert!(parse(&text[..cut]).unwrap().is_none());
            }
            let (head, length) = parse(&text).unwrap().unwrap();
            prop_assert_eq!(length, text.len());
            prop_assert_eq!(head.request.headers().len(), fields.len());
            for (name, value) in &fields {
                let values = head.request.headers().get_all(name.as_str());
                prop_assert!(values.iter().any(|had| had.as_bytes() == value.trim_matches([' ', '\t']).as_bytes()));
            }
        }

        #[test]
        fn any_bytes_are_a_head_an_error_or_incomplete(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(Some((_, length))) = ParsedHead::parse(&bytes, LIMITS, &mut HeadFields::default()) {
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
