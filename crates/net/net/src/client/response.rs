//! Decoding of responses: heads with all headers, bodies, trailers. No socket is used here.
//!
//! Ambiguous framing of a response is rejected (RFC 9112, section 6.3): a proxy must not read a response differently
//! from the next reader.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};

use super::error::SendError;
use crate::upgrade::switches_to;
use crate::wire::{
    BodyDecoder, Chunked, MAX_HEAD_BYTES, MAX_HEADERS, WireError, content_length, has_token, lenient_parser, no_head,
    printable, shared_part, tokens,
};

/// Properties of the request that its response is decoded by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseContext {
    /// Whether the method is HEAD: the response has no body.
    pub is_head: bool,
    /// Whether another protocol is requested: 101 is a final response.
    pub upgrade: bool,
    /// Whether the head is kept as received.
    pub keeps_head: bool,
}

/// The head of a response. Content-Length is removed where it does not apply, Transfer-Encoding always.
#[derive(Debug)]
pub struct ResponseHead {
    /// The final status, or 101.
    pub status: StatusCode,
    /// HTTP/1.0 or HTTP/1.1.
    pub version: Version,
    /// Headers, as parts of one buffer of their own.
    pub headers: HeaderMap,
    /// Decoder of the body that follows.
    pub body: BodyDecoder,
    /// Whether the connection may be used again.
    pub keep_alive: bool,
    /// The head as received, if it is kept.
    pub received: Option<Bytes>,
}

/// Maximum number of interim responses.
const MAX_INTERIM_RESPONSES: u32 = 100;

/// Decoder of one response's head, from bytes in pieces.
#[derive(Debug, Default)]
pub struct HeadParser {
    context: ResponseContext,
    /// The protocol that the request asks for; None without one, or if any is taken.
    protocol: Option<HeaderValue>,
    /// An incomplete head.
    partial: Vec<u8>,
    interim: u32,
}

impl HeadParser {
    /// A decoder for the response to one request.
    pub fn new(context: ResponseContext) -> Self {
        Self { context, ..Self::default() }
    }

    /// Sets the protocol that the request asks for: a 101 has to be for it.
    pub fn asking_for(self, protocol: Option<HeaderValue>) -> Self {
        Self { protocol, ..self }
    }

    /// Whether no byte has come yet.
    pub fn is_empty(&self) -> bool {
        self.partial.is_empty() && self.interim == 0
    }

    /// Decodes bytes; returns the completed head and the number of bytes used. Without a head all were used. Interim
    /// responses (1xx) are skipped.
    ///
    /// # Errors
    /// If the bytes are not a response.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<(ResponseHead, usize)>, SendError> {
        self.push_with(bytes, &mut HeaderMap::default)
    }

    /// As [`Self::push`]; the headers are put into an empty map of `new_map`.
    pub(super) fn push_with(
        &mut self,
        bytes: &[u8],
        new_map: &mut dyn FnMut() -> HeaderMap,
    ) -> Result<Option<(ResponseHead, usize)>, SendError> {
        if self.partial.is_empty() {
            let found = self.find(bytes, new_map)?;
            if let Err(kept) = found {
                self.partial.extend_from_slice(&bytes[kept..]);
            }
            return Ok(found.ok());
        }
        let before = self.partial.len();
        self.partial.extend_from_slice(bytes);
        // Only the end of a line can complete a head, so a head that comes byte by byte is not parsed at each.
        if self.partial.len() <= MAX_HEAD_BYTES && !bytes.contains(&b'\n') {
            return Ok(None);
        }
        let partial = std::mem::take(&mut self.partial);
        match self.find(&partial, new_map)? {
            Ok((head, used)) => Ok(Some((head, used - before))),
            Err(kept) => {
                self.partial = partial;
                self.partial.drain(..kept);
                Ok(None)
            }
        }
    }

    /// The final head in `bytes` and its end; or the start of an incomplete one.
    fn find(
        &mut self,
        bytes: &[u8],
        new_map: &mut dyn FnMut() -> HeaderMap,
    ) -> Result<Result<(ResponseHead, usize), usize>, SendError> {
        let mut at = 0;
        while let Some((head, length)) = parse_head(&bytes[at..], self.context, new_map)? {
            at += length;
            if head.status == StatusCode::SWITCHING_PROTOCOLS
                && self.protocol.as_ref().is_some_and(|protocol| !switches_to(&head.headers, protocol))
            {
                return Err(SendError::protocol("it switches to another protocol than was asked for"));
            }
            if !head.status.is_informational() || head.status == StatusCode::SWITCHING_PROTOCOLS {
                return Ok(Ok((head, at)));
            }
            self.interim += 1;
            if self.interim > MAX_INTERIM_RESPONSES {
                return Err(SendError::protocol("interim answers without end"));
            }
        }
        Ok(Err(at))
    }
}

/// Parses one head at the start of `bytes`; None if it is incomplete.
fn parse_head(
    bytes: &[u8],
    context: ResponseContext,
    new_map: &mut dyn FnMut() -> HeaderMap,
) -> Result<Option<(ResponseHead, usize)>, SendError> {
    let mut room = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    let length = match lenient_parser().parse_response_with_uninit_headers(&mut parsed, bytes, &mut room) {
        Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD_BYTES => length,
        Ok(httparse::Status::Partial) if bytes.len() <= MAX_HEAD_BYTES => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(WireError::HeadTooLarge.into()),
        Err(_) => return Err(not_http(bytes)),
    };
    let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or_else(|| not_http(bytes))?;
    let is_1_1 = parsed.version == Some(1);
    let owned = Bytes::copy_from_slice(&bytes[..length]);
    let mut headers = new_map();
    headers.reserve(parsed.headers.len());
    let mut framing = FramingHeaders { keep_alive: is_1_1, ..FramingHeaders::default() };
    for header in parsed.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| not_http(bytes))?;
        let value = header_value(header.value, bytes, &owned)?;
        framing.add_header(&name, &value)?;
        if name != TRANSFER_ENCODING {
            headers.append(name, value);
        }
    }
    if framing.has_transfer_coding {
        headers.remove(CONTENT_LENGTH);
    }
    let body = match status.as_u16() {
        101 if !context.upgrade => {
            return Err(SendError::protocol("it switches to a protocol that the request did not ask for"));
        }
        100..200 | 204 | 304 => BodyDecoder::ended(),
        _ if context.is_head => BodyDecoder::ended(),
        _ => framing.body(),
    };
    let keep_alive = framing.allows_keep_alive(is_1_1) && !body.is_until_close() && status.as_u16() != 101;
    let version = if is_1_1 { Version::HTTP_11 } else { Version::HTTP_10 };
    let received = context.keeps_head.then_some(owned);
    Ok(Some((ResponseHead { status, version, headers, body, keep_alive, received }, length)))
}

fn not_http(bytes: &[u8]) -> SendError {
    no_head(bytes).into()
}

/// A header's value as a part of `owned`, a copy of the beginning of `bytes`.
fn header_value(value: &[u8], bytes: &[u8], owned: &Bytes) -> Result<HeaderValue, SendError> {
    let made = HeaderValue::from_maybe_shared(shared_part(owned, bytes, value)).ok();
    made.or_else(|| unfold(value)).ok_or_else(|| SendError::protocol("a header holds what no header can hold"))
}

/// Unfolds a value (RFC 9112, 5.2): each break and the white space around it become one space.
fn unfold(value: &[u8]) -> Option<HeaderValue> {
    let lines = value.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    HeaderValue::from_bytes(&lines.collect::<Vec<_>>().join(&b' ')).ok()
}

#[derive(Debug, Default)]
struct FramingHeaders {
    length: Option<u64>,
    has_transfer_coding: bool,
    chunked: bool,
    keep_alive: bool,
}

impl FramingHeaders {
    fn add_header(&mut self, name: &HeaderName, value: &HeaderValue) -> Result<(), SendError> {
        let bytes = value.as_bytes();
        if *name == CONTENT_LENGTH {
            let length = content_length(bytes).ok_or(WireError::BadLength)?;
            if self.length.replace(length).is_some_and(|earlier| earlier != length) {
                return Err(WireError::BadLength.into());
            }
        } else if *name == TRANSFER_ENCODING {
            for coding in tokens(bytes).filter(|coding| !coding.is_empty()) {
                // Chunked twice, or below another coding, is a sign of smuggling.
                if self.chunked || !coding.eq_ignore_ascii_case(b"chunked") {
                    let coding = printable(bytes);
                    return Err(SendError::protocol(format!("transfer coding \"{coding}\" was not asked for")));
                }
                self.chunked = true;
            }
            self.has_transfer_coding = true;
        } else if *name == CONNECTION {
            if has_token(bytes, b"close") {
                self.keep_alive = false;
            } else if has_token(bytes, b"keep-alive") {
                self.keep_alive = true;
            }
        }
        Ok(())
    }

    fn body(&self) -> BodyDecoder {
        match self.length {
            _ if self.chunked => BodyDecoder::chunked(Chunked::lenient()),
            _ if self.has_transfer_coding => BodyDecoder::until_close(),
            Some(length) => BodyDecoder::length(length),
            None => BodyDecoder::until_close(),
        }
    }

    /// Contradictory framing, or chunked in HTTP/1.0, enables response smuggling: RFC 9112 (6.1, 6.3) has the
    /// connection closed after it.
    fn allows_keep_alive(&self, is_1_1: bool) -> bool {
        self.keep_alive && !(self.has_transfer_coding && (self.length.is_some() || !is_1_1))
    }
}
