//! Frames as bytes.

use crate::close_code::CloseCode;
use crate::frame::{Endpoint, MAX_CONTROL_BYTES, Opcode, WebSocketFrameHead, apply_mask};

/// Writer of one side's frames; those of a client are masked, each with a key of its own.
///
/// A mask protects proxies from pages that choose the bytes of a connection. The keys are random but for that of
/// [`Self::new`]'s seed, since what a load test sends is its user's.
#[derive(Clone, Debug)]
pub struct FrameWriter {
    endpoint: Endpoint,
    /// State of the keys.
    state: u64,
}

impl FrameWriter {
    /// Writer of a side, whose keys follow from this seed.
    pub fn new(endpoint: Endpoint, seed: u64) -> Self {
        Self { endpoint, state: seed }
    }

    fn next_key(&mut self) -> [u8; 4] {
        // SplitMix64: any seed will do, and its bits are independent enough.
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed >> 32) as u32).to_le_bytes()
    }

    /// Appends a whole message, or a control frame.
    #[inline]
    pub fn write(&mut self, opcode: Opcode, payload: &[u8], out: &mut Vec<u8>) {
        self.write_fragment(opcode, payload, (true, false), out);
    }

    /// Appends a compressed message.
    pub fn write_compressed(&mut self, opcode: Opcode, payload: &[u8], out: &mut Vec<u8>) {
        self.write_fragment(opcode, payload, (true, true), out);
    }

    /// Appends a fragment of a message: whether it is the last one, and its first reserved bit.
    #[inline]
    pub fn write_fragment(&mut self, opcode: Opcode, payload: &[u8], (is_last, rsv1): (bool, bool), out: &mut Vec<u8>) {
        let mask = match self.endpoint {
            Endpoint::Client => Some(self.next_key()),
            Endpoint::Server => None,
        };
        WebSocketFrameHead { is_last, rsv1, opcode, mask, length: payload.len() as u64 }.write(out);
        let start = out.len();
        out.extend_from_slice(payload);
        if let Some(mask) = mask {
            apply_mask(&mut out[start..], mask, 0);
        }
    }

    /// Appends a close frame; a reason that is too long is cut at a character.
    pub fn write_close(&mut self, code: Option<CloseCode>, reason: &str, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        if let Some(code) = code {
            payload.extend_from_slice(&code.0.to_be_bytes());
            let mut end = reason.len().min(MAX_CONTROL_BYTES as usize - 2);
            while !reason.is_char_boundary(end) {
                end -= 1;
            }
            payload.extend_from_slice(&reason.as_bytes()[..end]);
        }
        self.write(Opcode::Close, &payload, out);
    }
}
