//! A service that breaks the rules of HTTP/2: frames as values, and a server that sends them and checks its client.
//!
//! [`violations`] are what RFC 9113 forbids a server in sections 4 to 6, 8 and 10, each with the end that the RFC demands
//! of a client, and some things beside them that look wrong and are permitted.

mod counts;
mod floods;
mod frames;
mod framing;
mod hostile_connection;
mod hostile_server;
mod hostile_state;
mod messages;
mod options;
mod settings;

pub use counts::{HostileCounts, ViolationCounts};
pub use frames::{OK_BLOCK, block, data, frame, goaway, headers, settings, window_update};
pub use hostile_server::HostileServer;
pub use options::HostileOptions;

use weir_http2::error_code::ErrorCode;

/// Frames that break a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Section of RFC 9113, and the violation in words.
    pub name: &'static str,
    /// The frames.
    pub bytes: Vec<u8>,
    /// Required reaction of the client.
    pub end: ViolationEnd,
}

/// Part that a client has to end because of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViolationEnd {
    /// The connection, by GOAWAY with this code.
    Connection(ErrorCode),
    /// The stream alone, by RST_STREAM with this code.
    Stream(ErrorCode),
    /// Nothing: it is permitted or has to be ignored.
    Nothing,
}

/// A stream that no client has opened yet.
const IDLE: u32 = 0x7fff_fff1;

/// Names of codes in the tables.
mod codes {
    use weir_http2::error_code::ErrorCode;

    pub(super) const PROTOCOL: ErrorCode = ErrorCode::PROTOCOL_ERROR;
    pub(super) const SIZE: ErrorCode = ErrorCode::FRAME_SIZE_ERROR;
    pub(super) const FLOW: ErrorCode = ErrorCode::FLOW_CONTROL_ERROR;
    pub(super) const CLOSED: ErrorCode = ErrorCode::STREAM_CLOSED;
    pub(super) const CALM: ErrorCode = ErrorCode::ENHANCE_YOUR_CALM;
    pub(super) const COMPRESSION: ErrorCode = ErrorCode::COMPRESSION_ERROR;
}

/// All violations, in response to a request on this stream, which has no head yet; the request is whole, and the next
/// stream may be open as well. Frames are valid for a client whose windows are at most 40,000 bytes.
pub fn violations(stream: u32) -> Vec<Violation> {
    [
        framing::violations(stream),
        settings::violations(stream),
        messages::violations(stream),
        floods::violations(stream),
    ]
    .concat()
}

fn list(cases: Vec<(&'static str, Vec<u8>, ViolationEnd)>) -> Vec<Violation> {
    cases.into_iter().map(|(name, bytes, end)| Violation { name, bytes, end }).collect()
}

/// Frames one behind the other.
fn concat(frames: &[Vec<u8>]) -> Vec<u8> {
    frames.concat()
}
