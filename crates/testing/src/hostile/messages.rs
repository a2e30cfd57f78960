//! Malformed responses (section 8).

use super::ViolationEnd::{Nothing, Stream};
use super::codes::{CALM, PROTOCOL};
use super::{OK_BLOCK, Violation, block, concat, data, frame, headers, list};
use weir_http2::frame::FrameKind;

pub(super) fn violations(stream: u32) -> Vec<Violation> {
    let ok = (":status", "200");
    let head = |fields: &[(&str, &str)]| headers(stream, 1, &block(fields));
    let trailers = |flags, fields: &[(&str, &str)]| {
        concat(&[headers(stream, 0, OK_BLOCK), headers(stream, flags, &block(fields))])
    };
    let long = "x".repeat(120);
    let many: Vec<(&str, &str)> = std::iter::once(ok).chain((0..450).map(|_| ("x", long.as_str()))).collect();
    let many = block(&many);
    let (first, rest) = many.split_at(16_000);
    let mut large = frame(FrameKind::Headers, 0, stream, first);
    let mut chunks = rest.chunks(16_000).peekable();
    while let Some(chunk) = chunks.next() {
        large.extend(frame(FrameKind::Continuation, if chunks.peek().is_none() { 4 } else { 0 }, stream, chunk));
    }

    list(vec![
        ("8.1: DATA before the head", data(stream, 0, b"x"), Stream(PROTOCOL)),
        ("8.1: trailers that do not end", trailers(0, &[("x", "y")]), Stream(PROTOCOL)),
        ("8.1: trailers", trailers(1, &[("x", "y")]), Nothing),
        ("8.1: trailers with a status", trailers(1, &[ok]), Stream(PROTOCOL)),
        ("8.1: trailers with a path", trailers(1, &[(":path", "/")]), Stream(PROTOCOL)),
        ("8.1: an interim head that ends", headers(stream, 1, &block(&[(":status", "103")])), Stream(PROTOCOL)),
        ("8.6: status 101", headers(stream, 0, &block(&[(":status", "101")])), Stream(PROTOCOL)),
        (
            "8.1: interim heads",
            concat(&[
                headers(stream, 0, &block(&[(":status", "100")])),
                headers(stream, 0, &block(&[(":status", "103"), ("link", "a")])),
                head(&[ok]),
            ]),
            Nothing,
        ),
        ("8.3.2: no status", head(&[("x", "y")]), Stream(PROTOCOL)),
        ("8.3.2: an empty block", head(&[]), Stream(PROTOCOL)),
        ("8.3.2: a status of two digits", head(&[(":status", "20")]), Stream(PROTOCOL)),
        ("8.3.2: a status of letters", head(&[(":status", "2xx")]), Stream(PROTOCOL)),
        ("8.3.2: a status below 100", head(&[(":status", "099")]), Stream(PROTOCOL)),
        ("8.3: a status twice", head(&[ok, ok]), Stream(PROTOCOL)),
        ("8.3: a status behind a field", head(&[("x", "y"), ok]), Stream(PROTOCOL)),
        ("8.3: a request's field", head(&[ok, (":method", "GET")]), Stream(PROTOCOL)),
        ("8.3: an unknown pseudo-header field", head(&[ok, (":x", "y")]), Stream(PROTOCOL)),
        ("8.2.1: an upper-case name", head(&[ok, ("X", "y")]), Stream(PROTOCOL)),
        ("8.2.1: an empty name", head(&[ok, ("", "y")]), Stream(PROTOCOL)),
        ("8.2.1: a space in a name", head(&[ok, ("a b", "y")]), Stream(PROTOCOL)),
        ("8.2.1: a colon in a name", head(&[ok, ("a:b", "y")]), Stream(PROTOCOL)),
        ("8.2.1: a line end in a value", head(&[ok, ("x", "y\nz")]), Stream(PROTOCOL)),
        ("8.2.1: a carriage return in a value", head(&[ok, ("x", "y\rz")]), Stream(PROTOCOL)),
        ("8.2.1: a NUL in a value", head(&[ok, ("x", "y\0")]), Stream(PROTOCOL)),
        ("8.2.1: a blank before a value", head(&[ok, ("x", " y")]), Stream(PROTOCOL)),
        ("8.2.1: a blank behind a value", head(&[ok, ("x", "y\t")]), Stream(PROTOCOL)),
        ("8.2.2: Connection", head(&[ok, ("connection", "close")]), Stream(PROTOCOL)),
        ("8.2.2: Transfer-Encoding", head(&[ok, ("transfer-encoding", "chunked")]), Stream(PROTOCOL)),
        ("8.2.2: Keep-Alive", head(&[ok, ("keep-alive", "1")]), Stream(PROTOCOL)),
        ("8.2.2: Proxy-Connection", head(&[ok, ("proxy-connection", "x")]), Stream(PROTOCOL)),
        ("8.2.2: Upgrade", head(&[ok, ("upgrade", "x")]), Stream(PROTOCOL)),
        ("8.2.2: TE", head(&[ok, ("te", "gzip")]), Stream(PROTOCOL)),
        ("8.1.1: content-length of letters", head(&[ok, ("content-length", "x")]), Stream(PROTOCOL)),
        ("8.1.1: two lengths", head(&[ok, ("content-length", "0"), ("content-length", "1")]), Stream(PROTOCOL)),
        ("8.1.1: two equal lengths", head(&[ok, ("content-length", "0, 0")]), Nothing),
        ("8.1.1: no content where some is announced", head(&[ok, ("content-length", "1")]), Stream(PROTOCOL)),
        (
            "8.1.1: too little content",
            concat(&[headers(stream, 0, &block(&[ok, ("content-length", "3")])), data(stream, 1, b"ab")]),
            Stream(PROTOCOL),
        ),
        (
            "8.1.1: too much content",
            concat(&[
                headers(stream, 0, &block(&[ok, ("content-length", "3")])),
                data(stream, 0, b"ab"),
                data(stream, 0, b"cd"),
            ]),
            Stream(PROTOCOL),
        ),
        (
            "8.1.1: content that was not to come",
            concat(&[headers(stream, 0, &block(&[(":status", "204")])), data(stream, 1, b"ab")]),
            Stream(PROTOCOL),
        ),
        ("8.1.1: a length with 304", head(&[(":status", "304"), ("content-length", "9")]), Nothing),
        ("10.5.1: fields that are too large", large, Stream(CALM)),
    ])
}
