//! A request as Python prepared it; it can be sent many times.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use pyo3::prelude::*;
use std::sync::Arc;

use crate::errors;

/// A request.
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) upstream: String,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// See [`Request`].
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct RequestHandle {
    pub(crate) request: Arc<Request>,
}

#[pymethods]
impl RequestHandle {
    /// Checks what goes over the wire.
    #[new]
    fn new(method: &str, upstream: String, target: String, headers: Vec<(Vec<u8>, Vec<u8>)>, body: Option<&[u8]>) -> PyResult<Self> {
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| errors::usage(&format!("method: {method:?} is no HTTP method; write e.g. GET")))?;
        let mut map = HeaderMap::with_capacity(headers.len());
        for (name, value) in headers {
            let shown = String::from_utf8_lossy(&name).into_owned();
            let name = HeaderName::from_bytes(&name)
                .map_err(|_| errors::usage(&format!("headers: {shown:?} is not a header's name; use letters, digits and '-'")))?;
            let value = HeaderValue::from_bytes(&value)
                .map_err(|_| errors::usage(&format!("headers: the value of {shown:?} holds a line break or a control character; leave it out")))?;
            map.append(name, value);
        }
        let body = body.map_or_else(Bytes::new, Bytes::copy_from_slice);
        Ok(Self { request: Arc::new(Request { method, upstream, target, headers: map, body }) })
    }
}
