//! Headers of a response as received: in their order and spelling.

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// Reason phrase of a status line; empty if there is none.
pub(crate) fn reason_phrase(head: &Bytes) -> &[u8] {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii_end();
    line.splitn(3, |byte| *byte == b' ').nth(2).unwrap_or_default()
}

/// Pairs of name and value; `None` if a value is folded over lines.
pub(crate) fn pairs<'py>(py: Python<'py>, head: &Bytes) -> PyResult<Option<Bound<'py, PyList>>> {
    let list = PyList::empty(py);
    for line in head.split(|byte| *byte == b'\n').skip(1) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            break;
        }
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            return Ok(None);
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return Ok(None) };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        list.append((PyBytes::new(py, name.trim_ascii()), PyBytes::new(py, value)))?;
    }
    Ok(Some(list))
}
