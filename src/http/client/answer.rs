//! Bytes to answers: heads with all their headers, bodies, trailers. No socket is touched here.
//!
//! What decides where an answer ends is refused when it is not beyond doubt (RFC 9112, section 6.3): whoever passes an
//! answer on must not read it otherwise than the next one does.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};

use super::error::SendError;
use crate::http::wire::{
    Chunked, MOST_BYTES, MOST_HEADERS, Part, WireError, content_length, has_token, lenient, printable, tokens,
};

/// What of the request its answer is read by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// By HEAD: the answer has no body, whatever it says.
    pub head: bool,
    /// For another protocol: a 101 is the answer.
    pub upgrade: bool,
}

/// The head of an answer. Content-Length is left out where it does not count, Transfer-Encoding always.
#[derive(Debug)]
pub struct Head {
    /// The final status, or 101.
    pub status: StatusCode,
    /// HTTP/1.0 or HTTP/1.1.
    pub version: Version,
    /// Parts of one buffer that holds nothing but them.
    pub headers: HeaderMap,
    /// What follows.
    pub body: Body,
    /// Whether the connection may be used again.
    pub keep_alive: bool,
}

/// More interim answers than this are no answer.
const MOST_INTERIM: u32 = 100;

/// Finds the head of one answer in bytes that come in pieces.
#[derive(Debug, Default)]
pub struct Heads {
    asked: Asked,
    /// The beginning of a head whose end has not come yet.
    partial: Vec<u8>,
    interim: u32,
}

impl Heads {
    /// For the answer to one request.
    pub fn new(asked: Asked) -> Self {
        Self { asked, ..Self::default() }
    }

    /// Whether nothing has come yet.
    pub fn is_untouched(&self) -> bool {
        self.partial.is_empty() && self.interim == 0
    }

    /// Takes bytes; the head that they complete, and how many of them it took. Without one, all were taken. Interim
    /// answers (1xx) are skipped.
    ///
    /// # Errors
    /// When this is no answer.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<(Head, usize)>, SendError> {
        if self.partial.is_empty() {
            let found = self.find(bytes)?;
            if let Err(kept) = found {
                self.partial.extend_from_slice(&bytes[kept..]);
            }
            return Ok(found.ok());
        }
        let before = self.partial.len();
        self.partial.extend_from_slice(bytes);
        // Only a line's end can complete a head, so a head that comes byte by byte is not parsed at each.
        if self.partial.len() <= MOST_BYTES && !bytes.contains(&b'\n') {
            return Ok(None);
        }
        let partial = std::mem::take(&mut self.partial);
        match self.find(&partial)? {
            Ok((head, used)) => Ok(Some((head, used - before))),
            Err(kept) => {
                self.partial = partial;
                self.partial.drain(..kept);
                Ok(None)
            }
        }
    }

    /// The final head in `bytes` and its end; or where an unfinished one begins.
    fn find(&mut self, bytes: &[u8]) -> Result<Result<(Head, usize), usize>, SendError> {
        let mut at = 0;
        while let Some((head, length)) = read(&bytes[at..], self.asked)? {
            at += length;
            if !head.status.is_informational() || head.status == StatusCode::SWITCHING_PROTOCOLS {
                return Ok(Ok((head, at)));
            }
            self.interim += 1;
            if self.interim > MOST_INTERIM {
                return Err(SendError::protocol("interim answers without end"));
            }
        }
        Ok(Err(at))
    }
}

/// Reads one head from the start of `bytes`; None if its end is not there yet.
fn read(bytes: &[u8], asked: Asked) -> Result<Option<(Head, usize)>, SendError> {
    let mut room = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    let length = match lenient().parse_response_with_uninit_headers(&mut parsed, bytes, &mut room) {
        Ok(httparse::Status::Complete(length)) if length <= MOST_BYTES => length,
        Ok(httparse::Status::Partial) if bytes.len() <= MOST_BYTES => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(WireError::HeadTooLarge.into()),
        Err(_) => return Err(not_http(bytes)),
    };
    let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or_else(|| not_http(bytes))?;
    let is_1_1 = parsed.version == Some(1);
    let own = Bytes::copy_from_slice(&bytes[..length]);
    let mut headers = HeaderMap::with_capacity(parsed.headers.len());
    let mut framing = Framing { keep_alive: is_1_1, ..Framing::default() };
    for header in parsed.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| not_http(bytes))?;
        let value = value(header.value, bytes, &own)?;
        framing.note(&name, &value)?;
        if name != TRANSFER_ENCODING {
            headers.append(name, value);
        }
    }
    if framing.coded {
        headers.remove(CONTENT_LENGTH);
    }
    let rest = match status.as_u16() {
        101 if !asked.upgrade => return Err(SendError::protocol("it switches to a protocol that was not asked for")),
        100..200 | 204 | 304 => Rest::Ended,
        _ if asked.head => Rest::Ended,
        _ => framing.rest(),
    };
    let keep_alive = framing.may_stay(is_1_1) && !matches!(rest, Rest::UntilClose) && status.as_u16() != 101;
    let version = if is_1_1 { Version::HTTP_11 } else { Version::HTTP_10 };
    Ok(Some((Head { status, version, headers, body: Body { rest }, keep_alive }, length)))
}

fn not_http(bytes: &[u8]) -> SendError {
    WireError::NotHttp(printable(bytes)).into()
}

/// A header's value as a part of `own`, which is a copy of the beginning of `bytes`.
fn value(value: &[u8], bytes: &[u8], own: &Bytes) -> Result<HeaderValue, SendError> {
    let made = if value.iter().any(|b| matches!(b, b'\r' | b'\n')) {
        // A folded line (RFC 9112, 5.2): each break and the white space after it become one space.
        let lines = value.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
        HeaderValue::from_bytes(&lines.collect::<Vec<_>>().join(&b' '))
    } else {
        let start = value.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
        match own.len().checked_sub(value.len()) {
            Some(most) if start <= most => HeaderValue::from_maybe_shared(own.slice(start..start + value.len())),
            // An empty value may point elsewhere.
            _ => HeaderValue::from_bytes(value),
        }
    };
    made.map_err(|_| SendError::protocol("a header holds what no header can hold"))
}

#[derive(Debug, Default)]
struct Framing {
    length: Option<u64>,
    coded: bool,
    chunked: bool,
    keep_alive: bool,
}

impl Framing {
    fn note(&mut self, name: &HeaderName, value: &HeaderValue) -> Result<(), SendError> {
        let bytes = value.as_bytes();
        if *name == CONTENT_LENGTH {
            let length = content_length(bytes).ok_or(WireError::BadLength)?;
            if self.length.replace(length).is_some_and(|earlier| earlier != length) {
                return Err(WireError::BadLength.into());
            }
        } else if *name == TRANSFER_ENCODING {
            for coding in tokens(bytes).filter(|coding| !coding.is_empty()) {
                // Chunked twice, or under another coding, is nobody's but a smuggler's.
                if self.chunked || !coding.eq_ignore_ascii_case(b"chunked") {
                    let coding = printable(bytes);
                    return Err(SendError::protocol(format!("transfer coding \"{coding}\" was not asked for")));
                }
                self.chunked = true;
            }
            self.coded = true;
        } else if *name == CONNECTION {
            if has_token(bytes, b"close") {
                self.keep_alive = false;
            } else if has_token(bytes, b"keep-alive") {
                self.keep_alive = true;
            }
        }
        Ok(())
    }

    fn rest(&self) -> Rest {
        match self.length {
            _ if self.chunked => Rest::Chunked(Box::new((Chunked::new(), Vec::new()))),
            _ if self.coded => Rest::UntilClose,
            Some(0) => Rest::Ended,
            Some(length) => Rest::Length(length),
            None => Rest::UntilClose,
        }
    }

    /// A head that says two things about its body's end, or says it as HTTP/1.0 cannot, is how answers are smuggled:
    /// RFC 9112 (6.1, 6.3) has the connection closed after it.
    fn may_stay(&self, is_1_1: bool) -> bool {
        self.keep_alive && !(self.coded && (self.length.is_some() || !is_1_1))
    }
}

/// What is still to come of a body.
#[derive(Debug)]
pub struct Body {
    rest: Rest,
}

#[derive(Debug)]
enum Rest {
    Ended,
    Length(u64),
    /// Chunks, up to one of size 0 and trailers. These are kept as they come.
    Chunked(Box<(Chunked, Vec<u8>)>),
    UntilClose,
}

/// What some bytes brought.
#[derive(Debug, Default)]
pub struct Brought {
    /// So many of them belonged to the answer.
    pub used: usize,
    /// Some of the body.
    pub data: Bytes,
    /// What came behind the body's end.
    pub trailers: Option<HeaderMap>,
}

impl Body {
    pub(super) fn ended() -> Self {
        Self { rest: Rest::Ended }
    }

    /// Whether all has come.
    pub fn is_ended(&self) -> bool {
        matches!(self.rest, Rest::Ended)
    }

    /// How many bytes are still to come, where that is known.
    pub fn left(&self) -> Option<u64> {
        match self.rest {
            Rest::Ended => Some(0),
            Rest::Length(left) => Some(left),
            Rest::Chunked(_) | Rest::UntilClose => None,
        }
    }

    /// Takes bytes, and copies what of the body is in them.
    ///
    /// # Errors
    /// When chunks or trailers are malformed.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Brought, SendError> {
        let Rest::Chunked(coding) = &mut self.rest else {
            let used = self.take(bytes.len());
            return Ok(Brought { used, data: Bytes::copy_from_slice(&bytes[..used]), trailers: None });
        };
        let (chunked, trailer) = &mut **coding;
        let mut data = Vec::new();
        let (used, ended) = chunked.pass(bytes, |part| match part {
            Part::Data(some) => {
                if data.is_empty() {
                    data.reserve_exact(bytes.len().min(some.len() + 64));
                }
                data.extend_from_slice(some);
            }
            Part::Trailer(byte) => trailer.push(byte),
        })?;
        let trailers = if ended { trailers(trailer)? } else { None };
        if ended {
            self.rest = Rest::Ended;
        }
        Ok(Brought { used, data: data.into(), trailers })
    }

    /// The next bytes came and are taken whole, without a copy; how many of them belong to the body. Not for chunks.
    pub(super) fn take(&mut self, length: usize) -> usize {
        match &mut self.rest {
            Rest::Length(left) => {
                let used = usize::try_from(*left).unwrap_or(usize::MAX).min(length);
                *left -= used as u64;
                if *left == 0 {
                    self.rest = Rest::Ended;
                }
                used
            }
            Rest::UntilClose => length,
            Rest::Ended | Rest::Chunked(_) => 0,
        }
    }

    /// The connection was closed.
    ///
    /// # Errors
    /// When that is not the body's end.
    pub fn close(&mut self) -> Result<(), SendError> {
        match &mut self.rest {
            Rest::Ended => Ok(()),
            Rest::UntilClose => {
                self.rest = Rest::Ended;
                Ok(())
            }
            Rest::Length(_) | Rest::Chunked(_) => Err(WireError::Cut.into()),
        }
    }
}

/// Reads trailers, up to and with their empty line; None if there are none.
fn trailers(bytes: &[u8]) -> Result<Option<HeaderMap>, SendError> {
    let bad = |_| SendError::from(WireError::BadChunk);
    let mut room = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let Ok(httparse::Status::Complete((_, parsed))) = httparse::parse_headers(bytes, &mut room) else {
        return Err(bad(()));
    };
    let mut found = HeaderMap::with_capacity(parsed.len());
    for header in parsed {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| bad(()))?;
        found.append(name, HeaderValue::from_bytes(header.value).map_err(|_| bad(()))?);
    }
    Ok((!found.is_empty()).then_some(found))
}
