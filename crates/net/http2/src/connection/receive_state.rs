//! Place of the next received byte: a part of a frame.

use crate::frame::FrameHeader;

/// Part of a frame that the next byte belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadPhase {
    /// Header of the first frame, which has to be SETTINGS.
    Preface,
    /// Header of a frame.
    Header,
    /// Payload of a frame that is handled as a whole.
    Payload(FrameHeader),
    /// Length of a DATA frame's padding.
    PadLength(FrameHeader),
    /// Content of DATA, then its padding.
    Data(DataFrame),
    /// Bytes without meaning.
    Skip(u32),
}

/// A DATA frame whose payload is being received.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataFrame {
    pub(super) stream: u32,
    /// Content left.
    pub(super) content: u32,
    /// Padding behind it.
    pub(super) padding: u32,
    pub(super) is_end: bool,
}

/// First bytes of a frame's header or payload, whose rest has not come yet.
#[derive(Debug, Default)]
pub(super) struct PartialFrame {
    bytes: Vec<u8>,
}

/// Bytes that a connection keeps for the next partial frame; what is more is freed.
const MAX_IDLE_BYTES: usize = 4096;

impl PartialFrame {
    /// The first `length` bytes of a frame's part, of which `rest` has the next ones; `None` if not all are there,
    /// and then they are kept. Moves `used` behind the bytes that were used.
    #[inline]
    pub(super) fn complete<'a>(&'a mut self, bytes: &'a [u8], used: &mut usize, length: usize) -> Option<&'a [u8]> {
        let rest = &bytes[*used..];
        if self.bytes.is_empty()
            && let Some(whole) = rest.get(..length)
        {
            *used += length;
            return Some(whole);
        }
        let missing = length.saturating_sub(self.bytes.len()).min(rest.len());
        self.bytes.extend_from_slice(&rest[..missing]);
        *used += missing;
        (self.bytes.len() >= length).then_some(&self.bytes)
    }

    /// Forgets the bytes, which have been handled.
    #[inline]
    pub(super) fn clear(&mut self) {
        if !self.bytes.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(MAX_IDLE_BYTES);
        }
    }
}

/// A field block in several frames (RFC 9113 section 4.3).
#[derive(Debug, Default)]
pub(super) struct FieldBlockFrames {
    pub(super) bytes: Vec<u8>,
    /// Stream whose CONTINUATION has to come next; 0 outside of a block.
    pub(super) stream: u32,
    /// Whether HEADERS ended the stream.
    pub(super) is_end: bool,
    pub(super) continuations: u32,
    /// Size of the frames so far, with their headers.
    pub(super) wire: u64,
}

impl FieldBlockFrames {
    /// Forgets the block, which has been handled.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(MAX_IDLE_BYTES);
        (self.stream, self.continuations, self.wire) = (0, 0, 0);
    }
}
