//! Decoder of responses, in constant memory and independent of how the bytes are split.

use super::WireError;
use super::chunked::{Chunked, ChunkedPart};
use super::head::{BodyFraming, HeadCache, HeadNotes, WireHead};

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodedResponse {
    /// The final status.
    pub status: u16,
    /// Size of the body in bytes, without framing.
    pub body: u64,
    /// Total size in bytes: heads (also interim ones), framing, body.
    pub wire: u64,
    /// Whether the connection may be used again.
    pub keep_alive: bool,
}

/// Result of decoding some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeStep {
    /// Number of used bytes; the rest belongs to the next response.
    pub used: usize,
    /// The response that they completed.
    pub response: Option<DecodedResponse>,
}

/// Observer of a response as its bytes arrive. The default ignores them.
pub trait ResponseObserver {
    /// Takes the head of the final response, whole, and what it has.
    fn head(&mut self, _head: &[u8], _notes: HeadNotes) {}

    /// Takes the next bytes of its body, without framing.
    fn body(&mut self, _bytes: &[u8]) {}

    /// Takes the trailers behind the body as text, if they are wanted: lines `name: value`, an empty line.
    fn trailers(&mut self, _text: &[u8]) {}
}

/// Looks at nothing.
impl ResponseObserver for () {}

/// Decoder of one connection's responses.
#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
    /// An incomplete head.
    partial: Vec<u8>,
    /// Bytes of the current response so far.
    wire: u64,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Head,
    Length {
        head: WireHead,
        total: u64,
        remaining: u64,
    },
    Chunked {
        head: WireHead,
        chunked: Chunked,
    },
    UntilClose {
        head: WireHead,
        body: u64,
    },
}

impl Decoder {
    /// Decodes the next bytes of the connection; `bodyless`: the response is to a HEAD request. Called again with the
    /// remaining bytes until all are used.
    ///
    /// # Errors
    /// The reason why the bytes are not a response; the connection is then unusable.
    #[inline]
    pub fn push(&mut self, bytes: &[u8], bodyless: bool, cache: &mut HeadCache) -> Result<DecodeStep, WireError> {
        self.push_observed(bytes, bodyless, cache, &mut ())
    }

    /// As [`Self::push`]; passes the final head and the body to `observer`.
    ///
    /// # Errors
    /// As there.
    pub fn push_observed(
        &mut self,
        bytes: &[u8],
        bodyless: bool,
        cache: &mut HeadCache,
        observer: &mut impl ResponseObserver,
    ) -> Result<DecodeStep, WireError> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let (step, complete) = match &mut self.state {
                State::Head => match self.head(rest, bodyless, cache, observer)? {
                    // A body of length 0 ends before its first byte.
                    step if step > 0 => (step, self.immediate_end()),
                    _ => return Ok(DecodeStep { used: bytes.len(), response: None }),
                },
                State::Length { head, total, remaining: left } => {
                    let take = (*left).min(rest.len() as u64);
                    *left -= take;
                    observer.body(&rest[..take as usize]);
                    let complete = (*left == 0).then_some((*head, *total));
                    (take as usize, complete)
                }
                State::Chunked { head, chunked } => {
                    let (take, ended) = chunked.decode(rest, |part| {
                        if let ChunkedPart::Data(data) = part {
                            observer.body(data);
                        }
                    })?;
                    (take, ended.then_some((*head, chunked.body)))
                }
                State::UntilClose { body, .. } => {
                    *body += rest.len() as u64;
                    observer.body(rest);
                    (rest.len(), None)
                }
            };
            used += step;
            self.wire += step as u64;
            if let Some((head, body)) = complete {
                return Ok(DecodeStep { used, response: Some(self.finish(head, body)) });
            }
            if used == bytes.len() {
                return Ok(DecodeStep { used, response: None });
            }
        }
    }

    /// Ends the input since the connection was closed; returns a response that ends this way.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if a response is incomplete.
    pub fn close(&mut self) -> Result<Option<DecodedResponse>, WireError> {
        match self.state {
            State::UntilClose { head, body } => Ok(Some(self.finish(head, body))),
            State::Head if self.wire == 0 && self.partial.is_empty() => Ok(None),
            _ => Err(WireError::Truncated),
        }
    }

    /// Gives up the rest of a response within its body, as far as it has come; its connection cannot be used again.
    pub fn abandon(&mut self) -> Option<DecodedResponse> {
        let (head, body) = match &self.state {
            State::Head => return None,
            State::Length { head, total, remaining } => (*head, total - remaining),
            State::Chunked { head, chunked } => (*head, chunked.body),
            State::UntilClose { head, body } => (*head, *body),
        };
        Some(DecodedResponse { keep_alive: false, ..self.finish(head, body) })
    }

    /// Remaining bytes of a body of known length; 0 elsewhere.
    pub fn remaining_body(&self) -> u64 {
        if let State::Length { remaining: left, .. } = self.state { left } else { 0 }
    }

    /// Skips the next `n` bytes of a body of known length, discarded unread; `n` <= [`Self::remaining_body`].
    pub fn skip(&mut self, n: u64) -> Option<DecodedResponse> {
        let State::Length { head, total, remaining: left } = &mut self.state else { return None };
        *left = left.saturating_sub(n);
        let complete = (*left == 0).then_some((*head, *total));
        self.wire += n;
        complete.map(|(head, body)| self.finish(head, body))
    }

    /// Decodes one head; returns the number of bytes of `rest` used, or 0 if it is incomplete and all are stored.
    fn head(
        &mut self,
        rest: &[u8],
        bodyless: bool,
        cache: &mut HeadCache,
        observer: &mut impl ResponseObserver,
    ) -> Result<usize, WireError> {
        if rest.is_empty() {
            return Ok(0);
        }
        let before = self.partial.len();
        let parsed = if before == 0 {
            cache.parse(rest, bodyless)?
        } else {
            // Only the end of a line can complete a head, so a head that comes byte by byte is not parsed at each.
            let may_end = rest.contains(&b'\n');
            self.partial.extend_from_slice(rest);
            if self.partial.len() > super::head::MAX_HEAD_BYTES || may_end {
                WireHead::parse(&self.partial, bodyless)?
            } else {
                None
            }
        };
        let Some(head) = parsed else {
            if before == 0 {
                self.partial.extend_from_slice(rest);
            }
            return Ok(0);
        };
        if !head.is_interim() {
            let bytes = if before == 0 { &rest[..head.length] } else { &self.partial[..head.length] };
            observer.head(bytes, head.notes);
        }
        if before > 0 {
            self.partial.clear();
            self.partial.shrink_to(256);
            self.wire += before as u64;
        }
        self.begin(head);
        Ok(head.length - before)
    }

    fn begin(&mut self, head: WireHead) {
        if head.is_interim() {
            return;
        }
        self.state = match head.body {
            BodyFraming::Length(total) => State::Length { head, total, remaining: total },
            BodyFraming::Chunked => State::Chunked { head, chunked: Chunked::lenient() },
            BodyFraming::UntilClose => State::UntilClose { head, body: 0 },
        };
    }

    fn immediate_end(&self) -> Option<(WireHead, u64)> {
        match self.state {
            State::Length { head, total: 0, .. } => Some((head, 0)),
            _ => None,
        }
    }

    fn finish(&mut self, head: WireHead, body: u64) -> DecodedResponse {
        self.state = State::Head;
        DecodedResponse { status: head.status, body, wire: std::mem::take(&mut self.wire), keep_alive: head.keep_alive }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All responses and the final result, from pieces of the stream.
    fn decode<'a>(
        pieces: impl Iterator<Item = &'a [u8]>,
        bodyless: bool,
    ) -> (Vec<DecodedResponse>, Result<(), WireError>) {
        let (mut decoder, mut cache, mut answers) = (Decoder::default(), HeadCache::default(), Vec::new());
        for mut piece in pieces {
            while !piece.is_empty() {
                match decoder.push(piece, bodyless, &mut cache) {
                    Ok(step) => {
                        answers.extend(step.response);
                        piece = &piece[step.used..];
                    }
                    Err(error) => return (answers, Err(error)),
                }
            }
        }
        let end = decoder.close();
        answers.extend(end.as_ref().ok().copied().flatten());
        (answers, end.map(|_| ()))
    }

    const STREAM: &str = "HTTP/1.1 100 Continue\r\n\r\n\
        HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\
        HTTP/1.1 204 None\r\n\r\n\
        HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        3;e=1\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nT: 1\r\n\r\n\
        HTTP/1.1 500 Oh\r\nContent-Length: 0\r\nX-A: b\r\n\r\n\
        HTTP/1.0 200 OK\r\n\r\nuntil the end";

    #[test]
    fn a_stream_of_every_kind_of_response() {
        let (answers, end) = decode(std::iter::once(STREAM.as_bytes()), false);
        let seen: Vec<(u16, u64, bool)> = answers.iter().map(|a| (a.status, a.body, a.keep_alive)).collect();
        assert_eq!(seen, [(200, 5, true), (204, 0, true), (200, 19, true), (500, 0, true), (200, 13, false)]);
        assert_eq!(end, Ok(()));
        assert_eq!(answers.iter().map(|a| a.wire).sum::<u64>(), STREAM.len() as u64);
    }

    #[test]
    fn the_same_responses_when_split_at_every_byte() {
        let whole = decode(std::iter::once(STREAM.as_bytes()), false);
        assert_eq!(decode(STREAM.as_bytes().chunks(1), false), whole);
        for at in 0..STREAM.len() {
            let (a, b) = STREAM.as_bytes().split_at(at);
            assert_eq!(decode([a, b].into_iter(), false), whole, "split at {at}");
        }
    }

    #[test]
    fn a_truncated_response_is_an_error() {
        let full = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        for at in 1..full.len() {
            let (answers, end) = decode(std::iter::once(&full.as_bytes()[..at]), false);
            assert_eq!((answers.len(), end), (0, Err(WireError::Truncated)), "cut at {at}");
        }
    }

    #[test]
    fn gigabytes_pass_through_without_being_stored() {
        let (mut decoder, mut cache) = (Decoder::default(), HeadCache::default());
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\n\r\n";
        assert!(decoder.push(head, false, &mut cache).is_ok_and(|s| s.response.is_none()));
        assert_eq!(decoder.skip(4_999_999_999), None);
        assert_eq!(decoder.remaining_body(), 1);
        let last = decoder.push(b"xHTTP", false, &mut cache).expect("valid");
        assert_eq!((last.used, last.response.map(|a| a.body)), (1, Some(5_000_000_000)));
        assert!(decoder.partial.capacity() < 1024);
    }

    /// Text that is almost HTTP, so that random cases reach deep.
    fn streams() -> impl Strategy<Value = Vec<u8>> {
        let parts = prop::sample::select(vec![
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.0 404 No\r\n",
            "HTTP/1.1 100 Go\r\n\r\n",
            "Content-Length: 3\r\n",
            "Content-Length: 0\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Connection: close\r\n",
            "X: y\r\n z\r\n",
            "\r\n",
            "\n",
            "abc",
            "3\r\nabc\r\n",
            "0\r\n\r\n",
            "0\r\nT: v\r\n\r\n",
            "fff",
            ";x",
            "\r",
            " ",
            "HTTP/1.1 204 N\r\n\r\n",
            "\0",
        ]);
        prop::collection::vec(parts, 0..12).prop_map(|parts| parts.concat().into_bytes())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn however_cut_the_result_is_the_same(stream in streams(), cuts in prop::collection::vec(1..20_usize, 1..40), bodyless: bool) {
            let whole = decode(std::iter::once(stream.as_slice()), bodyless);
            let mut rest = stream.as_slice();
            let mut pieces = Vec::new();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break }
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            let cut = decode(pieces.into_iter(), bodyless);
            prop_assert_eq!(&cut.0, &whole.0);
            // The quoted beginning of malformed bytes depends on the split; that they are malformed does not.
            prop_assert_eq!(cut.1.is_err(), whole.1.is_err());
        }
    }
}
