//! Descent along a path of names and indices.

use std::ops::ControlFlow;

use super::error::JsonTextError;
use super::evaluate::is_named;
use super::scan::{elements, end_of_text, next_item, skip_space, skip_string, skip_value, value};
use super::segment::{Segment, Selector};

/// Node that was found, if any, and the offset behind the value that was searched.
type Descent<'b> = Result<(Option<&'b [u8]>, usize), JsonTextError>;

/// Node that the segments, each of one name or index, select.
pub(super) fn find<'b>(segments: &[Segment], body: &'b [u8]) -> Result<Option<&'b [u8]>, JsonTextError> {
    let (found, end) = descend(segments, body, skip_space(body, 0))?;
    end_of_text(body, end)?;
    Ok(found)
}

/// Descends into the value at `at`, and goes on to its end: a body that is cut off has no values.
fn descend<'b>(segments: &[Segment], text: &'b [u8], at: usize) -> Descent<'b> {
    let Some((segment, rest)) = segments.split_first() else {
        return value(text, at).map(|(node, end)| (Some(node), end));
    };
    match segment.selectors.as_slice() {
        [Selector::Name(name)] => member(rest, text, at, name),
        [Selector::Index(index)] if *index >= 0 => item(rest, text, at, *index),
        // An index from the end needs the end first.
        [Selector::Index(index)] => item(rest, text, at, count(text, at)?.saturating_add(*index)),
        _ => Ok((None, skip_value(text, at)?)),
    }
}

/// Descends into the first member of a name, of the object at `at`.
fn member<'b>(rest: &[Segment], text: &'b [u8], at: usize, name: &str) -> Descent<'b> {
    let (mut found, mut is_searched) = (None, false);
    let end = walk(text, at, b'{', b'}', |at| {
        if text.get(at) != Some(&b'"') {
            return Err(JsonTextError::Syntax(at));
        }
        let end = skip_string(text, at)?;
        let colon = skip_space(text, end);
        if text.get(colon) != Some(&b':') {
            return Err(JsonTextError::Syntax(colon));
        }
        let start = skip_space(text, colon + 1);
        if is_searched || !is_named(&text[at..end], name) {
            return skip_value(text, start);
        }
        is_searched = true;
        let (node, end) = descend(rest, text, start)?;
        found = node;
        Ok(end)
    })?;
    Ok((found, end))
}

/// Descends into an item of the list at `at`.
fn item<'b>(rest: &[Segment], text: &'b [u8], at: usize, index: i64) -> Descent<'b> {
    let (mut found, mut place) = (None, -1);
    let end = walk(text, at, b'[', b']', |at| {
        place += 1;
        if place != index {
            return skip_value(text, at);
        }
        let (node, end) = descend(rest, text, at)?;
        found = node;
        Ok(end)
    })?;
    Ok((found, end))
}

/// Goes through the list or object at `at`; `skip` is given the offset of each item and returns its end. Skips other
/// values. Returns the end.
fn walk(
    text: &[u8],
    at: usize,
    start: u8,
    end: u8,
    mut skip: impl FnMut(usize) -> Result<usize, JsonTextError>,
) -> Result<usize, JsonTextError> {
    if text.get(at) != Some(&start) {
        // A text that is not JSON is a mistake of its service, and not a value without this member.
        return skip_value(text, at);
    }
    let mut at = skip_space(text, at + 1);
    if text.get(at) == Some(&end) {
        return Ok(at + 1);
    }
    loop {
        let behind = skip(skip_space(text, at))?;
        match next_item(text, behind, end)? {
            Some(next) => at = next,
            None => return Ok(skip_space(text, behind) + 1),
        }
    }
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
