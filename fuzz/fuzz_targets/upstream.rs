//! Answers of upstreams with their headers, bodies and trailers: the same however the bytes are cut; headers that can be
//! written again; and where one is accepted, it ends where `load` sees its end.
//!
//! Input: a byte of options, then sizes of pieces, then the stream. Options: bit 0 says that the answer is to a HEAD
//! request, bit 1 that another protocol was asked for; bits 2 to 4 how many sizes follow.
#![no_main]

use std::iter;

use libfuzzer_sys::fuzz_target;
use weir::http::client::answer::{Asked, Heads};
use weir::http::wire::{Decoder, HeadCache};

#[derive(Debug, PartialEq)]
struct Read {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    trailers: Option<Vec<(String, Vec<u8>)>>,
    keep_alive: bool,
    /// Bytes that belong to it.
    used: usize,
}

fn listed(headers: &http::HeaderMap) -> Vec<(String, Vec<u8>)> {
    let pair = |(name, value): (&http::HeaderName, &http::HeaderValue)| (name.to_string(), value.as_bytes().to_vec());
    headers.iter().map(pair).collect()
}

/// One answer from pieces, after which the connection is closed; None if it is none.
fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>, asked: Asked) -> Option<Read> {
    let mut heads = Heads::new(asked);
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
        let left = head.body.left();
        let brought = head.body.push(rest).ok()?;
        assert!(brought.used <= rest.len() && brought.data.len() <= brought.used, "{brought:?}");
        assert!(left.is_none_or(|left| brought.data.len() as u64 <= left), "{left:?}: {brought:?}");
        body.extend_from_slice(&brought.data);
        used += brought.used;
        if brought.trailers.is_some() {
            assert!(trailers.is_none() && head.body.is_ended());
            trailers = brought.trailers.as_ref().map(listed);
        }
    }
    let mut head = head?;
    head.body.close().ok()?;
    let status = head.status.as_u16();
    Some(Read { status, headers: listed(&head.headers), body, trailers, keep_alive: head.keep_alive, used })
}

/// Cuts the stream into pieces of these sizes, over and over.
fn pieces<'a>(stream: &'a [u8], sizes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = stream;
    let mut sizes = sizes.iter().cycle();
    iter::from_fn(move || {
        let size = usize::from(*sizes.next()?).max(1).min(rest.len());
        let (piece, after) = rest.split_at(size);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

fuzz_target!(|data: &[u8]| {
    let Some((&options, rest)) = data.split_first() else { return };
    let asked = Asked { head: options & 1 == 1, upgrade: options & 2 == 2 };
    let Some((sizes, stream)) = rest.split_at_checked(1 + usize::from(options >> 2 & 7)) else { return };
    let whole = read(iter::once(stream), asked);
    assert_eq!(read(pieces(stream, sizes), asked), whole, "cut");
    assert_eq!(read(stream.chunks(1), asked), whole, "byte by byte");

    let Some(answer) = whole else { return };
    for (name, value) in answer.headers.iter().chain(answer.trailers.iter().flatten()) {
        assert!(!value.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)), "{name}: {value:?}");
    }
    assert!(!answer.headers.iter().any(|(name, _)| name == "transfer-encoding"), "{answer:?}");
    assert!(!asked.head || answer.body.is_empty(), "{answer:?}");

    // What `load` makes of it.
    let (mut decoder, mut cache) = (Decoder::default(), HeadCache::default());
    let mut found = None;
    if let Ok(step) = decoder.push(stream, asked.head, &mut cache) {
        found = step.answer.or_else(|| decoder.close().ok().flatten());
    }
    let Some(found) = found else { panic!("no answer to load: {answer:?}") };
    assert_eq!((found.status, found.body, found.wire), (answer.status, answer.body.len() as u64, answer.used as u64));
    assert!(found.keep_alive || !answer.keep_alive, "{answer:?}");
});
