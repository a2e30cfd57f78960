//! Ends of values, against a scan byte by byte.

use proptest::prelude::*;

use super::super::error::JsonTextError;
use super::super::nested_scan::MAX_DEPTH;
use super::super::scan::{skip_string, skip_value};

/// End of the string that begins at `at`.
fn string_end(text: &[u8], at: usize) -> Result<usize, JsonTextError> {
    let mut next = at + 1;
    while let Some(byte) = text.get(next) {
        match byte {
            b'"' => return Ok(next + 1),
            b'\\' => next += 2,
            _ => next += 1,
        }
    }
    Err(JsonTextError::Syntax(text.len()))
}

/// End of the list or object that begins at `at`.
fn nested_end(text: &[u8], at: usize) -> Result<usize, JsonTextError> {
    let (mut depth, mut next) = (0, at);
    while let Some(byte) = text.get(next) {
        match byte {
            b'"' => {
                next = string_end(text, next)?;
                continue;
            }
            b'{' | b'[' if depth == MAX_DEPTH => return Err(JsonTextError::Depth),
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return Ok(next + 1),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        next += 1;
    }
    Err(JsonTextError::Syntax(text.len()))
}

/// Texts with what decides, at any distance from each other, and with the neighbours of those bytes.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        3 => prop::sample::select(&br#""{}[]\"#[..]).prop_map(|byte| vec![byte]),
        1 => prop::sample::select(&b"\x00\x02\x5a\x5c\x5e\x7a\x7c\x7e\x7f\xa2\xdb\xdd\xfb\xfd\xff"[..]).prop_map(|byte| vec![byte]),
        1 => prop::collection::vec(any::<u8>(), 0..20),
        2 => (0..40_usize).prop_map(|length| vec![b'a'; length]),
        1 => (1..200_usize, prop::sample::select(&b"[{}]\\"[..])).prop_map(|(length, byte)| vec![byte; length]),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn values_end_where_a_scan_byte_by_byte_ends(text in texts(), before in 0..9_usize, is_list: bool) {
        let start = if is_list { b'[' } else { b'{' };
        let nested = [&vec![b' '; before], &vec![start], &text].map(Vec::as_slice).concat();
        prop_assert_eq!(skip_value(&nested, before), nested_end(&nested, before));
        let string = [&vec![b' '; before], &vec![b'"'], &text].map(Vec::as_slice).concat();
        prop_assert_eq!(skip_string(&string, before), string_end(&string, before));
    }
}

#[test]
fn lists_end_at_the_maximum_depth_and_one_more_is_an_error() {
    for depth in [1, 31, 32, 33, MAX_DEPTH - 1, MAX_DEPTH] {
        let text = ["[".repeat(depth), "]".repeat(depth), "]".to_owned()].concat();
        assert_eq!(skip_value(text.as_bytes(), 0), Ok(2 * depth));
    }
    let deeper = "[".repeat(MAX_DEPTH + 1);
    assert_eq!(skip_value(deeper.as_bytes(), 0), Err(JsonTextError::Depth));
}
