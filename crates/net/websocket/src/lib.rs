//! WebSocket (RFC 6455) with permessage-deflate (RFC 7692) without sockets: bytes in, messages out, for client and server.
//!
//! - [`handshake`]: key and accept value, request and response of the upgrade
//! - [`frame`]: heads of frames, and masks; [`frame_writer`]: frames as bytes
//! - [`message_reader`]: received bytes to messages and control frames, with the rules that a peer may break
//! - [`close_code`]: reasons of a close; [`close_handshake`]: state of a close
//! - [`deflate`]: negotiation of compression, compressor and decompressor
//! - [`violation`]: what a peer has done wrong
//!
//! ```
//! use weir_websocket::frame::{Endpoint, Opcode};
//! use weir_websocket::frame_writer::FrameWriter;
//! use weir_websocket::message_reader::{WebSocketReader, Received};
//!
//! let mut bytes = Vec::new();
//! FrameWriter::new(Endpoint::Client, 1).write(Opcode::Text, b"hello", &mut bytes);
//! let mut reader = WebSocketReader::new(Endpoint::Server, 1 << 20);
//! let mut rest = bytes.as_slice();
//! let received = reader.next_message(&mut rest)?;
//! assert!(matches!(received, Some(Received::Message(message)) if message.data == b"hello"));
//! # Ok::<(), weir_websocket::violation::Violation>(())
//! ```

pub mod close_code;
pub mod close_handshake;
pub mod deflate;
pub mod frame;
pub mod frame_writer;
pub mod handshake;
pub mod message_reader;
pub mod violation;
