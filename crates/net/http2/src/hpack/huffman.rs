//! The Huffman code of strings (RFC 7541 section 5.2 and Appendix B).
//!
//! The code is canonical: symbols in the order of their code's length, then of their value, have consecutive codes. So
//! the lengths are all that is written down here, and a code is decoded by comparing with the last of each length.

use super::HpackError;

/// Symbols: the bytes, and the end of the string.
const SYMBOL_COUNT: usize = 257;
const END_OF_STRING: usize = 256;
const MIN_CODE_BITS: usize = 5;
const MAX_CODE_BITS: usize = 30;
/// Bits of the table for short codes, which are nearly all that occur.
const SHORT_BITS: u32 = 8;

/// Bits of each symbol's code.
#[rustfmt::skip]
const CODE_BITS: [u8; SYMBOL_COUNT] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// Symbols in the order of their codes, and for each length the codes that have it.
struct CanonicalCode {
    symbols: [u16; SYMBOL_COUNT],
    codes: [u32; SYMBOL_COUNT],
    /// First code of each length, and the place of its symbol.
    first: [(u32, u16); MAX_CODE_BITS + 1],
    /// End of each length's codes, as the upper bits of 32: a code below it has at most this length. That of the
    /// longest would be 2^32, and is never read.
    end: [u32; MAX_CODE_BITS + 1],
    /// Symbol and length by the next bits; length 0 for longer codes.
    short: [(u8, u8); 1 << SHORT_BITS],
}

static CODE: CanonicalCode = CanonicalCode::new();

impl CanonicalCode {
    const fn new() -> Self {
        let mut code = Self {
            symbols: [0; SYMBOL_COUNT],
            codes: [0; SYMBOL_COUNT],
            first: [(0, 0); MAX_CODE_BITS + 1],
            end: [0; MAX_CODE_BITS + 1],
            short: [(0, 0); 1 << SHORT_BITS],
        };
        let (mut bits, mut next, mut place) = (MIN_CODE_BITS, 0_u32, 0_usize);
        while bits <= MAX_CODE_BITS {
            code.first[bits] = (next, place as u16);
            let mut symbol = 0;
            while symbol < SYMBOL_COUNT {
                if CODE_BITS[symbol] as usize == bits {
                    code.symbols[place] = symbol as u16;
                    code.codes[symbol] = next;
                    if bits <= SHORT_BITS as usize {
                        let spare = SHORT_BITS as usize - bits;
                        let mut low = 0;
                        while low < 1 << spare {
                            code.short[((next as usize) << spare) + low] = (symbol as u8, bits as u8);
                            low += 1;
                        }
                    }
                    next += 1;
                    place += 1;
                }
                symbol += 1;
            }
            code.end[bits] = ((next as u64) << (32 - bits)) as u32;
            next <<= 1;
            bits += 1;
        }
        code
    }
}

/// Bytes that the code of a string takes.
pub fn huffman_length(text: &[u8]) -> usize {
    text.iter().map(|byte| usize::from(CODE_BITS[usize::from(*byte)])).sum::<usize>().div_ceil(8)
}

/// Appends the code of a string.
pub fn encode_huffman(out: &mut Vec<u8>, text: &[u8]) {
    let (mut pending, mut count) = (0_u64, 0_u32);
    for byte in text {
        let symbol = usize::from(*byte);
        let bits = u32::from(CODE_BITS[symbol]);
        pending = pending << bits | u64::from(CODE.codes[symbol]);
        count += bits;
        while count >= 8 {
            count -= 8;
            out.push((pending >> count) as u8);
        }
    }
    if count > 0 {
        out.push((pending << (8 - count)) as u8 | (0xff >> count));
    }
}

/// Appends the string of a code.
///
/// # Errors
/// If the code has the end-of-string symbol, or its padding is not the beginning of that symbol or longer than 7 bits.
pub fn decode_huffman(out: &mut Vec<u8>, code: &[u8]) -> Result<(), HpackError> {
    // The next bits, at the top; behind the last come ones, so that padding runs on into the end-of-string symbol.
    let (mut window, mut count) = (0_u64, 0_u32);
    let mut bytes = code.iter();
    loop {
        while count <= 56 {
            let Some(byte) = bytes.next() else { break };
            window |= u64::from(*byte) << (56 - count);
            count += 8;
        }
        if count == 0 {
            return Ok(());
        }
        let filled = if count < 64 { window | u64::MAX >> count } else { window };
        let (symbol, bits) = match CODE.short[(filled >> (64 - SHORT_BITS)) as usize] {
            (_, 0) => long_code((filled >> 32) as u32),
            (symbol, bits) => (usize::from(symbol), u32::from(bits)),
        };
        if bits > count || symbol == END_OF_STRING {
            let is_padding = count < 8 && filled == u64::MAX;
            return if is_padding { Ok(()) } else { Err(HpackError::InvalidHuffman) };
        }
        out.push(symbol as u8);
        window <<= bits;
        count -= bits;
    }
}

/// Symbol and length of the code at the top of 32 bits.
fn long_code(top: u32) -> (usize, u32) {
    let mut bits = SHORT_BITS as usize + 1;
    while bits < MAX_CODE_BITS && top >= CODE.end[bits] {
        bits += 1;
    }
    let (first, place) = CODE.first[bits];
    let place = usize::from(place) + ((top >> (32 - bits)) - first) as usize;
    (CODE.symbols.get(place).map_or(END_OF_STRING, |symbol| usize::from(*symbol)), bits as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(code: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut out = Vec::new();
        decode_huffman(&mut out, code).map(|()| out)
    }

    #[test]
    fn codes_are_those_of_appendix_b() {
        let some = [
            (b'0', 0x0),
            (b' ', 0x14),
            (b'a', 0x3),
            (b'z', 0x7b),
            (b'{', 0x7ffe),
            (0, 0x1ff8),
            (1, 0x7f_ffd8),
            (127, 0xfff_fffc),
            (255, 0x3ff_ffee),
            (22, 0x3fff_fffe),
        ];
        for (byte, code) in some {
            assert_eq!(CODE.codes[usize::from(byte)], code, "{byte}");
        }
        assert_eq!(CODE.codes[END_OF_STRING], 0x3fff_ffff);
        // A complete code: the shares of all symbols make one.
        let shares: u64 = CODE_BITS.iter().map(|bits| 1 << (MAX_CODE_BITS - usize::from(*bits))).sum();
        assert_eq!(shares, 1 << MAX_CODE_BITS);
    }

    #[test]
    fn each_byte_is_decoded_from_its_code() {
        let all: Vec<u8> = (0..=255).collect();
        let mut code = Vec::new();
        encode_huffman(&mut code, &all);
        assert_eq!((code.len(), decoded(&code)), (huffman_length(&all), Ok(all)));
    }

    #[test]
    fn wrong_padding_and_the_end_of_string_are_rejected() {
        // 'a' is 00011; three ones are its padding.
        assert_eq!(decoded(&[0b0001_1111]), Ok(b"a".to_vec()));
        assert_eq!(decoded(&[0b0001_1110]), Err(HpackError::InvalidHuffman));
        assert_eq!(decoded(&[0b0001_1111, 0xff]), Err(HpackError::InvalidHuffman));
        assert_eq!(decoded(&[0xff]), Err(HpackError::InvalidHuffman));
        assert_eq!(decoded(&[0xff; 4]), Err(HpackError::InvalidHuffman));
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xfc, 0x1f]), Err(HpackError::InvalidHuffman));
        assert_eq!(decoded(&[]), Ok(Vec::new()));
    }

    proptest! {
        #[test]
        fn a_string_is_decoded_as_it_was_encoded(text: Vec<u8>) {
            let mut code = Vec::new();
            encode_huffman(&mut code, &text);
            prop_assert_eq!(code.len(), huffman_length(&text));
            prop_assert_eq!(decoded(&code), Ok(text));
        }

        #[test]
        fn what_decodes_encodes_to_the_same(code: Vec<u8>) {
            if let Ok(text) = decoded(&code) {
                let mut again = Vec::new();
                encode_huffman(&mut again, &text);
                prop_assert_eq!(again, code);
            }
        }
    }
}
