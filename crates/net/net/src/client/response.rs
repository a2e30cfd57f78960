//! Decoding of responses: heads with all headers, bodies, trailers. No socket is used here.
//!
//! Ambiguous framing of a response is rejected (RFC 9112, section 6.3): a proxy must not read a response differently
//! from the next reader.

use std::mem::MaybeUninit;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};

use super::error::SendError;
use super::framing_headers::FramingHeaders;
use super::passed_response::SplitFields;
use crate::upgrade::switches_to;
use crate::wire::{
    BodyDecoder, MAX_HEAD_BYTES, MAX_HEADERS, PassedFields, WireError, lenient_parser, no_head, shared_part,
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
    /// Fields that nothing reads, if such are passed on.
    pub passed: PassedFields,
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
    /// Names of fields that are read, if others are passed on, and memory for these.
    passes_all_but: Option<(Arc<[HeaderName]>, PassedFields)>,
    /// An incomplete head.
    partial: Vec<u8>,
    interim: u32,
}

impl HeadParser {
    /// A decoder for the response to one request.
    pub fn new(context: ResponseContext) -> Self {
        Self { context, ..Self::default() }
    }

    /// As [`Self::new`], [`Self::asking_for`] and [`Self::passing_all_but`] together, without a copy for each.
    pub(super) fn of(
        context: ResponseContext,
        protocol: Option<HeaderValue>,
        passes_all_but: Option<(Arc<[HeaderName]>, PassedFields)>,
    ) -> Self {
        Self { context, protocol, passes_all_but, partial: Vec::new(), interim: 0 }
    }

    /// Sets the protocol that the request asks for: a 101 has to be for it.
    pub fn asking_for(self, protocol: Option<HeaderValue>) -> Self {
        Self { protocol, ..self }
    }

    /// Has fields passed on unread, but for those of these names and those that decide about a call:
    /// [`ResponseHead::passed`].
    #[must_use]
    pub fn passing_all_but(self, names: Arc<[HeaderName]>, memory: PassedFields) -> Self {
        Self { passes_all_but: Some((names, memory)), ..self }
    }

    /// A decoder for another response to the same request, with this memory.
    pub(super) fn renewed(&self, memory: PassedFields) -> Self {
        let passes_all_but = self.passes_all_but.as_ref().map(|(names, _)| (Arc::clone(names), memory));
        Self::of(self.context, self.protocol.clone(), passes_all_but)
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
        while let Some((head, length)) = self.parse_head(&bytes[at..], new_map)? {
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

    /// Parses one head at the start of `bytes`; None if it is incomplete.
    fn parse_head(
        &mut self,
        bytes: &[u8],
        new_map: &mut dyn FnMut() -> HeaderMap,
    ) -> Result<Option<(ResponseHead, usize)>, SendError> {
        let context = self.context;
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
        let version = if is_1_1 { Version::HTTP_11 } else { Version::HTTP_10 };
        let framing = FramingHeaders::new(is_1_1);
        // Of the others the length is that of a body which does not come.
        let has_body = !context.is_head && !matches!(status.as_u16(), 100..200 | 204 | 304);
        if has_body
            && !context.keeps_head
            && let Some((kept_names, memory)) = &mut self.passes_all_but
            && let Some(SplitFields { passed, kept, framing }) =
                SplitFields::of(bytes, parsed.headers, kept_names, framing.clone(), std::mem::take(memory))?
        {
            let body = framing.body();
            let keep_alive = framing.allows_keep_alive(is_1_1) && !body.is_until_close();
            let head = ResponseHead { status, version, headers: kept, passed, body, keep_alive, received: None };
            return Ok(Some((head, length)));
        }
        let owned = Bytes::copy_from_slice(&bytes[..length]);
        let (headers, framing) = all_headers(parsed.headers, bytes, &owned, new_map(), framing)?;
        let body = match status.as_u16() {
            101 if !context.upgrade => {
                return Err(SendError::protocol("it switches to a protocol that the request did not ask for"));
            }
            _ if !has_body => BodyDecoder::ended(),
            _ => framing.body(),
        };
        let keep_alive = framing.allows_keep_alive(is_1_1) && !body.is_until_close() && status.as_u16() != 101;
        let received = context.keeps_head.then_some(owned);
        let passed = PassedFields::default();
        Ok(Some((ResponseHead { status, version, headers, passed, body, keep_alive, received }, length)))
    }
}

/// All fields of a head, but for Transfer-Encoding, as a map.
fn all_headers(
    fields: &[httparse::Header<'_>],
    bytes: &[u8],
    owned: &Bytes,
    mut headers: HeaderMap,
    mut framing: FramingHeaders,
) -> Result<(HeaderMap, FramingHeaders), SendError> {
    headers.reserve(fields.len());
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| not_http(bytes))?;
        let value = header_value(field.value, bytes, owned)?;
        match name {
            CONTENT_LENGTH => framing.add_length(value.as_bytes())?,
            TRANSFER_ENCODING => framing.add_codings(value.as_bytes())?,
            CONNECTION => framing.add_connection(value.as_bytes()),
            _ => {}
        }
        if name != TRANSFER_ENCODING {
            headers.append(name, value);
        }
    }
    if framing.has_transfer_coding() {
        headers.remove(CONTENT_LENGTH);
    }
    Ok((headers, framing))
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
