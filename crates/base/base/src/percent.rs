//! Percent-encoding: bytes as `%20`.

/// Appends a byte as an escape.
pub fn push_escaped(byte: u8, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    out.push('%');
    out.push(char::from(DIGITS[usize::from(byte >> 4)]));
    out.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// Bytes that a text with escapes stands for; wrong escapes stand for themselves.
pub fn percent_decoded(mut rest: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(rest.len());
    while let Some((&first, after)) = rest.split_first() {
        match (first, escaped_byte(after)) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                rest = &after[2..];
            }
            _ => {
                decoded.push(first);
                rest = after;
            }
        }
    }
    decoded
}

/// Byte that two hexadecimal digits at the beginning are.
fn escaped_byte(text: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wrong_escapes_stand_for_themselves() {
        for (text, expected) in [("%41%4a%4A", "AJJ"), ("%", "%"), ("%4", "%4"), ("%zz%2", "%zz%2"), ("%%41+", "%A+")] {
            assert_eq!(percent_decoded(text.as_bytes()), expected.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn what_is_escaped_is_decoded_again(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let mut text = String::new();
            bytes.iter().for_each(|byte| push_escaped(*byte, &mut text));
            prop_assert_eq!(percent_decoded(text.as_bytes()), bytes);
        }
    }
}
