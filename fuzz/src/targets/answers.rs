//! Decoder of responses: the same result however the bytes are cut, within the memory of one head.
//!
//! Input: a byte of options, then sizes of pieces, then the stream. Options: bit 0: the responses are to HEAD requests;
//! bits 1 to 3: number of sizes; bits 4 to 6: repetitions of the stream, so that a short input can be a long stream; bit
//! 7: the stream is a recipe (see [`cook`]), since random bytes hardly ever make a chunk whose size is that of its data.

use std::iter;

use weir_net::wire::{DecodedResponse, Decoder, HeadCache};

use crate::allocation::live_bytes;
use crate::stream_pieces::pieces;

/// Maximum head of the decoder.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Maximum memory of a decoder between responses and within bodies: the cached head, and the beginning of the next one.
const MAX_IDLE_BYTES: usize = 8 * 1024;

/// Responses of a stream, and whether it ended without an error.
type Decoded = (Vec<DecodedResponse>, bool);

/// Feeds the pieces one by one; with `skip`, bodies of known length are skipped, as in the load loop.
fn decode<'a>(pieces: impl Iterator<Item = &'a [u8]>, bodyless: bool, skip: bool) -> Decoded {
    let before = live_bytes();
    let (mut decoder, mut cache, mut responses) = (Decoder::default(), HeadCache::default(), Vec::new());
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            let skipped = if skip { decoder.remaining_body().min(rest.len() as u64) as usize } else { 0 };
            if skipped > 0 {
                responses.extend(decoder.skip(skipped as u64));
                rest = &rest[skipped..];
                continue;
            }
            let Ok(step) = decoder.push(rest, bodyless, &mut cache) else { return (responses, false) };
            assert!(step.used <= rest.len(), "used {} of {}", step.used, rest.len());
            assert!(step.used > 0, "no progress");
            responses.extend(step.response);
            rest = &rest[step.used..];
            let own = responses.capacity() * size_of::<DecodedResponse>();
            let held = live_bytes() - before - own as i64;
            let idle = step.response.is_some() || decoder.remaining_body() > 0;
            let max = if idle { MAX_IDLE_BYTES } else { 2 * (MAX_HEAD_BYTES + piece.len()) + MAX_IDLE_BYTES };
            assert!(held <= max as i64, "{held} bytes held");
        }
    }
    match decoder.close() {
        Ok(last) => {
            responses.extend(last);
            (responses, true)
        }
        Err(_) => (responses, false),
    }
}

const PARTS: [&str; 22] = [
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.0 404 Not Found\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 101 Switching\r\n",
    "HTTP/1.1 204 None\r\n",
    "HTTP/1.1 304 Same\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\nContent-Length: 3\r\n",
    "Connection: close\r\n",
    "Connection: keep-alive\r\n",
    "Folded: a\r\n b\r\n",
    "Odd : v\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "\r\n",
    "\r\n",
    "\n",
    "\r",
    "0\r\n\r\n",
    "0;last\r\nTrailer: t\r\n\r\n",
    "00\n\n",
    ";x=\"y\"\r\n",
    "\0",
];

/// A stream from pairs of bytes: the first chooses a part, the second how long it is, if it has a length.
fn cook(recipe: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    for pair in recipe.chunks_exact(2) {
        let (part, length) = (usize::from(pair[0] & 31), usize::from(pair[1]));
        let data = "x".repeat(length);
        let text = match PARTS.get(part) {
            Some(text) => (*text).to_owned(),
            None => match part - PARTS.len() {
                0 | 1 => format!("{length:x}\r\n{data}\r\n"),
                2 => format!("0{length:X} ;e=1\n{data}\n"),
                3 => format!("Content-Length: {length}\r\n\r\n{data}"),
                4 => format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{data}"),
                5 => format!("Content-Length: {length}\r\n"),
                6 => format!("Long: {data}\r\n"),
                _ => data,
            },
        };
        stream.extend_from_slice(text.as_bytes());
    }
    stream
}

crate::target!(|data: &[u8]| {
    let Some((&options, rest)) = data.split_first() else { return };
    let bodyless = options & 1 == 1;
    let Some((sizes, stream)) = rest.split_at_checked(1 + usize::from(options >> 1 & 7)) else { return };
    let stream = if options >> 7 == 1 { cook(stream) } else { stream.to_vec() };
    let stream = stream.repeat([1, 1, 1, 1, 1, 2, 5, 40][usize::from(options >> 4 & 7)]);

    let whole = decode(iter::once(stream.as_slice()), bodyless, false);
    let (responses, ended_well) = &whole;
    let wire: u64 = responses.iter().map(|response| response.wire).sum();
    assert!(wire <= stream.len() as u64, "{wire} bytes counted of {}", stream.len());
    assert!(!ended_well || wire == stream.len() as u64, "a whole stream of {} bytes counts {wire}", stream.len());
    for response in responses {
        assert!((100..1000).contains(&response.status) && response.body < response.wire, "{response:?}");
        assert!(!bodyless || response.body == 0, "{response:?}");
    }
    assert_eq!(decode(pieces(&stream, sizes), bodyless, false), whole, "cut");
    assert_eq!(decode(pieces(&stream, sizes), bodyless, true), whole, "cut, bodies skipped");
    // A long one byte by byte would take too long.
    assert_eq!(decode(stream.chunks(1 + stream.len() / 8192 * 60), bodyless, false), whole, "byte by byte");
});
