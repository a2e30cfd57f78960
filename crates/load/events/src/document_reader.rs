//! Reader of a body that is one event.

use super::stream_event::StreamEvent;

/// Reader whose event is the whole body, if it is not blank.
#[derive(Clone, Debug)]
pub(super) struct DocumentReader {
    max_data_bytes: usize,
    /// Body so far, as far as it is not too long.
    kept: Vec<u8>,
    /// Length of the body so far, without a limit.
    bytes: u64,
    has_content: bool,
    is_returned: bool,
}

impl DocumentReader {
    pub(super) fn new(max_data_bytes: usize) -> Self {
        Self { max_data_bytes, kept: Vec::new(), bytes: 0, has_content: false, is_returned: false }
    }

    pub(super) fn restart(&mut self) {
        self.kept.clear();
        (self.bytes, self.has_content, self.is_returned) = (0, false, false);
    }

    pub(super) fn keep(&mut self, piece: &[u8]) {
        let room = self.max_data_bytes - self.kept.len();
        self.kept.extend_from_slice(&piece[..piece.len().min(room)]);
        self.bytes += piece.len() as u64;
        self.has_content = self.has_content || !piece.trim_ascii_start().is_empty();
    }

    pub(super) fn end(&mut self) -> Option<StreamEvent<'_>> {
        let is_event = self.is_within_event();
        self.is_returned = true;
        is_event.then_some(StreamEvent {
            name: b"",
            data: &self.kept,
            id: b"",
            retry_ms: None,
            start: 0,
            end: self.bytes,
            is_truncated: self.kept.len() as u64 != self.bytes,
        })
    }

    pub(super) fn is_within_event(&self) -> bool {
        self.has_content && !self.is_returned
    }
}
