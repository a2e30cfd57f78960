//! Places of the bytes of a JSON text that decide where values end, found in words of eight bytes.

/// Bytes of a block. Longer blocks cost more beyond the end of a short value, shorter ones more within a long one.
pub(super) const BLOCK_BYTES: usize = 32;

const WORD_BYTES: usize = 8;
/// The same byte in each place of a word.
const ONES: u64 = u64::MAX / 255;
const HIGHEST_BITS: u64 = ONES * 0x80;
const LOW_BITS: u64 = ONES * 0x7F;

/// Places in a block, a bit each, the first byte in the lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockMasks {
    pub(super) quotes: u32,
    /// `{` and `[`.
    pub(super) opens: u32,
    /// `}` and `]`.
    pub(super) closes: u32,
    pub(super) backslashes: u32,
}

impl BlockMasks {
    /// Masks of a block.
    #[inline]
    pub(super) fn of(block: &[u8; BLOCK_BYTES]) -> Self {
        let all = words(block).fold(0, |all, word| all | word);
        if all & HIGHEST_BITS == 0 { Self::found_by(block, equals_in_ascii) } else { Self::found_by(block, equals) }
    }

    #[inline]
    fn found_by(block: &[u8; BLOCK_BYTES], equals: impl Fn(u64, u8) -> u64) -> Self {
        let mut masks = Self::default();
        let mut any_backslash = 0;
        for (place, word) in words(block).enumerate() {
            // The brackets of lists and objects differ in this bit only.
            let brackets = word | (ONES * 0x20);
            let shift = place * WORD_BYTES;
            masks.quotes |= compress(equals(word, b'"')) << shift;
            masks.opens |= compress(equals(brackets, b'{')) << shift;
            masks.closes |= compress(equals(brackets, b'}')) << shift;
            any_backslash |= equals(word, b'\\');
        }
        // Most blocks have none.
        if any_backslash != 0 {
            let bits =
                words(block).enumerate().map(|(place, word)| compress(equals(word, b'\\')) << (place * WORD_BYTES));
            masks.backslashes = bits.fold(0, |all, bits| all | bits);
        }
        masks
    }
}

/// Offset in `text` of the first quote or backslash, if there is one.
#[inline]
pub(super) fn first_quote_or_backslash(text: &[u8]) -> Option<usize> {
    let mut chunks = text.chunks_exact(WORD_BYTES);
    for (place, chunk) in chunks.by_ref().enumerate() {
        let word = word_of(chunk);
        let found = equals(word, b'"') | equals(word, b'\\');
        if found != 0 {
            return Some(place * WORD_BYTES + found.trailing_zeros() as usize / 8);
        }
    }
    let rest = chunks.remainder();
    let is_found = |byte: &u8| matches!(byte, b'"' | b'\\');
    rest.iter().position(is_found).map(|at| text.len() - rest.len() + at)
}

/// Words of a block.
#[inline]
fn words(block: &[u8; BLOCK_BYTES]) -> impl Iterator<Item = u64> {
    block.chunks_exact(WORD_BYTES).map(word_of)
}

/// Word of eight bytes, the first one in the lowest bits.
#[inline]
fn word_of(chunk: &[u8]) -> u64 {
    <[u8; WORD_BYTES]>::try_from(chunk).map_or(0, u64::from_le_bytes)
}

/// Highest bit of each byte of a word that equals `byte`.
#[inline]
fn equals(word: u64, byte: u8) -> u64 {
    let difference = word ^ (ONES * u64::from(byte));
    // A byte of 0 is the only one that neither has the highest bit nor carries one into it.
    !(((difference & LOW_BITS) + LOW_BITS) | difference) & HIGHEST_BITS
}

/// As [`equals`], for a word and a byte of ASCII, without highest bits.
#[inline]
fn equals_in_ascii(word: u64, byte: u8) -> u64 {
    !((word ^ (ONES * u64::from(byte))) + LOW_BITS) & HIGHEST_BITS
}

/// The highest bits of the bytes of a word, side by side.
#[inline]
fn compress(highest: u64) -> u32 {
    // The product moves the bit of byte n to bit 56 + n.
    const GATHER: u64 = 0x0002_0408_1020_4081;
    (highest.wrapping_mul(GATHER) >> 56) as u32
}
