//! Frames (RFC 9113 sections 4 and 6): header, types, flags, and the short ones whole.

mod header;
mod settings;

pub use header::{FrameFlags, FrameHeader, FrameKind};
pub use settings::{SettingId, SettingsPayload};

use crate::error_code::ErrorCode;

/// First bytes from a client (RFC 9113 section 3.4).
pub const CLIENT_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Largest payload that every peer accepts, in bytes; also the smallest maximum that one may set.
pub const MIN_MAX_FRAME_BYTES: u32 = 1 << 14;

/// Largest payload that can be agreed on, in bytes.
pub const MAX_MAX_FRAME_BYTES: u32 = (1 << 24) - 1;

/// Largest window, and largest stream id.
pub const MAX_31_BITS: u32 = (1 << 31) - 1;

/// Appends WINDOW_UPDATE; stream 0 is the connection.
pub fn write_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    FrameHeader::new(FrameKind::WindowUpdate, FrameFlags::NONE, stream, 4).write(out);
    out.extend_from_slice(&(increment & MAX_31_BITS).to_be_bytes());
}

/// Appends RST_STREAM.
pub fn write_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    FrameHeader::new(FrameKind::RstStream, FrameFlags::NONE, stream, 4).write(out);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends PING, or its acknowledgement.
pub fn write_ping(out: &mut Vec<u8>, payload: [u8; 8], flags: FrameFlags) {
    FrameHeader::new(FrameKind::Ping, flags, 0, 8).write(out);
    out.extend_from_slice(&payload);
}

/// Appends GOAWAY without debug data.
pub fn write_goaway(out: &mut Vec<u8>, last_stream: u32, code: ErrorCode) {
    FrameHeader::new(FrameKind::GoAway, FrameFlags::NONE, 0, 8).write(out);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// The 32 bits at `at`; 0 where the payload is shorter, which its caller has excluded.
pub(crate) fn u32_at(payload: &[u8], at: usize) -> u32 {
    payload.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |four| u32::from_be_bytes(*four))
}
