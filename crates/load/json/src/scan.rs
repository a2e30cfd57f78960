//! Scanner of JSON texts: finds the ends of values.

use std::ops::ControlFlow;

use super::block_masks::first_quote_or_backslash;
use super::error::JsonTextError;
use super::nested_scan::NestedScan;

/// Value that begins at or behind `from`, and the offset behind it.
pub(super) fn value(text: &[u8], from: usize) -> Result<(&[u8], usize), JsonTextError> {
    let start = skip_space(text, from);
    let end = skip_value(text, start)?;
    Ok((&text[start..end], end))
}

/// Checks that only white space is at and behind `from`.
pub(super) fn end_of_text(text: &[u8], from: usize) -> Result<(), JsonTextError> {
    let end = skip_space(text, from);
    if end == text.len() { Ok(()) } else { Err(JsonTextError::Syntax(end)) }
}

pub(super) fn skip_space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

pub(super) fn skip_value(text: &[u8], at: usize) -> Result<usize, JsonTextError> {
    match text.get(at) {
        Some(b'"') => skip_string(text, at),
        Some(b'{' | b'[') => skip_nested(text, at),
        Some(b't') => skip_word(text, at, b"true"),
        Some(b'f') => skip_word(text, at, b"false"),
        Some(b'n') => skip_word(text, at, b"null"),
        Some(b'-' | b'0'..=b'9') => {
            let is_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
            Ok(at + text[at..].iter().take_while(|byte| is_number(byte)).count())
        }
        _ => Err(JsonTextError::Syntax(at)),
    }
}

fn skip_word(text: &[u8], at: usize, word: &[u8]) -> Result<usize, JsonTextError> {
    if text[at..].starts_with(word) { Ok(at + word.len()) } else { Err(JsonTextError::Syntax(at)) }
}

/// End of a string that begins with the quote at `at`.
pub(super) fn skip_string(text: &[u8], at: usize) -> Result<usize, JsonTextError> {
    let mut next = at + 1;
    loop {
        let rest = text.get(next..).ok_or(JsonTextError::Syntax(text.len()))?;
        let stop = first_quote_or_backslash(rest).ok_or(JsonTextError::Syntax(text.len()))?;
        if rest[stop] == b'"' {
            return Ok(next + stop + 1);
        }
        next += stop + 2;
    }
}

/// End of a list or object.
fn skip_nested(text: &[u8], at: usize) -> Result<usize, JsonTextError> {
    NestedScan::default().end(text, at)
}

/// Visits the members of an object: the name with its quotes, and the text of the value. Other nodes have none.
///
/// # Errors
/// Text that is not JSON, as far as it is read.
pub fn members<'b>(
    node: &'b [u8],
    mut visit: impl FnMut(&'b [u8], &'b [u8]) -> ControlFlow<()>,
) -> Result<(), JsonTextError> {
    if node.first() != Some(&b'{') {
        return Ok(());
    }
    let mut at = skip_space(node, 1);
    if node.get(at) == Some(&b'}') {
        return Ok(());
    }
    loop {
        at = skip_space(node, at);
        if node.get(at) != Some(&b'"') {
            return Err(JsonTextError::Syntax(at));
        }
        let end = skip_string(node, at)?;
        let name = &node[at..end];
        at = skip_space(node, end);
        if node.get(at) != Some(&b':') {
            return Err(JsonTextError::Syntax(at));
        }
        let (member, end) = value(node, at + 1)?;
        if visit(name, member).is_break() {
            return Ok(());
        }
        match next_item(node, end, b'}')? {
            Some(next) => at = next,
            None => return Ok(()),
        }
    }
}

/// Visits the elements of a list. Other nodes have none.
///
/// # Errors
/// Text that is not JSON, as far as it is read.
pub fn elements<'b>(node: &'b [u8], mut visit: impl FnMut(&'b [u8]) -> ControlFlow<()>) -> Result<(), JsonTextError> {
    if node.first() != Some(&b'[') {
        return Ok(());
    }
    let mut at = skip_space(node, 1);
    if node.get(at) == Some(&b']') {
        return Ok(());
    }
    loop {
        let (element, end) = value(node, at)?;
        if visit(element).is_break() {
            return Ok(());
        }
        match next_item(node, end, b']')? {
            Some(next) => at = next,
            None => return Ok(()),
        }
    }
}

/// Offset behind a comma, or `None` at the end of a list or object.
pub(super) fn next_item(node: &[u8], at: usize, end: u8) -> Result<Option<usize>, JsonTextError> {
    let at = skip_space(node, at);
    match node.get(at) {
        Some(b',') => Ok(Some(at + 1)),
        Some(byte) if *byte == end => Ok(None),
        _ => Err(JsonTextError::Syntax(at)),
    }
}
