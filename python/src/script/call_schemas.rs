//! Messages of calls of gRPC that tasks make.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use weir::load::Options;
use weir::load::grpc::{GrpcOptions, ServiceSchemas};

use crate::errors;

/// Way of a load to its services: certificates, addresses, credentials and timeout, for questions before its calls.
#[pyclass(frozen, module = "weir._weir")]
#[derive(Debug)]
pub(crate) struct CallRoute(pub(super) Arc<Options>);

/// Methods that tasks call: JSON to messages, and back.
#[pyclass(frozen, module = "weir._weir")]
#[derive(Debug)]
pub(crate) struct CallSchemas(ServiceSchemas);

#[pymethods]
impl CallSchemas {
    /// Methods of the server of a URL, which files describe or its reflection, asked on the way of the load; `headers`
    /// are those of all calls.
    #[new]
    fn new(
        url: &str,
        proto: Vec<PathBuf>,
        proto_path: Vec<PathBuf>,
        protoset: Option<PathBuf>,
        headers: Vec<String>,
        route: &CallRoute,
    ) -> PyResult<Self> {
        let files = GrpcOptions::of_files(proto, proto_path, protoset);
        ServiceSchemas::of_load(url, files, headers, &route.0).map(Self).map_err(|why| errors::flags(&why))
    }

    /// Body of a request of a method from JSON, compressed if its metadata or that of all calls says so.
    #[expect(clippy::needless_pass_by_value, reason = "Python hands over owned values")]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        json: &str,
        metadata: Vec<(String, String)>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let body = py
            .detach(|| self.0.encode(method, json, &metadata))
            .map_err(|why| errors::flags(&format!("{method}: {why}")))?;
        Ok(PyBytes::new(py, &body))
    }

    /// Messages of a response of a method as JSON, one line each.
    fn decode(&self, method: &str, body: &[u8], encoding: &str) -> PyResult<String> {
        let text = self.0.decode(method, body, encoding.as_bytes());
        text.map_err(|why| errors::flags(&format!("{method}: {why}")))
    }
}
