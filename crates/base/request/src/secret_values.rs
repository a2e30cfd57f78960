//! Values in a text of no one grammar: what quotes hold, and what is skipped.

use std::ops::Range;

/// Longest name that is examined, in bytes.
pub(super) const MAX_NAME_BYTES: usize = 256;

/// Offset of the next byte after white space; one behind the end stays.
pub(super) fn skip_white(bytes: &[u8], at: usize) -> usize {
    at + bytes[at.min(bytes.len())..].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Content of a quoted text that begins here; one that is cut goes to the end.
pub(super) fn quoted_value(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let slashes = bytes[at.min(bytes.len())..].iter().take_while(|byte| **byte == b'\\').count();
    let quote = *bytes.get(at + slashes).filter(|byte| matches!(byte, b'"' | b'\''))?;
    let start = at + slashes + 1;
    let (mut end, mut escapes) = (start, 0);
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'\\' => escapes += 1,
            // JSON in JSON: the quotes have as many backslashes as the first one; more are within the text.
            byte if *byte == quote && (escapes == slashes || slashes == 0 && escapes % 2 == 0) => {
                return Some(start..end - escapes);
            }
            _ => escapes = 0,
        }
        if *byte == quote {
            escapes = 0;
        }
        end += 1;
    }
    Some(start..bytes.len())
}

#[cfg(test)]
mod tests {
    use crate::secret_mask::SecretMask;

    #[test]
    fn a_text_that_ends_within_a_pair_is_read_to_its_end() {
        for text in ["{\"text\": 1", "{\"value\": 1", "{\"value\": \"a", "{\"value\": 1,", "{\"value\": 1, \"name"] {
            SecretMask::default().add_fields(text);
        }
    }
}
