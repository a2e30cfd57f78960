//! Integers with a prefix (RFC 7541 section 5.1).

use super::HpackError;

/// Maximum bytes behind the prefix: 32 bits need five, and more would be zeros that only cost time.
const MAX_TAIL_BYTES: u32 = 5;

/// Appends a number whose first `prefix` bits, 1 to 8, are the low bits of a byte with the high bits `first`.
#[inline]
pub fn encode_integer(out: &mut Vec<u8>, first: u8, prefix: u32, value: u32) {
    let mask = (1_u32 << prefix) - 1;
    if value < mask {
        out.push(first | value as u8);
        return;
    }
    out.push(first | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Reads a number at the start of `bytes`: its value, and the number of bytes used.
///
/// # Errors
/// If the bytes end before it does, or it does not fit into 32 bits.
#[inline]
pub fn decode_integer(bytes: &[u8], prefix: u32) -> Result<(u32, usize), HpackError> {
    let mask = (1_u32 << prefix) - 1;
    let first = u32::from(*bytes.first().ok_or(HpackError::Truncated)?) & mask;
    if first < mask {
        return Ok((first, 1));
    }
    let mut value = u64::from(first);
    for index in 0..MAX_TAIL_BYTES {
        let byte = *bytes.get(1 + index as usize).ok_or(HpackError::Truncated)?;
        value += u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let value = u32::try_from(value).map_err(|_| HpackError::IntegerOverflow)?;
            return Ok((value, 2 + index as usize));
        }
    }
    Err(HpackError::IntegerOverflow)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(prefix: u32, value: u32) -> Vec<u8> {
        let mut out = Vec::new();
        encode_integer(&mut out, 0, prefix, value);
        out
    }

    #[test]
    fn the_examples_of_appendix_c_1_hold() {
        assert_eq!(encoded(5, 10), [0b01010]);
        assert_eq!(encoded(5, 1337), [0b11111, 0b1001_1010, 0b0000_1010]);
        assert_eq!(encoded(8, 42), [0b0010_1010]);
        assert_eq!(decode_integer(&[0b1110_1010], 5), Ok((10, 1)));
        assert_eq!(decode_integer(&[0b1111_1111, 0b1001_1010, 0b0000_1010, 7], 5), Ok((1337, 3)));
    }

    #[test]
    fn numbers_beyond_32_bits_and_endless_ones_are_rejected() {
        assert_eq!(decode_integer(&[0xff, 0x80, 0xfe, 0xff, 0xff, 0x0f], 8), Ok((u32::MAX, 6)));
        assert_eq!(decode_integer(&[0xff, 0x81, 0xfe, 0xff, 0xff, 0x0f], 8), Err(HpackError::IntegerOverflow));
        assert_eq!(decode_integer(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], 7), Err(HpackError::IntegerOverflow));
        assert_eq!(decode_integer(&[0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0], 7), Err(HpackError::IntegerOverflow));
        assert_eq!(decode_integer(&[0x7f, 0x80], 7), Err(HpackError::Truncated));
        assert_eq!(decode_integer(&[], 7), Err(HpackError::Truncated));
    }

    proptest! {
        #[test]
        fn a_number_is_read_as_it_was_written(value: u32, prefix in 1_u32..=8, first: u8) {
            let mut out = Vec::new();
            let high = if prefix == 8 { 0 } else { first << prefix };
            encode_integer(&mut out, high, prefix, value);
            prop_assert_eq!(out[0] & !((1_u32 << prefix) - 1) as u8, high);
            prop_assert_eq!(decode_integer(&out, prefix), Ok((value, out.len())));
        }
    }
}
