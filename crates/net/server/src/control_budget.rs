//! Budget of a connection of HTTP/2 for frames that carry nothing.
//!
//! A server works for each PING, SETTINGS, PRIORITY, WINDOW_UPDATE, RST_STREAM, CONTINUATION, empty DATA and unknown
//! frame, and for each field of a header block beyond those that requests have, while its peer sends them for next to
//! nothing. [`ControlFrameBudget`] counts them as the bytes pass: a bucket that time refills, and bytes that the server
//! sends, since a client that downloads has reasons for WINDOW_UPDATE (and gRPC for PING, to measure the bandwidth).

use crate::header_block::HeaderBlockScan;
use weir_base::Nanos;

/// Preface of every connection (RFC 9113, 3.4), in bytes.
const PREFACE_BYTES: usize = 24;
const FRAME_HEAD_BYTES: usize = 9;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const CONTINUATION: u8 = 0x9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

/// Size of the bucket: frames that may come at once. Chosen: 80 times the streams that a connection may have.
const MAX_FRAMES: f64 = 20_000.0;
/// Frames per second that need no reason. gRPC on one machine measures its bandwidth by some thousand PINGs per second;
/// as many frames cost the server a hundredth of a core.
const FRAMES_PER_S: f64 = 10_000.0;
/// Sent bytes per further frame. A client that answers each DATA frame of a hundred bytes has one and a half.
const SENT_BYTES_PER_FRAME: f64 = 64.0;
/// Maximum of these per second. Chosen: a client with default windows that downloads 1 GB/s sends 60,000.
const MAX_EARNED_FRAMES_PER_S: f64 = 100_000.0;
/// Fields of a header block that cost nothing; browsers send up to 40.
const FREE_FIELDS: u64 = 100;
/// Fields beyond these that cost as much as a frame.
const FIELDS_PER_FRAME: f64 = 4.0;

/// Frames of one connection, seen as bytes.
#[derive(Clone, Debug)]
pub(crate) struct ControlFrameBudget {
    splitter: FrameSplitter,
    block: HeaderBlockScan,
    /// Whether a header block has begun and not ended.
    is_in_block: bool,
    last_stream: u32,
    left: f64,
    refilled_at: Nanos,
    /// Bytes sent since.
    sent_bytes: u64,
    /// Control frames received since.
    control_frames: u64,
    surplus_fields: u64,
}

impl ControlFrameBudget {
    /// The full budget of a new connection.
    pub(crate) fn new(now: Nanos) -> Self {
        Self {
            splitter: FrameSplitter::default(),
            block: HeaderBlockScan::default(),
            is_in_block: false,
            last_stream: 0,
            left: MAX_FRAMES,
            refilled_at: now,
            sent_bytes: 0,
            control_frames: 0,
            surplus_fields: 0,
        }
    }

    /// Counts received bytes.
    pub(crate) fn received(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.splitter.next(&mut bytes) {
                Some(FramePart::Head(head)) => self.begin_frame(head),
                Some(FramePart::Payload(HEADERS | CONTINUATION, part)) => {
                    self.surplus_fields += self.block.scan(part, FREE_FIELDS);
                }
                Some(FramePart::Payload(..)) | None => {}
            }
        }
    }

    fn begin_frame(&mut self, head: FrameHead) {
        match head.kind {
            HEADERS => {
                self.last_stream = self.last_stream.max(head.stream);
                self.block.begin_block(head.flags, head.length);
            }
            CONTINUATION => self.block.begin_continuation(head.length),
            _ => {}
        }
        let has_content = match head.kind {
            HEADERS => true,
            DATA => head.length > 0 || head.flags & END_STREAM != 0,
            _ => false,
        };
        self.control_frames += u64::from(!has_content);
        if matches!(head.kind, HEADERS | CONTINUATION) {
            self.is_in_block = head.flags & END_HEADERS == 0;
        }
    }

    /// Counts sent bytes.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent_bytes = self.sent_bytes.saturating_add(bytes as u64);
    }

    /// Whether a request's head has begun: a header block whose end has not come.
    pub(crate) fn is_in_head(&self) -> bool {
        self.is_in_block || self.splitter.is_in_payload_of(HEADERS) || self.splitter.is_in_payload_of(CONTINUATION)
    }

    /// Highest stream of a request so far.
    pub(crate) fn last_stream(&self) -> u32 {
        self.last_stream
    }

    /// Whether frames since the previous call exceed the budget. To be called after each [`Self::received`], or
    /// each few; `now` may be coarse.
    pub(crate) fn is_exceeded(&mut self, now: Nanos) -> bool {
        if self.control_frames == 0 && self.surplus_fields == 0 {
            return false;
        }
        let passed_s = (now - self.refilled_at).as_secs_f64();
        if passed_s > 0.0 {
            let earned = (self.sent_bytes as f64 / SENT_BYTES_PER_FRAME).min(MAX_EARNED_FRAMES_PER_S * passed_s);
            self.left = (self.left + FRAMES_PER_S * passed_s + earned).min(MAX_FRAMES);
            (self.refilled_at, self.sent_bytes) = (now, 0);
        }
        self.left -= std::mem::take(&mut self.control_frames) as f64;
        self.left -= std::mem::take(&mut self.surplus_fields) as f64 / FIELDS_PER_FRAME;
        self.left < 0.0
    }
}

/// First 9 bytes of a frame, parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FrameHead {
    length: u32,
    kind: u8,
    flags: u8,
    stream: u32,
}

/// A head, or a part of the payload behind it.
enum FramePart<'a> {
    Head(FrameHead),
    Payload(u8, &'a [u8]),
}

/// Splits bytes into frames, in whatever pieces they come.
#[derive(Clone, Debug)]
struct FrameSplitter {
    /// Bytes of the preface that are still to come.
    preface_left: usize,
    head: [u8; FRAME_HEAD_BYTES],
    head_length: usize,
    kind: u8,
    payload_left: usize,
}

impl Default for FrameSplitter {
    fn default() -> Self {
        Self { preface_left: PREFACE_BYTES, head: [0; FRAME_HEAD_BYTES], head_length: 0, kind: 0, payload_left: 0 }
    }
}

impl FrameSplitter {
    fn is_in_frame(&self) -> bool {
        self.head_length > 0 || self.payload_left > 0
    }

    /// Whether a frame of this kind has come up to its payload, and not to its end.
    fn is_in_payload_of(&self, kind: u8) -> bool {
        self.payload_left > 0 && self.kind == kind
    }

    /// Takes the next part from the bytes; None if they end before it does.
    fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<FramePart<'a>> {
        *bytes = &bytes[take(&mut self.preface_left, bytes.len())..];
        if self.payload_left > 0 {
            let (part, rest) = bytes.split_at(take(&mut self.payload_left, bytes.len()));
            *bytes = rest;
            return Some(FramePart::Payload(self.kind, part));
        }
        let wanted = (FRAME_HEAD_BYTES - self.head_length).min(bytes.len());
        let (part, rest) = bytes.split_at(wanted);
        self.head[self.head_length..self.head_length + wanted].copy_from_slice(part);
        (*bytes, self.head_length) = (rest, self.head_length + wanted);
        if self.head_length < FRAME_HEAD_BYTES {
            return None;
        }
        self.head_length = 0;
        let [high, middle, low, kind, flags, stream @ ..] = self.head;
        let length = u32::from_be_bytes([0, high, middle, low]);
        (self.kind, self.payload_left) = (kind, length as usize);
        Some(FramePart::Head(FrameHead { length, kind, flags, stream: u32::from_be_bytes(stream) & 0x7fff_ffff }))
    }
}

/// Whether bytes that are sent end between two frames.
#[derive(Clone, Debug)]
pub(crate) struct FrameBoundary(FrameSplitter);

impl Default for FrameBoundary {
    /// Before the first frame; a server sends no preface.
    fn default() -> Self {
        Self(FrameSplitter { preface_left: 0, ..FrameSplitter::default() })
    }
}

impl FrameBoundary {
    /// Passes over sent bytes.
    pub(crate) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let _ = self.0.next(&mut bytes);
        }
    }

    /// Whether the last frame is complete.
    pub(crate) fn is_between_frames(&self) -> bool {
        !self.0.is_in_frame()
    }
}

/// Takes up to `available` from `left`; how much.
fn take(left: &mut usize, available: usize) -> usize {
    let taken = available.min(*left);
    *left -= taken;
    taken
}

#[cfg(test)]
mod tests;
