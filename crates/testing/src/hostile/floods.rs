//! Floods: what is permitted once, and an attack a thousand times (section 10.5).

use super::ViolationEnd::Connection;
use super::codes::CALM;
use super::{OK_BLOCK, Violation, block, concat, data, frame, goaway, headers, list, settings, window_update};
use weir_http2::frame::{FrameKind, SettingId};

pub(super) fn violations(stream: u32) -> Vec<Violation> {
    let repeated = |frame: Vec<u8>| frame.repeat(20_000);
    let mut endless = frame(FrameKind::Headers, 0, stream, OK_BLOCK);
    endless.extend(frame(FrameKind::Continuation, 0, stream, b"").repeat(100));
    let mut long = frame(FrameKind::Headers, 0, stream, OK_BLOCK);
    long.extend(frame(FrameKind::Continuation, 0, stream, &[0x88; 16_384]).repeat(9));

    list(vec![
        ("CONTINUATION without end", endless, Connection(CALM)),
        ("a block without end", long, Connection(CALM)),
        ("PING", repeated(frame(FrameKind::Ping, 0, 0, &[0; 8])), Connection(CALM)),
        ("SETTINGS", repeated(settings(&[])), Connection(CALM)),
        ("large SETTINGS", settings(&[(SettingId::INITIAL_WINDOW_SIZE, 9); 2_000]).repeat(6), Connection(CALM)),
        ("WINDOW_UPDATE", repeated(window_update(stream, 1)), Connection(CALM)),
        ("PRIORITY", repeated(frame(FrameKind::Priority, 0, stream, &[0; 5])), Connection(CALM)),
        ("unknown frames", repeated(frame(FrameKind::Unknown(99), 0, 0, b"")), Connection(CALM)),
        ("empty DATA", concat(&[headers(stream, 0, OK_BLOCK), repeated(data(stream, 0, b""))]), Connection(CALM)),
        ("interim heads", repeated(headers(stream, 0, &block(&[(":status", "100")]))), Connection(CALM)),
        ("resets of a closed stream", repeated(frame(FrameKind::RstStream, 0, stream, &[0; 4])), Connection(CALM)),
        ("GOAWAY", repeated(goaway(stream + 6, 0)), Connection(CALM)),
    ])
}
