//! Python objects -> text of JSON, as `json.dumps(allow_nan=False)` writes it.

use std::io::Write as _;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::MAX_DEPTH;

/// Writes an object; `None` if Python's module has to, or reports an error.
pub(crate) fn write(value: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(128);
    write_value(value, 0, &mut out)?;
    Some(out)
}

/// Only the types themselves: a subclass may have a text of its own.
fn write_value(value: &Bound<'_, PyAny>, depth: usize, out: &mut Vec<u8>) -> Option<()> {
    if depth > MAX_DEPTH {
        return None;
    }
    if let Ok(text) = value.cast_exact::<PyString>() {
        return write_string(text.to_str().ok()?, out);
    }
    if let Ok(number) = value.cast_exact::<PyInt>() {
        let number: i64 = number.extract().ok()?;
        return write!(out, "{number}").ok();
    }
    if let Ok(object) = value.cast_exact::<PyDict>() {
        out.push(b'{');
        for (number, (key, value)) in object.iter().enumerate() {
            if number > 0 {
                out.extend_from_slice(b", ");
            }
            write_string(key.cast_exact::<PyString>().ok()?.to_str().ok()?, out)?;
            out.extend_from_slice(b": ");
            write_value(&value, depth + 1, out)?;
        }
        out.push(b'}');
        return Some(());
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        return write_items(list.iter(), depth, out);
    }
    if let Ok(items) = value.cast_exact::<PyTuple>() {
        return write_items(items.iter(), depth, out);
    }
    if value.is_none() {
        out.extend_from_slice(b"null");
    } else if let Ok(is_true) = value.cast_exact::<PyBool>() {
        out.extend_from_slice(if is_true.is_true() { b"true" } else { b"false" });
    } else if value.cast_exact::<PyFloat>().is_ok_and(|float| float.value().is_finite()) {
        out.extend_from_slice(value.repr().ok()?.to_str().ok()?.as_bytes());
    } else {
        return None;
    }
    Some(())
}

fn write_items<'py>(items: impl Iterator<Item = Bound<'py, PyAny>>, depth: usize, out: &mut Vec<u8>) -> Option<()> {
    out.push(b'[');
    for (number, item) in items.enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        write_value(&item, depth + 1, out)?;
    }
    out.push(b']');
    Some(())
}

/// Writes a string in ASCII.
fn write_string(text: &str, out: &mut Vec<u8>) -> Option<()> {
    out.push(b'"');
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\') {
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return Some(());
    }
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            ' '..='~' => out.push(character as u8),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").ok()?;
                }
            }
        }
    }
    out.push(b'"');
    Some(())
}
