//! Members of objects by name, and what their values hold.

use std::ops::ControlFlow;

use weir_json::{JsonTextError, elements, members};

use super::LlmEvent;

/// Visits all members of an object by their names. A name with an escape is not one of an API.
pub(super) fn each_member<'b>(
    object: &'b [u8],
    mut visit: impl FnMut(&'b [u8], &'b [u8]) -> Result<(), JsonTextError>,
) -> Result<(), JsonTextError> {
    let mut result = Ok(());
    members(object, |name, value| {
        result = visit(&name[1..name.len() - 1], value);
        if result.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    result
}

/// Visits the members of an event, but for `error`, which is the same in all APIs.
pub(super) fn each_event_member<'b>(
    data: &'b [u8],
    event: &mut LlmEvent,
    mut visit: impl FnMut(&'b [u8], &'b [u8], &mut LlmEvent) -> Result<(), JsonTextError>,
) -> Result<(), JsonTextError> {
    each_member(data, |name, value| {
        if name == b"error" {
            event.is_error |= is_set(value);
            return Ok(());
        }
        visit(name, value, event)
    })
}

/// Visits all elements of a list.
pub(super) fn each_element<'b>(
    list: &'b [u8],
    mut visit: impl FnMut(&'b [u8]) -> Result<(), JsonTextError>,
) -> Result<(), JsonTextError> {
    let mut result = Ok(());
    elements(list, |element| {
        result = visit(element);
        if result.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    result
}

/// Whether the value is a string that is not empty.
pub(super) fn is_text(value: &[u8]) -> bool {
    value.len() > 2 && value[0] == b'"'
}

/// Content of a string without escapes; empty if it is another value.
pub(super) fn plain_text(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or_default()
}

/// Whole number.
pub(super) fn count(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Whether the value is neither null nor false: an error, for instance.
pub(super) fn is_set(value: &[u8]) -> bool {
    !matches!(value, b"null" | b"false")
}
