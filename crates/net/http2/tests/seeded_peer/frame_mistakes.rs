//! Mistakes of a server: frames out of place, frames with wrong bytes, and the known violations.

use weir_base::rng::SeededRng;
use weir_http2::frame::{FrameHeader, FrameKind};
use weir_testing::hostile::{Violation, frame, violations};

/// Size from which on a violation is a flood of thousands of frames, in bytes.
const MIN_FLOOD_BYTES: usize = 100_000;

/// The known violations, to be sent on any stream.
#[derive(Debug)]
pub(crate) struct FrameMistakes {
    violations: Vec<Violation>,
    floods: Vec<Violation>,
}

impl FrameMistakes {
    pub(crate) fn new() -> Self {
        let (floods, violations) = violations(1).into_iter().partition(|it| it.bytes.len() >= MIN_FLOOD_BYTES);
        Self { violations, floods }
    }

    /// Appends a known violation on a stream.
    pub(crate) fn known(&self, rng: &mut SeededRng, stream: u32, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.violations[rng.below(self.violations.len())].bytes);
        retarget(&mut out[start..], stream);
    }

    /// Appends a flood on a stream.
    pub(crate) fn flood(&self, rng: &mut SeededRng, stream: u32, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.floods[rng.below(self.floods.len())].bytes);
        retarget(&mut out[start..], stream);
    }
}

/// Moves frames of streams 1 and 3 to this stream and the next.
fn retarget(frames: &mut [u8], stream: u32) {
    let mut at = 0;
    while let Some(header) = frames.get(at..).and_then(|rest| rest.first_chunk()) {
        let header = FrameHeader::decode(header);
        if matches!(header.stream, 1 | 3) {
            let moved = FrameHeader { stream: header.stream - 1 + stream, ..header };
            frames[at..at + FrameHeader::LENGTH].copy_from_slice(&moved.encode());
        }
        at += FrameHeader::LENGTH + header.length as usize;
    }
}

/// Appends a frame of any kind with any flags on a stream, of a length that its kind may have or not.
pub(crate) fn misplaced(rng: &mut SeededRng, stream: u32, out: &mut Vec<u8>) {
    let stream = match rng.below(5) {
        0 => 0,
        1 => rng.bits() as u32 & 0x7fff_ffff,
        2 => stream + 1 + rng.below(9) as u32,
        _ => stream,
    };
    let length = match rng.below(4) {
        0 => [0, 1, 4, 5, 6, 8, 9, 12][rng.below(8)],
        1 => [16_383, 16_384, 16_385][rng.below(3)],
        _ => rng.below(30),
    };
    let mut payload: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| rng.bits().to_be_bytes()).collect();
    payload.truncate(length);
    if rng.below(3) == 0 {
        payload.fill([0, 0x88, 0xff][rng.below(3)]);
    }
    out.extend(frame(FrameKind::of(rng.below(12) as u8), rng.bits() as u8, stream, &payload));
}

/// Changes some bytes of frames: single bits, whole bytes, their number or their order.
pub(crate) fn mutate(rng: &mut SeededRng, frames: &mut Vec<u8>) {
    for _ in 0..=rng.below(3) {
        if frames.is_empty() {
            return;
        }
        // Headers are more interesting than content.
        let at = if rng.below(2) == 0 { rng.below(frames.len().min(12)) } else { rng.below(frames.len()) };
        match rng.below(6) {
            0 | 1 => frames[at] ^= 1 << rng.below(8),
            2 => frames[at] = rng.bits() as u8,
            3 => frames.truncate(at),
            4 => frames.insert(at, rng.bits() as u8),
            _ => {
                let copy = frames[at..].to_vec();
                frames.extend(copy);
            }
        }
    }
}
