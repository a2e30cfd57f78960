//! Scan for the end of a list or object, block by block.
//!
//! Within a block the quotes show which bytes are in strings (a running exclusive or over their bits), and most blocks
//! only change the depth: its brackets are counted. Bytes are looked at one by one where the end may be, and where a
//! backslash is outside of them.

use super::block_masks::{BLOCK_BYTES, BlockMasks};
use super::error::JsonTextError;

/// Maximum number of levels of lists and objects.
pub(super) const MAX_DEPTH: usize = 128;

/// State between two blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NestedScan {
    depth: usize,
    in_string: bool,
    /// Whether the byte before was a backslash that escapes the next one.
    is_escaped: bool,
}

impl NestedScan {
    /// Offset behind the end of the list or object that begins at `at`.
    pub(super) fn end(mut self, text: &[u8], at: usize) -> Result<usize, JsonTextError> {
        let mut start = at;
        while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
            let padded;
            let block = match rest.first_chunk() {
                Some(block) => block,
                None => {
                    padded = padded_block(rest);
                    &padded
                }
            };
            if let Some(end) = self.block(block)? {
                return Ok(start + end);
            }
            start += BLOCK_BYTES;
        }
        Err(JsonTextError::Syntax(text.len()))
    }

    /// Takes a block; returns the offset in it behind the end, if it is there.
    #[inline]
    fn block(&mut self, block: &[u8; BLOCK_BYTES]) -> Result<Option<usize>, JsonTextError> {
        let masks = BlockMasks::of(block);
        let (escapes, escaped) = escapes(masks.backslashes, self.is_escaped);
        let within = within_strings(masks.quotes & !escaped);
        let strings = if self.in_string { !within } else { within };
        if escapes & !strings != 0 {
            // A backslash outside of strings is invalid and escapes nothing.
            return self.bytes(block);
        }
        self.is_escaped = escapes >> (BLOCK_BYTES - 1) != 0;
        self.in_string ^= within >> (BLOCK_BYTES - 1) != 0;
        let (mut opens, mut closes) = (masks.opens & !strings, masks.closes & !strings);
        if opens | closes == 0 {
            return Ok(None);
        }
        let (opened, closed) = (opens.count_ones() as usize, closes.count_ones() as usize);
        if self.depth > closed && self.depth + opened <= MAX_DEPTH {
            self.depth = self.depth + opened - closed;
            return Ok(None);
        }
        while opens | closes != 0 {
            if opens.trailing_zeros() < closes.trailing_zeros() {
                self.open()?;
                opens &= opens - 1;
            } else if self.close() {
                return Ok(Some(closes.trailing_zeros() as usize + 1));
            } else {
                closes &= closes - 1;
            }
        }
        Ok(None)
    }

    /// [`block`](Self::block), byte by byte.
    fn bytes(&mut self, block: &[u8]) -> Result<Option<usize>, JsonTextError> {
        for (at, byte) in block.iter().enumerate() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'"' => self.in_string = !self.in_string,
                b'\\' => self.is_escaped = self.in_string,
                b'{' | b'[' if !self.in_string => self.open()?,
                b'}' | b']' if !self.in_string && self.close() => return Ok(Some(at + 1)),
                _ => {}
            }
        }
        Ok(None)
    }

    fn open(&mut self) -> Result<(), JsonTextError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(JsonTextError::Depth) } else { Ok(()) }
    }

    /// Whether this is the end of the whole list or object.
    fn close(&mut self) -> bool {
        self.depth = self.depth.saturating_sub(1);
        self.depth == 0
    }
}

/// Backslashes that escape the byte behind them, and the bytes that are escaped; `is_escaped` is about the first one.
#[inline]
fn escapes(backslashes: u32, is_escaped: bool) -> (u32, u32) {
    let (mut escapes, mut escaped) = (0, u32::from(is_escaped));
    let mut rest = backslashes & !escaped;
    while rest != 0 {
        let first = rest & rest.wrapping_neg();
        escapes |= first;
        escaped |= first << 1;
        rest &= !(first | (first << 1));
    }
    (escapes, escaped)
}

/// Bits from each opening quote up to the byte before the closing one.
#[inline]
fn within_strings(quotes: u32) -> u32 {
    let mut within = quotes;
    for shift in [1, 2, 4, 8, 16] {
        within ^= within << shift;
    }
    within
}

/// Last block of a text; zeros decide nothing.
fn padded_block(rest: &[u8]) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    block.iter_mut().zip(rest).for_each(|(own, byte)| *own = *byte);
    block
}
