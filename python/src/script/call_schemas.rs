//! Messages of calls of gRPC that tasks make.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use weir::load::grpc::{GrpcOptions, ServiceSchemas};

use crate::errors;

/// Methods that tasks call: JSON to messages, and back.
#[pyclass(frozen, module = "weir._weir")]
#[derive(Debug)]
pub(crate) struct CallSchemas(ServiceSchemas);

#[pymethods]
impl CallSchemas {
    /// Methods of the server of a URL, which files describe or its reflection.
    #[new]
    fn new(url: &str, proto: Vec<PathBuf>, proto_path: Vec<PathBuf>, protoset: Option<PathBuf>) -> PyResult<Self> {
        let files = GrpcOptions::of_files(proto, proto_path, protoset);
        ServiceSchemas::new(url, files).map(Self).map_err(|why| errors::usage(&why))
    }

    /// Body of a request of a method from JSON.
    fn encode<'py>(&self, py: Python<'py>, method: &str, json: &str) -> PyResult<Bound<'py, PyBytes>> {
        let body =
            py.detach(|| self.0.encode(method, json)).map_err(|why| errors::usage(&format!("{method}: {why}")))?;
        Ok(PyBytes::new(py, &body))
    }

    /// Messages of a response of a method as JSON, one line each.
    fn decode(&self, method: &str, body: &[u8], encoding: &str) -> PyResult<String> {
        let text = self.0.decode(method, body, encoding.as_bytes());
        text.map_err(|why| errors::usage(&format!("{method}: {why}")))
    }
}
