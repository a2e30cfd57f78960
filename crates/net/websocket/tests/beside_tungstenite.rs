//! The same bytes, read by tungstenite: messages and ends are the same.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed precondition fails the test")]

use std::io::{self, Read, Write};

use proptest::prelude::*;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Message, WebSocket};
use weir_websocket::frame::{Endpoint, Opcode};
use weir_websocket::frame_writer::FrameWriter;
use weir_websocket::message_reader::{Received, WebSocketReader};

/// A stream that has these bytes, and takes all that is written.
struct Replay<'b>(&'b [u8]);

impl Read for Replay<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Replay<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const MAX_BYTES: usize = 1 << 20;

/// Messages in words, and whether the bytes are valid.
fn by_tungstenite(input: &[u8]) -> (Vec<String>, bool) {
    let config = WebSocketConfig::default().max_message_size(Some(MAX_BYTES)).max_frame_size(Some(MAX_BYTES));
    let mut socket = WebSocket::from_raw_socket(Replay(input), Role::Client, Some(config));
    let mut found = Vec::new();
    loop {
        match socket.read() {
            Ok(Message::Text(text)) => found.push(format!("text {text}")),
            Ok(Message::Binary(data)) => found.push(format!("binary {:?}", data.to_vec())),
            Ok(Message::Ping(data)) => found.push(format!("ping {:?}", data.to_vec())),
            Ok(Message::Pong(data)) => found.push(format!("pong {:?}", data.to_vec())),
            // How it reads an invalid code.
            Ok(Message::Close(Some(close))) if close.reason == "Protocol violation" => return (found, false),
            Ok(Message::Close(close)) => {
                let code = close.as_ref().map(|close| u16::from(close.code));
                found.push(format!(
                    "close {code:?} {}",
                    close.map(|close| close.reason.to_string()).unwrap_or_default()
                ));
                return (found, true);
            }
            Ok(Message::Frame(_)) => unreachable!("frames are not asked for"),
            // The end of the input.
            Err(tungstenite::Error::Io(_)) => return (found, true),
            Err(tungstenite::Error::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake)) => {
                return (found, true);
            }
            Err(_) => return (found, false),
        }
    }
}

fn by_weir(input: &[u8]) -> (Vec<String>, bool) {
    let mut reader = WebSocketReader::new(Endpoint::Client, MAX_BYTES as u64);
    let (mut found, mut rest) = (Vec::new(), input);
    loop {
        match reader.next_message(&mut rest) {
            Ok(None) => return (found, true),
            Ok(Some(Received::Message(message))) if message.is_text => {
                found.push(format!("text {}", std::str::from_utf8(message.data).unwrap()));
            }
            Ok(Some(Received::Message(message))) => found.push(format!("binary {:?}", message.data)),
            Ok(Some(Received::Ping(data))) => found.push(format!("ping {:?}", data.to_vec())),
            Ok(Some(Received::Pong(data))) => found.push(format!("pong {:?}", data.to_vec())),
            Ok(Some(Received::Close(code, reason))) => {
                found.push(format!("close {:?} {reason}", code.map(|code| code.0)));
                return (found, true);
            }
            Err(_) => return (found, false),
        }
    }
}

fn frames() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        4 => "[a-zäöü€😀]{0,60}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..60),
        1 => (120..140usize).prop_map(|length| vec![b'y'; length]),
        1 => (65_530..65_540usize).prop_map(|length| vec![b'z'; length]),
    ];
    let opcode = prop::sample::select(vec![Opcode::Text, Opcode::Binary, Opcode::Ping, Opcode::Pong, Opcode::Close]);
    // Cuts of a payload, so that characters are cut as well.
    let cuts = prop::collection::vec(0..80usize, 0..3);
    prop::collection::vec((opcode, payload, cuts, 0..60u8), 0..8).prop_map(|messages| {
        let mut bytes = Vec::new();
        let mut writer = FrameWriter::new(Endpoint::Server, 1);
        for (opcode, mut payload, mut cuts, mistake) in messages {
            let start = bytes.len();
            if opcode.is_control() {
                payload.truncate(125);
                writer.write(opcode, &payload, &mut bytes);
            } else {
                cuts.retain(|cut| *cut < payload.len());
                cuts.sort_unstable();
                let mut from = 0;
                for (nth, to) in cuts.iter().copied().chain([payload.len()]).enumerate() {
                    let kind = if nth == 0 { opcode } else { Opcode::Continuation };
                    writer.write_fragment(kind, &payload[from..to], (to == payload.len(), false), &mut bytes);
                    if nth == 0 && !cuts.is_empty() {
                        writer.write(Opcode::Ping, b"between", &mut bytes);
                    }
                    from = to;
                }
            }
            match mistake {
                0 => bytes[start] ^= 0x20,
                1 => bytes[start] ^= 0x07,
                2 => bytes[start] ^= 0x80,
                _ => {}
            }
        }
        bytes
    })
}

proptest! {
    #[test]
    fn both_read_the_same(input in frames()) {
        let (ours, theirs) = (by_weir(&input), by_tungstenite(&input));
        prop_assert_eq!(ours, theirs);
    }
}
