//! Request prepared by Python; it can be sent many times.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::upstream_plan::UpstreamPlan;
use crate::errors;
use weir::request::request_framing::CallerFraming;

/// Method, URL, headers and body of a request. Responses keep it, so it holds no connections.
#[derive(Debug)]
pub(crate) struct ClientRequest {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    /// Header lines in the caller's order and spelling, but for Connection and framing headers.
    pub(crate) header_lines: Option<Bytes>,
    pub(crate) body: Bytes,
}

/// Prepared request with its policy.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct RequestHandle {
    pub(crate) request: Arc<ClientRequest>,
    pub(crate) planned: Arc<UpstreamPlan>,
}

/// Request of a response.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct SentRequestHandle(pub(crate) Arc<ClientRequest>);

impl ClientRequest {
    /// Validates method and headers.
    ///
    /// # Errors
    /// `UsageError` for an invalid method or header.
    pub(crate) fn new(
        method: &str,
        url: String,
        target: String,
        headers: &[(Vec<u8>, Vec<u8>)],
        body: Option<&[u8]>,
    ) -> PyResult<Self> {
        let (method, map) = (parse_method(method)?, header_map(headers)?);
        let body = body.map_or_else(Bytes::new, Bytes::copy_from_slice);
        check_framing(&method, &map, body.len())?;
        Ok(Self { method, url, target, headers: map, header_lines: None, body })
    }
}

/// Parses a method.
pub(crate) fn parse_method(method: &str) -> PyResult<Method> {
    Method::from_bytes(method.as_bytes())
        .map_err(|_| errors::usage(&format!("method: invalid method {method:?}; write e.g. GET")))
}

/// Validates headers.
pub(crate) fn header_map<T: AsRef<[u8]>>(headers: &[(T, T)]) -> PyResult<HeaderMap> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let shown = || shown_header_name(&String::from_utf8_lossy(name.as_ref()));
        let name = HeaderName::from_bytes(name.as_ref())
            .map_err(|_| errors::usage(&format!("headers: invalid name {:?}; use letters, digits and '-'", shown())))?;
        let value = HeaderValue::from_bytes(value.as_ref()).map_err(|_| {
            errors::usage(&format!("headers: the value of {:?} has a control character; remove it", shown()))
        })?;
        map.append(name, value);
    }
    Ok(map)
}

/// Checks that the headers do not contradict the length of the body.
pub(crate) fn check_framing(method: &Method, headers: &HeaderMap, length: usize) -> PyResult<()> {
    let pairs = headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
    CallerFraming::of(pairs, method.as_str(), length as u64)
        .map(drop)
        .map_err(|error| errors::usage(&format!("headers: {error}")))
}

#[pymethods]
impl SentRequestHandle {
    #[getter]
    fn method(&self) -> &str {
        self.0.method.as_str()
    }

    #[getter]
    fn url(&self) -> &str {
        &self.0.url
    }

    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        pairs(py, &self.0.headers)
    }

    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.body)
    }
}

/// Name of a header for messages: what follows a colon or a space would be a value.
pub(crate) fn shown_header_name(name: &str) -> String {
    let shown = name.split(|c: char| c == ':' || c.is_whitespace()).next().unwrap_or_default();
    if shown == name { shown.to_owned() } else { format!("{shown}...") }
}

/// Pairs of name and value, in order.
pub(crate) fn pairs<'py>(py: Python<'py>, headers: &HeaderMap) -> PyResult<Bound<'py, PyList>> {
    let pair = |(name, value): (&HeaderName, &HeaderValue)| {
        (PyBytes::new(py, name.as_ref()), PyBytes::new(py, value.as_bytes()))
    };
    PyList::new(py, headers.iter().map(pair).collect::<Vec<_>>())
}
