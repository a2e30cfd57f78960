//! Frames of WebSocket: the same messages however the bytes are cut, no message above the limit, and what is written
//! is read back as it was.
//!
//! Input: a byte of options, then the bytes of a connection. Options: bit 0: read by a server; bit 1: compression was
//! agreed on; bits 2 to 7: size of pieces less one.

use weir_websocket::deflate::Inflater;
use weir_websocket::frame::{Endpoint, Opcode};
use weir_websocket::frame_writer::FrameWriter;
use weir_websocket::message_reader::{Received, WebSocketReader};
use weir_websocket::violation::Violation;

/// Maximum length of a message, in bytes.
const MAX_BYTES: u64 = 4096;

/// What was received, in owned values: kind, content, close code.
type Owned = (u8, Vec<u8>, Option<u16>);

fn owned(received: Received<'_>) -> Owned {
    match received {
        Received::Message(message) => {
            assert!(message.data.len() as u64 <= MAX_BYTES && message.wire_bytes >= 2);
            assert!(!message.is_text || std::str::from_utf8(message.data).is_ok());
            (u8::from(message.is_text), message.data.to_vec(), None)
        }
        Received::Ping(payload) => (2, payload.to_vec(), None),
        Received::Pong(payload) => (3, payload.to_vec(), None),
        Received::Close(code, reason) => (4, reason.as_bytes().to_vec(), code.map(|code| code.0)),
    }
}

fn read(endpoint: Endpoint, compressed: bool, bytes: &[u8], size: usize) -> (Vec<Owned>, Option<Violation>) {
    let mut reader = WebSocketReader::new(endpoint, MAX_BYTES);
    if compressed {
        reader.set_inflater(Inflater::new(true));
    }
    let mut found = Vec::new();
    for piece in bytes.chunks(size.max(1)) {
        let mut rest = piece;
        loop {
            match reader.next_message(&mut rest) {
                Ok(Some(received)) => found.push(owned(received)),
                Ok(None) => break,
                Err(violation) => return (found, Some(violation)),
            }
        }
        assert!(rest.is_empty());
    }
    (found, None)
}

crate::target!(|input: &[u8]| {
    let Some((options, bytes)) = input.split_first() else { return };
    let endpoint = if options & 1 == 1 { Endpoint::Server } else { Endpoint::Client };
    let compressed = options & 2 == 2;
    let whole = read(endpoint, compressed, bytes, bytes.len());
    assert_eq!(read(endpoint, compressed, bytes, usize::from(options >> 2) + 1).0, whole.0);
    // What has been read is written by the other side, and read once more.
    let other = if options & 1 == 1 { Endpoint::Client } else { Endpoint::Server };
    let mut writer = FrameWriter::new(other, 1);
    let mut again = Vec::new();
    for (kind, data, _) in whole.0.iter().filter(|(kind, ..)| *kind < 4) {
        let opcode = [Opcode::Binary, Opcode::Text, Opcode::Ping, Opcode::Pong][usize::from(*kind)];
        writer.write(opcode, data, &mut again);
    }
    let expected: Vec<Owned> = whole.0.into_iter().filter(|(kind, ..)| *kind < 4).collect();
    assert_eq!(read(endpoint, false, &again, again.len()), (expected, None));
});
