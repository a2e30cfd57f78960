//! Descent along a path of names and indices.

use std::ops::ControlFlow;

use super::error::JsonTextError;
use super::evaluate::is_named;
use super::scan::{elements, next_item, skip_space, skip_string, skip_value, value};
use super::segment::{Segment, Selector};

/// Node that the segments, each of one name or index, select.
pub(super) fn find<'b>(segments: &[Segment], body: &'b [u8]) -> Result<Option<&'b [u8]>, JsonTextError> {
    let mut at = skip_space(body, 0);
    for segment in segments {
        let found = match segment.selectors.as_slice() {
            [Selector::Name(name)] => member(body, at, name)?,
            [Selector::Index(index)] if *index >= 0 => item(body, at, *index)?,
            // An index from the end needs the end.
            [Selector::Index(index)] => match count(body, at)?.checked_add(*index) {
                Some(from_start) if from_start >= 0 => item(body, at, from_start)?,
                _ => None,
            },
            _ => None,
        };
        match found {
            Some(next) => at = next,
            None => return Ok(None),
        }
    }
    value(body, at).map(|(node, _)| Some(node))
}

/// Offset of the value of the first member of a name, of the object at `at`.
fn member(text: &[u8], at: usize, name: &str) -> Result<Option<usize>, JsonTextError> {
    let Some(mut at) = first(text, at, b'{', b'}')? else { return Ok(None) };
    loop {
        if text.get(at) != Some(&b'"') {
            return Err(JsonTextError::Syntax(at));
        }
        let end = skip_string(text, at)?;
        let colon = skip_space(text, end);
        if text.get(colon) != Some(&b':') {
            return Err(JsonTextError::Syntax(colon));
        }
        let start = skip_space(text, colon + 1);
        if is_named(&text[at..end], name) {
            return Ok(Some(start));
        }
        match next_item(text, skip_value(text, start)?, b'}')? {
            Some(next) => at = skip_space(text, next),
            None => return Ok(None),
        }
    }
}

/// Offset of an item of the list at `at`.
fn item(text: &[u8], at: usize, index: i64) -> Result<Option<usize>, JsonTextError> {
    let Some(mut at) = first(text, at, b'[', b']')? else { return Ok(None) };
    for _ in 0..index {
        match next_item(text, skip_value(text, at)?, b']')? {
            Some(next) => at = skip_space(text, next),
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

/// Offset of what is first in the list or object at `at`; none in an empty one, and in other values.
fn first(text: &[u8], at: usize, start: u8, end: u8) -> Result<Option<usize>, JsonTextError> {
    if text.get(at) != Some(&start) {
        // A text that is not JSON is a mistake of its service, and not a value without this member.
        return skip_value(text, at).map(|_| None);
    }
    let at = skip_space(text, at + 1);
    Ok(if text.get(at) == Some(&end) { None } else { Some(at) })
}

/// Number of items of the list at `at`; 0 for other values.
fn count(text: &[u8], at: usize) -> Result<i64, JsonTextError> {
    let mut items = 0;
    elements(value(text, at)?.0, |_| {
        items += 1;
        ControlFlow::Continue(())
    })?;
    Ok(items)
}
