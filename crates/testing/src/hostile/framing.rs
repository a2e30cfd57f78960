//! Framing, and frames on wrong streams (sections 4 and 6).

use super::ViolationEnd::{Connection, Nothing, Stream};
use super::codes::{COMPRESSION, PROTOCOL, SIZE};
use super::{IDLE, OK_BLOCK, Violation, concat, data, frame, goaway, headers, list};
use weir_http2::frame::FrameKind;

pub(super) fn violations(stream: u32) -> Vec<Violation> {
    list(vec![
        ("4.2: DATA beyond the maximum", big(FrameKind::Data, stream), Connection(SIZE)),
        ("4.2: SETTINGS beyond the maximum", big(FrameKind::Settings, 0), Connection(SIZE)),
        ("4.2: an unknown frame beyond the maximum", big(FrameKind::Unknown(99), stream), Connection(SIZE)),
        ("4.1: an unknown frame", frame(FrameKind::Unknown(99), 0xff, 7, b"whatever"), Nothing),
        ("4.1: flags without meaning", frame(FrameKind::Ping, 0xfe, 0, &[0; 8]), Nothing),
        (
            "4.3: a block interrupted by a frame of the stream",
            concat(&[frame(FrameKind::Headers, 0, stream, OK_BLOCK), data(stream, 0, b"x")]),
            Connection(PROTOCOL),
        ),
        (
            "4.3: a block interrupted by an unknown frame",
            concat(&[frame(FrameKind::Headers, 0, stream, OK_BLOCK), frame(FrameKind::Unknown(99), 0, stream, b"")]),
            Connection(PROTOCOL),
        ),
        (
            "4.3: a block continued on another stream",
            concat(&[
                frame(FrameKind::Headers, 0, stream, OK_BLOCK),
                frame(FrameKind::Continuation, 4, stream + 2, b""),
            ]),
            Connection(PROTOCOL),
        ),
        (
            "6.10: CONTINUATION without HEADERS",
            frame(FrameKind::Continuation, 4, stream, OK_BLOCK),
            Connection(PROTOCOL),
        ),
        (
            "6.10: CONTINUATION behind a whole block",
            concat(&[headers(stream, 0, OK_BLOCK), frame(FrameKind::Continuation, 4, stream, b"")]),
            Connection(PROTOCOL),
        ),
        (
            "4.3: a block in three frames",
            concat(&[
                frame(FrameKind::Headers, 1, stream, b""),
                frame(FrameKind::Continuation, 0, stream, OK_BLOCK),
                frame(FrameKind::Continuation, 4, stream, b""),
            ]),
            Nothing,
        ),
        ("4.3: a block that does not decode", headers(stream, 0, &[0xff]), Connection(COMPRESSION)),
        ("6.1: DATA on stream 0", data(0, 0, b"x"), Connection(PROTOCOL)),
        ("6.2: HEADERS on stream 0", headers(0, 0, OK_BLOCK), Connection(PROTOCOL)),
        ("6.3: PRIORITY on stream 0", frame(FrameKind::Priority, 0, 0, &[0; 5]), Connection(PROTOCOL)),
        ("6.3: PRIORITY of a wrong length", frame(FrameKind::Priority, 0, stream, &[0; 4]), Stream(SIZE)),
        ("6.3: PRIORITY", frame(FrameKind::Priority, 0, stream, &[0; 5]), Nothing),
        ("6.3: PRIORITY of an idle stream", frame(FrameKind::Priority, 0, 99, &[0; 5]), Nothing),
        ("6.4: RST_STREAM on stream 0", frame(FrameKind::RstStream, 0, 0, &[0; 4]), Connection(PROTOCOL)),
        ("6.4: RST_STREAM of an idle stream", frame(FrameKind::RstStream, 0, IDLE, &[0; 4]), Connection(PROTOCOL)),
        ("6.4: RST_STREAM of a wrong length", frame(FrameKind::RstStream, 0, stream, &[0; 3]), Connection(SIZE)),
        ("6.6: PUSH_PROMISE", frame(FrameKind::PushPromise, 4, stream, &[0, 0, 0, 2, 0x82]), Connection(PROTOCOL)),
        ("6.7: PING on a stream", frame(FrameKind::Ping, 0, stream, &[0; 8]), Connection(PROTOCOL)),
        ("6.7: PING of a wrong length", frame(FrameKind::Ping, 0, 0, &[0; 7]), Connection(SIZE)),
        ("6.7: an acknowledgement of no PING", frame(FrameKind::Ping, 1, 0, &[0; 8]), Nothing),
        ("6.8: GOAWAY on a stream", frame(FrameKind::GoAway, 0, stream, &[0; 8]), Connection(PROTOCOL)),
        ("6.8: GOAWAY that is too short", frame(FrameKind::GoAway, 0, 0, &[0; 7]), Connection(SIZE)),
        ("6.8: GOAWAY with data", frame(FrameKind::GoAway, 0, 0, b"\0\0\0\x05\0\0\0\0bye"), Nothing),
        ("6.8: GOAWAY twice", concat(&[goaway(0x7fff_ffff, 0), goaway(stream + 4, 0)]), Nothing),
        ("6.8: GOAWAY that takes back", concat(&[goaway(stream + 2, 0), goaway(stream + 4, 0)]), Connection(PROTOCOL)),
    ])
}

fn big(kind: FrameKind, stream: u32) -> Vec<u8> {
    frame(kind, 0, stream, &vec![0; 16_385])
}
