//! Decoder of a message's body.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::WireError;
use super::chunked::{Chunked, ChunkedPart};
use super::head::MAX_HEADERS;

/// Decoder of a body; its state is what is still to come.
#[derive(Debug)]
pub struct BodyDecoder {
    state: BodyState,
}

#[derive(Debug)]
enum BodyState {
    Ended,
    Length(u64),
    /// Chunks, up to one of size 0 and the trailers, which are stored.
    Chunked(Box<(Chunked, Vec<u8>)>),
    UntilClose,
}

/// Result of decoding some bytes.
#[derive(Debug, Default)]
pub struct DecodedBody {
    /// Number of bytes that belong to the message.
    pub used: usize,
    /// Body data.
    pub data: Bytes,
    /// Trailers after the end of the body; few bodies have any, and a map in place is copied with each.
    pub trailers: Option<Box<HeaderMap>>,
}

impl BodyDecoder {
    /// An empty body.
    pub fn ended() -> Self {
        Self { state: BodyState::Ended }
    }

    /// A body of this number of bytes.
    pub fn length(bytes: u64) -> Self {
        Self { state: if bytes == 0 { BodyState::Ended } else { BodyState::Length(bytes) } }
    }

    /// A body in chunks.
    pub fn chunked(chunks: Chunked) -> Self {
        Self { state: BodyState::Chunked(Box::new((chunks, Vec::new()))) }
    }

    /// A body that ends when the connection closes.
    pub fn until_close() -> Self {
        Self { state: BodyState::UntilClose }
    }

    /// Whether it ends when the connection closes.
    pub fn is_until_close(&self) -> bool {
        matches!(self.state, BodyState::UntilClose)
    }

    /// Whether the body is complete.
    pub fn is_ended(&self) -> bool {
        matches!(self.state, BodyState::Ended)
    }

    /// Remaining bytes, if known.
    pub fn remaining(&self) -> Option<u64> {
        match self.state {
            BodyState::Ended => Some(0),
            BodyState::Length(left) => Some(left),
            BodyState::Chunked(_) | BodyState::UntilClose => None,
        }
    }

    /// Decodes bytes; copies the body data.
    ///
    /// # Errors
    /// If chunks or trailers are malformed.
    pub fn push(&mut self, bytes: &[u8]) -> Result<DecodedBody, WireError> {
        let BodyState::Chunked(coding) = &mut self.state else {
            let used = self.consume(bytes.len());
            return Ok(DecodedBody { used, data: Bytes::copy_from_slice(&bytes[..used]), trailers: None });
        };
        let (chunked, trailer) = &mut **coding;
        let mut data = Vec::new();
        let (used, ended) = chunked.decode(bytes, |part| match part {
            ChunkedPart::Data(some) => {
                if data.is_empty() {
                    data.reserve_exact(bytes.len().min(some.len() + 64));
                }
                data.extend_from_slice(some);
            }
            ChunkedPart::Trailer(byte) => trailer.push(byte),
        })?;
        let trailers = if ended { trailers(trailer)? } else { None };
        if ended {
            self.state = BodyState::Ended;
        }
        Ok(DecodedBody { used, data: data.into(), trailers })
    }

    /// Counts the next bytes without a copy; returns the number that belong to the body. Not for chunks.
    pub fn consume(&mut self, length: usize) -> usize {
        match &mut self.state {
            BodyState::Length(left) => {
                let used = usize::try_from(*left).unwrap_or(usize::MAX).min(length);
                *left -= used as u64;
                if *left == 0 {
                    self.state = BodyState::Ended;
                }
                used
            }
            BodyState::UntilClose => length,
            BodyState::Ended | BodyState::Chunked(_) => 0,
        }
    }

    /// Ends the input since the connection was closed.
    ///
    /// # Errors
    /// If the body is incomplete.
    pub fn close(&mut self) -> Result<(), WireError> {
        match &mut self.state {
            BodyState::Ended => Ok(()),
            BodyState::UntilClose => {
                self.state = BodyState::Ended;
                Ok(())
            }
            BodyState::Length(_) | BodyState::Chunked(_) => Err(WireError::Truncated),
        }
    }
}

/// Parses trailers, up to and with their empty line; None if there are none.
fn trailers(bytes: &[u8]) -> Result<Option<Box<HeaderMap>>, WireError> {
    let mut room = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let Ok(httparse::Status::Complete((_, parsed))) = httparse::parse_headers(bytes, &mut room) else {
        return Err(WireError::BadChunk);
    };
    let mut found = HeaderMap::with_capacity(parsed.len());
    for header in parsed {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| WireError::BadChunk)?;
        found.append(name, HeaderValue::from_bytes(header.value).map_err(|_| WireError::BadChunk)?);
    }
    Ok((!found.is_empty()).then(|| Box::new(found)))
}
