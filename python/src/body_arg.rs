//! A body as Python has it.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use weir::load::options::RequestBodySource;

/// Body: bytes, text, or the path of a file.
pub(crate) struct BodyArg(pub(crate) RequestBodySource);

impl FromPyObject<'_, '_> for BodyArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Self(RequestBodySource::Bytes(text.to_cow()?.as_bytes().to_vec())));
        }
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(Self(RequestBodySource::Bytes(bytes.as_bytes().to_vec())));
        }
        let path: PathBuf = value
            .extract()
            .map_err(|_| PyTypeError::new_err(format!("a body is str, bytes or a path, not {}", value.get_type())))?;
        Ok(Self(RequestBodySource::File(path)))
    }
}
