//! Requests of callers: nothing panics; a request is the same however its bytes are cut, and it is framed in one way
//! only: written again from what was read, it is read in the same way, up to its last byte.
//!
//! Input: a byte with the number of sizes, the sizes of pieces, the stream.

use std::fmt::Write as _;
use std::iter;

use http::{HeaderMap, Version};
use weir_net::wire::{BodyDecoder, PassedNames};
use weir_server::{HeadError, HeadFields, HeadLimits, ParsedHead};

use crate::stream_pieces::pieces;

const LIMITS: HeadLimits = HeadLimits { bytes: 8192, fields: 80 };

#[derive(Debug, PartialEq)]
struct Read {
    head: String,
    keep_alive: bool,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
    is_complete: bool,
    /// Bytes of the request.
    used: usize,
}

/// Parses a request in pieces; None if its head is incomplete.
fn read<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Result<Option<Read>, HeadError> {
    let (mut partial, mut found, mut body, mut trailers, mut used) = (Vec::new(), None, Vec::new(), None, 0);
    for piece in pieces {
        let mut rest = piece;
        if found.is_none() {
            let before = partial.len();
            partial.extend_from_slice(piece);
            let Some((head, length)) = ParsedHead::parse(&partial, LIMITS, &mut HeadFields::default())? else { continue };
            assert!(length > before && length <= partial.len());
            (found, rest, used) = (Some(head), &piece[length - before..], length);
        }
        let Some(head) = &mut found else { continue };
        let Ok(decoded) = head.body.push(rest) else { return Err(HeadError::Malformed) };
        assert!(decoded.used <= rest.len() && decoded.data.len() <= decoded.used, "{decoded:?}");
        body.extend_from_slice(&decoded.data);
        trailers = trailers.or(decoded.trailers.map(|trailers| *trailers));
        used += decoded.used;
    }
    Ok(found.map(|head| Read {
        head: written(&head),
        keep_alive: head.keep_alive,
        body,
        trailers,
        is_complete: head.body.is_ended(),
        used,
    }))
}

/// The head as a proxy would write it.
fn written(head: &ParsedHead) -> String {
    let request = &head.request;
    let mut text = format!("{} {} {:?}\r\n", request.method(), request.uri(), request.version());
    for (name, value) in request.headers() {
        // Writing to a string does not fail.
        let _ = write!(text, "{name}: {}\r\n", value.as_bytes().iter().map(|b| char::from(*b)).collect::<String>());
    }
    text + "\r\n"
}

/// A request whose fields are passed on where they can be has the same ones.
fn check_passed(stream: &[u8]) {
    let mut fields = HeadFields { passed_names: PassedNames::unread_by("accept"), ..HeadFields::default() };
    let split = ParsedHead::parse(stream, LIMITS, &mut fields);
    let whole = ParsedHead::parse(stream, LIMITS, &mut HeadFields::default());
    let (Ok(Some((split, split_length))), Ok(Some((whole, length)))) = (&split, &whole) else {
        assert_eq!(split.is_ok(), whole.is_ok());
        return;
    };
    assert_eq!((split_length, split.keep_alive), (length, whole.keep_alive));
    assert_eq!((split.body.remaining(), split.request.uri()), (whole.body.remaining(), whole.request.uri()));
    let mut headers = split.request.headers().clone();
    fields.passed.append_to(&mut headers);
    assert_eq!(&headers, whole.request.headers());
}

crate::target!(|data: &[u8]| {
    let Some((&options, rest)) = data.split_first() else { return };
    let Some((sizes, stream)) = rest.split_at_checked(1 + usize::from(options & 7)) else { return };
    // A head may be too large and malformed, too; which of the two shows first depends on the pieces.
    let whole = read(iter::once(stream)).ok();
    assert_eq!(read(pieces(stream, sizes)).ok(), whole, "cut");
    assert_eq!(read(stream.chunks(1)).ok(), whole, "byte by byte");

    check_passed(stream);

    let Some(Some(request)) = whole else { return };
    assert!(request.used <= stream.len());
    let text = request.head.chars().map(|c| c as u8).collect::<Vec<u8>>();
    let Ok(Some((again, length))) = ParsedHead::parse(&text, HeadLimits { bytes: 1 << 20, ..LIMITS }, &mut HeadFields::default())
    else {
        // A target is written in a normal form, which may be longer than the limit.
        return;
    };
    assert_eq!(length, text.len());
    assert_eq!(written(&again), request.head);
    let is_chunked = again.request.headers().contains_key("transfer-encoding");
    assert!(!is_chunked || again.request.version() == Version::HTTP_11 && again.body.remaining().is_none());
    assert!(!is_chunked || !again.request.headers().contains_key("content-length"), "{}", request.head);
    let mut body: BodyDecoder = again.body;
    if !is_chunked {
        let decoded = body.push(&request.body).unwrap_or_default();
        assert_eq!((decoded.data.to_vec(), body.is_ended()), (request.body, request.is_complete));
    }
});
