//! Settings that a client announces to the peer.

use crate::flow::DEFAULT_WINDOW_BYTES;
use crate::frame::MAX_31_BITS;
use crate::hpack::{DEFAULT_TABLE_BYTES, IndexingPolicy};

/// Settings of a connection. The windows are those of Chromium, so that a service sends as fast as to a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// Whether the scheme of requests is https.
    pub is_tls: bool,
    /// Maximum number of open streams, whatever more the peer permits.
    pub max_streams: u32,
    /// Window of each stream, in bytes, 1 to 2^31 - 1.
    pub stream_window_bytes: u32,
    /// Window of the connection, in bytes, 65,535 to 2^31 - 1.
    pub connection_window_bytes: u32,
    /// Maximum size of the table for decoding responses, in bytes, at most 1 MiB.
    pub header_table_bytes: u32,
    /// Maximum size of a response's fields, in bytes, with 32 for each, at most 1 MiB.
    pub max_fields_bytes: u32,
    /// Whether trailers are wanted as text.
    pub wants_trailers: bool,
    /// Request fields to insert into the peer's table.
    pub indexing: IndexingPolicy,
}

/// Maximum of sizes that the peer can make the client allocate, in bytes.
const MAX_ALLOCATED_BYTES: u32 = 1 << 20;

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            is_tls: false,
            max_streams: 100,
            stream_window_bytes: 6 << 20,
            connection_window_bytes: 15 << 20,
            header_table_bytes: DEFAULT_TABLE_BYTES as u32,
            max_fields_bytes: 64 << 10,
            wants_trailers: false,
            indexing: IndexingPolicy::default(),
        }
    }
}

impl ClientSettings {
    /// Settings clamped to their ranges.
    pub(super) fn bounded(&self) -> Self {
        Self {
            stream_window_bytes: self.stream_window_bytes.clamp(1, MAX_31_BITS),
            connection_window_bytes: self.connection_window_bytes.clamp(DEFAULT_WINDOW_BYTES, MAX_31_BITS),
            header_table_bytes: self.header_table_bytes.min(MAX_ALLOCATED_BYTES),
            max_fields_bytes: self.max_fields_bytes.min(MAX_ALLOCATED_BYTES),
            ..*self
        }
    }
}
