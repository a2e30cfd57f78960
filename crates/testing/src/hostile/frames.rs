//! Frames of a server, as they are and not as they should be.

use weir_http2::frame::{FrameFlags, FrameHeader, FrameKind, SettingId, SettingsPayload};

/// Block of one field, `:status: 200` by the static table.
pub const OK_BLOCK: &[u8] = &[0x88];

/// A frame with these flags.
pub fn frame(kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = FrameHeader::new(kind, FrameFlags(flags), stream, payload.len() as u32).encode().to_vec();
    bytes.extend_from_slice(payload);
    bytes
}

/// SETTINGS with these entries.
pub fn settings(entries: &[(SettingId, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    entries.iter().for_each(|(id, value)| SettingsPayload::push(&mut payload, *id, *value));
    frame(FrameKind::Settings, 0, 0, &payload)
}

/// HEADERS with a whole block; flags: 1 ends the stream.
pub fn headers(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    frame(FrameKind::Headers, 4 | flags, stream, block)
}

/// DATA; flags: 1 ends the stream.
pub fn data(stream: u32, flags: u8, content: &[u8]) -> Vec<u8> {
    frame(FrameKind::Data, flags, stream, content)
}

/// WINDOW_UPDATE; stream 0 is the connection.
pub fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(FrameKind::WindowUpdate, 0, stream, &increment.to_be_bytes())
}

/// GOAWAY without data.
pub fn goaway(last_stream: u32, code: u32) -> Vec<u8> {
    frame(FrameKind::GoAway, 0, 0, &[last_stream.to_be_bytes(), code.to_be_bytes()].concat())
}

/// A block of literals without Huffman codes and without the table; texts are cut at 126 bytes.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            // Seven bits of a number of one byte.
            let text = &text[..text.len().min(126)];
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}
