//! Settings, windows, padding, and states of streams (sections 5 and 6).

use super::ViolationEnd::{Connection, Nothing, Stream};
use super::codes::{CLOSED, FLOW, PROTOCOL, SIZE};
use super::{IDLE, OK_BLOCK, Violation, concat, data, frame, headers, list, settings, window_update};
use weir_http2::frame::{FrameKind, SettingId};

pub(super) fn violations(stream: u32) -> Vec<Violation> {
    [of_settings(stream), of_padding(stream), of_streams(stream)].concat()
}

fn of_settings(stream: u32) -> Vec<Violation> {
    let one = |id, value| settings(&[(id, value)]);

    list(vec![
        ("6.5: SETTINGS on a stream", frame(FrameKind::Settings, 0, stream, b""), Connection(PROTOCOL)),
        ("6.5: SETTINGS of a wrong length", frame(FrameKind::Settings, 0, 0, &[0; 5]), Connection(SIZE)),
        ("6.5: an acknowledgement with a payload", frame(FrameKind::Settings, 1, 0, &[0; 6]), Connection(SIZE)),
        ("6.5: an acknowledgement too many", frame(FrameKind::Settings, 1, 0, b""), Connection(PROTOCOL)),
        ("6.5.2: push", one(SettingId::ENABLE_PUSH, 1), Connection(PROTOCOL)),
        ("6.5.2: push of 2", one(SettingId::ENABLE_PUSH, 2), Connection(PROTOCOL)),
        ("6.5.2: no push", one(SettingId::ENABLE_PUSH, 0), Nothing),
        ("6.5.2: a window too large", one(SettingId::INITIAL_WINDOW_SIZE, 1 << 31), Connection(FLOW)),
        ("6.5.2: a frame too small", one(SettingId::MAX_FRAME_SIZE, 16_383), Connection(PROTOCOL)),
        ("6.5.2: a frame too large", one(SettingId::MAX_FRAME_SIZE, 1 << 24), Connection(PROTOCOL)),
        ("6.5.2: an unknown setting", one(SettingId(77), 1 << 31), Nothing),
        ("6.9: WINDOW_UPDATE of a wrong length", frame(FrameKind::WindowUpdate, 0, stream, &[0; 3]), Connection(SIZE)),
        ("6.9: nothing for a stream", window_update(stream, 0), Stream(PROTOCOL)),
        ("6.9: nothing for the connection", window_update(0, 0), Connection(PROTOCOL)),
        ("6.9: an idle stream", window_update(IDLE, 1), Connection(PROTOCOL)),
        ("6.9.1: a stream's window overflows", window_update(stream, 0x7fff_ffff), Stream(FLOW)),
        ("6.9.1: the connection's window overflows", window_update(0, 0x7fff_ffff), Connection(FLOW)),
        (
            "6.9.2: a setting makes a stream's window overflow",
            concat(&[window_update(stream, 0x7fff_0000), one(SettingId::INITIAL_WINDOW_SIZE, 0x7fff_0000)]),
            Connection(FLOW),
        ),
    ])
}

fn of_padding(stream: u32) -> Vec<Violation> {
    list(vec![
        ("6.1: padding of the whole frame", frame(FrameKind::Data, 8, stream, &[1, 0]), Stream(PROTOCOL)),
        ("6.1: padding longer than the frame", frame(FrameKind::Data, 8, stream, &[2, 0]), Connection(PROTOCOL)),
        ("6.1: no length of the padding", frame(FrameKind::Data, 8, stream, &[]), Connection(SIZE)),
        ("6.2: padding longer than HEADERS", frame(FrameKind::Headers, 12, stream, &[2, 0x88]), Connection(PROTOCOL)),
        ("6.2: padding of HEADERS", frame(FrameKind::Headers, 13, stream, &[2, 0x88, 0, 0]), Nothing),
        ("6.2: no length of the padding of HEADERS", frame(FrameKind::Headers, 12, stream, &[]), Connection(SIZE)),
        ("6.2: priority that is too short", frame(FrameKind::Headers, 0x24, stream, &[0; 4]), Connection(SIZE)),
        ("6.2: priority", frame(FrameKind::Headers, 0x25, stream, &[0, 0, 0, 0, 9, 0x88]), Nothing),
    ])
}

fn of_streams(stream: u32) -> Vec<Violation> {
    let ended = || headers(stream, 1, OK_BLOCK);

    list(vec![
        ("an idle stream: HEADERS", headers(IDLE, 0, OK_BLOCK), Connection(PROTOCOL)),
        ("an idle stream: DATA", data(IDLE, 0, b"x"), Connection(PROTOCOL)),
        ("a stream of the server", headers(2, 0, OK_BLOCK), Connection(PROTOCOL)),
        ("an ended stream: HEADERS", concat(&[ended(), headers(stream, 1, OK_BLOCK)]), Connection(CLOSED)),
        ("an ended stream: DATA", concat(&[ended(), data(stream, 1, b"x")]), Connection(CLOSED)),
        ("an ended stream: WINDOW_UPDATE", concat(&[ended(), window_update(stream, 9)]), Nothing),
        ("an ended stream: RST_STREAM", concat(&[ended(), frame(FrameKind::RstStream, 0, stream, &[0; 4])]), Nothing),
        ("an ended stream: PRIORITY", concat(&[ended(), frame(FrameKind::Priority, 0, stream, &[0; 5])]), Nothing),
        (
            "a stream reset by the peer: DATA",
            concat(&[frame(FrameKind::RstStream, 0, stream, &[0; 4]), data(stream, 0, b"x")]),
            Connection(CLOSED),
        ),
        (
            "a stream reset by the client: any",
            concat(&[
                data(stream, 0, b"x"),
                headers(stream, 0, OK_BLOCK),
                data(stream, 1, b"x"),
                window_update(stream, 0),
            ]),
            Stream(PROTOCOL),
        ),
    ])
}
