//! HTTP/2 with prior knowledge: the least of it that answers requests without bodies.
//!
//! Blocks of requests are not decoded, so no table has to be kept, and every request is the same to this server. Windows
//! are not looked at: its answers are so small that no client runs out of one that gives credit at all.

use weir_http2::frame::{CLIENT_PREFACE, FrameFlags, FrameHeader, FrameKind, SettingId, SettingsPayload};

use crate::connection::Arrival;
use crate::server::BODY;

pub const PREFACE: &[u8] = CLIENT_PREFACE;

const STREAMS: u32 = 10_000;

/// `:status: 200`; `content-type: text/plain` and `content-length: 38` as literals with names of the static table.
const BLOCK: &[u8] = b"\x88\x0f\x10\x0atext/plain\x0f\x0d\x0238";

/// The server's settings.
pub fn greeting() -> Vec<u8> {
    let mut payload = Vec::new();
    SettingsPayload::push(&mut payload, SettingId::MAX_CONCURRENT_STREAMS, STREAMS);
    frame(FrameKind::Settings, FrameFlags::NONE, 0, &payload)
}

/// The response on a stream.
pub fn answer(stream: u32) -> Vec<u8> {
    let mut answer = frame(FrameKind::Headers, FrameFlags::END_HEADERS, stream, BLOCK);
    answer.extend(frame(FrameKind::Data, FrameFlags::END_STREAM, stream, BODY));
    answer
}

/// Hands out every whole frame that matters and returns how many bytes all whole ones were.
pub fn split(bytes: &[u8], each: &mut impl FnMut(Arrival<'_>)) -> usize {
    let mut used = 0;
    while let Some((header, behind)) = bytes[used..].split_first_chunk() {
        let header = FrameHeader::decode(header);
        let Some(payload) = behind.get(..header.length as usize) else { break };
        used += FrameHeader::LENGTH + payload.len();
        match header.kind {
            FrameKind::Headers => each(Arrival::Stream(header.stream)),
            FrameKind::Settings | FrameKind::Ping if !header.flags.has(FrameFlags::ACK) => {
                // SETTINGS are acknowledged without their entries, PING with what it has.
                let payload = if header.kind == FrameKind::Ping { payload } else { &[] };
                each(Arrival::Reply(frame(header.kind, FrameFlags::ACK, 0, payload)));
            }
            _ => {}
        }
    }
    used
}

fn frame(kind: FrameKind, flags: FrameFlags, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = FrameHeader::new(kind, flags, stream, payload.len() as u32).encode().to_vec();
    bytes.extend_from_slice(payload);
    bytes
}
