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
            if passed.offer(*passed_names, bytes, (field.name, field.value)) {
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
mod tests;
