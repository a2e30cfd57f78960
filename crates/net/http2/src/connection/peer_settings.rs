//! Settings that the peer has announced.

use crate::flow::DEFAULT_WINDOW_BYTES;
use crate::frame::MIN_MAX_FRAME_BYTES;
use crate::hpack::DEFAULT_TABLE_BYTES;

/// Streams that may be opened before the peer's settings, which rarely permit fewer (RFC 9113 section 6.5.2 recommends
/// at least as many).
const MAX_STREAMS_BEFORE_SETTINGS: u32 = 100;

/// Limits of the peer from its SETTINGS frames; defaults before the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    /// Whether they have been received; before, these are defaults.
    pub is_received: bool,
    /// Maximum size of its table for decoding requests, in bytes.
    pub header_table_bytes: u32,
    /// Maximum number of open streams; `u32::MAX` without a limit.
    pub max_streams: u32,
    /// Initial window of streams, in bytes.
    pub stream_window_bytes: u32,
    /// Maximum payload of a frame, in bytes.
    pub max_frame_bytes: u32,
    /// Maximum size of a request's fields, in bytes, as advised. A larger request is sent nevertheless: how the service
    /// rejects it is what a load measures.
    pub max_fields_bytes: Option<u32>,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            is_received: false,
            header_table_bytes: DEFAULT_TABLE_BYTES as u32,
            max_streams: MAX_STREAMS_BEFORE_SETTINGS,
            stream_window_bytes: DEFAULT_WINDOW_BYTES,
            max_frame_bytes: MIN_MAX_FRAME_BYTES,
            max_fields_bytes: None,
        }
    }
}
