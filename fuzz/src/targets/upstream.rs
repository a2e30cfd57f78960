//! Responses of upstreams with headers, bodies and trailers: the same however the bytes are cut; headers are valid; an
//! accepted response ends where the decoder of `weir load` sees its end.
//!
//! Input: a byte of options, then sizes of pieces, then the stream. Options: bit 0: the response is to a HEAD request;
//! bit 1: an upgrade was requested; bits 2 to 4: number of sizes.

use std::iter;

use weir_net::client::response::{HeadParser, ResponseContext};
use weir_net::wire::{Decoder, HeadCache, PassedFields};

use crate::stream_pieces::pieces;

#[derive(Debug, PartialEq)]
struct Read {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    trailers: Option<Vec<(String, Vec<u8>)>>,
    keep_alive: bool,
    /// Bytes of the response.
    used: usize,
}

fn listed(headers: &http::HeaderMap) -> Vec<(String, Vec<u8>)> {
    let pair = |(name, value): (&http::HeaderName, &http::HeaderValue)| (name.to_string(), value.as_bytes().to_vec());
    headers.iter().map(pair).collect()
}

/// Parses a response in pieces, after which the connection is closed; `None` if it is invalid.
fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>, context: ResponseContext) -> Option<Read> {
    read_with(HeadParser::new(context), pieces)
}

/// Fields of a response that are neither of its connection nor of its framing, in the order of their names.
fn end_to_end(mut headers: Vec<(String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
    headers.retain(|(name, _)| !matches!(name.as_str(), "connection" | "keep-alive" | "content-length"));
    headers.sort_by(|one, other| one.0.cmp(&other.0));
    headers
}

fn read_with<'a>(mut heads: HeadParser, pieces: impl Iterator<Item = &'a [u8]>) -> Option<Read> {
    let (mut head, mut body, mut trailers, mut used) = (None, Vec::new(), None, 0);
    for piece in pieces {
        let mut rest = piece;
        if head.is_none() {
            match heads.push(rest).ok()? {
                Some((found, taken)) => {
                    assert!(taken <= rest.len(), "took {taken} of {}", rest.len());
                    (head, rest) = (Some(found), &rest[taken..]);
                    used += taken;
                }
                None => used += rest.len(),
            }
        }
        let Some(head) = &mut head else { continue };
        let left = head.body.remaining();
        let decoded = head.body.push(rest).ok()?;
        assert!(decoded.used <= rest.len() && decoded.data.len() <= decoded.used, "{decoded:?}");
        assert!(left.is_none_or(|left| decoded.data.len() as u64 <= left), "{left:?}: {decoded:?}");
        body.extend_from_slice(&decoded.data);
        used += decoded.used;
        if decoded.trailers.is_some() {
            assert!(trailers.is_none() && head.body.is_ended());
            trailers = decoded.trailers.as_deref().map(listed);
        }
    }
    let mut head = head?;
    head.body.close().ok()?;
    let status = head.status.as_u16();
    head.passed.append_to(&mut head.headers);
    Some(Read { status, headers: listed(&head.headers), body, trailers, keep_alive: head.keep_alive, used })
}

crate::target!(|data: &[u8]| {
    let Some((&options, rest)) = data.split_first() else { return };
    let context = ResponseContext { is_head: options & 1 == 1, upgrade: options & 2 == 2, keeps_head: options & 4 == 4 };
    let Some((sizes, stream)) = rest.split_at_checked(1 + usize::from(options >> 2 & 7)) else { return };
    let whole = read(iter::once(stream), context);
    assert_eq!(read(pieces(stream, sizes), context), whole, "cut");
    assert_eq!(read(stream.chunks(1), context), whole, "byte by byte");

    let passing = HeadParser::new(context).passing_all_but([].into(), PassedFields::default());
    let passed = read_with(passing, iter::once(stream)).map(|read| Read { headers: end_to_end(read.headers), ..read });
    let expected = whole.as_ref().map(|read| (end_to_end(read.headers.clone()), read.used, read.keep_alive));
    assert_eq!(passed.map(|read| (read.headers, read.used, read.keep_alive)), expected, "passed on");

    let Some(response) = whole else { return };
    for (name, value) in response.headers.iter().chain(response.trailers.iter().flatten()) {
        assert!(!value.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)), "{name}: {value:?}");
    }
    assert!(!response.headers.iter().any(|(name, _)| name == "transfer-encoding"), "{response:?}");
    assert!(!context.is_head || response.body.is_empty(), "{response:?}");

    // The decoder of `weir load`.
    let (mut decoder, mut cache) = (Decoder::default(), HeadCache::default());
    let mut found = None;
    if let Ok(step) = decoder.push(stream, context.is_head, &mut cache) {
        found = step.response.or_else(|| decoder.close().ok().flatten());
    }
    let Some(found) = found else { panic!("no response for load: {response:?}") };
    assert_eq!(
        (found.status, found.body, found.wire),
        (response.status, response.body.len() as u64, response.used as u64)
    );
    assert!(found.keep_alive || !response.keep_alive, "{response:?}");
});
