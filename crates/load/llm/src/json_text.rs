//! JSON texts: contents of strings, and members by name.

use std::ops::ControlFlow;

/// Name of a member, without its quotes, and its value.
pub(crate) type JsonMember<'j> = (&'j [u8], &'j [u8]);

/// Appends a text as the content of a JSON string, without its quotes.
pub(crate) fn push_escaped(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
            }
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Appends a text as a JSON string.
pub(crate) fn push_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    push_escaped(text, out);
    out.push(b'"');
}

/// Content of a JSON string, escaped as it is; none of another value.
pub(crate) fn string_content(value: &[u8]) -> Option<&[u8]> {
    value.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// Content of a JSON string as text; none of another value.
pub(crate) fn string_text(value: &[u8]) -> Option<String> {
    serde_json::from_slice(value).ok()
}

/// Members of an object, in order; empty for another value.
pub(crate) fn members(object: &[u8]) -> Vec<JsonMember<'_>> {
    let mut found = Vec::new();
    // What cannot be read has been found before, where the whole text was parsed.
    let _ = weir_json::members(object, |name, value| {
        found.push((&name[1..name.len() - 1], value));
        ControlFlow::Continue(())
    });
    found
}

/// Elements of a list; empty for another value.
pub(crate) fn elements(list: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let _ = weir_json::elements(list, |element| {
        found.push(element);
        ControlFlow::Continue(())
    });
    found
}

/// Member of an object.
pub(crate) fn member<'j>(object: &'j [u8], wanted: &[u8]) -> Option<&'j [u8]> {
    let mut found = None;
    let _ = weir_json::members(object, |name, value| {
        if &name[1..name.len() - 1] == wanted {
            found = Some(value);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    found
}

/// Whether a value is an object.
pub(crate) fn is_object(value: &[u8]) -> bool {
    value.first() == Some(&b'{')
}

/// Whether a value is a list.
pub(crate) fn is_list(value: &[u8]) -> bool {
    value.first() == Some(&b'[')
}
