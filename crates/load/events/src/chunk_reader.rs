//! Reader of raw chunks.

use super::stream_event::StreamEvent;

/// Reader whose events are the pieces.
#[derive(Clone, Debug, Default)]
pub(super) struct ChunkReader {
    offset: u64,
}

impl ChunkReader {
    pub(super) fn next_event<'a>(&mut self, rest: &mut &'a [u8]) -> Option<StreamEvent<'a>> {
        let data = std::mem::take(rest);
        if data.is_empty() {
            return None;
        }
        let start = self.offset;
        self.offset += data.len() as u64;
        Some(StreamEvent { name: b"", data, id: b"", retry_ms: None, start, end: self.offset, is_truncated: false })
    }
}
