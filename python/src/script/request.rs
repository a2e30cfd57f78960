//! Requests that tasks yield.

use std::borrow::Cow;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use weir::request::secret_mask::without_secrets;

use super::session::ScriptSession;

/// Request that a task yields.
#[pyclass(frozen, module = "weir._weir")]
#[derive(Debug)]
pub(crate) struct ScriptRequest {
    pub(super) session: Py<ScriptSession>,
    pub(super) method: Cow<'static, str>,
    /// Absolute URL, or what follows the session's.
    pub(super) url: String,
    /// Name of the step; otherwise method and URL as they are given.
    pub(super) name: Option<String>,
    /// Headers that replace those of the session; without a value they remove it.
    pub(super) headers: Vec<(String, Option<String>)>,
    pub(super) body: Option<Vec<u8>>,
    /// Timeout in seconds, if it has one of its own.
    pub(super) timeout_s: Option<f64>,
    pub(super) follows_redirects: bool,
    /// Whether a request without a response is a response of status 0, and not an exception.
    pub(super) catches: bool,
    /// Whether the task may decide about the response later than before its next request.
    pub(super) is_watched: bool,
    /// Whether the task reads the response as a stream of events.
    pub(super) is_streamed: bool,
}

impl ScriptRequest {
    /// Request without anything of its own.
    pub(super) fn plain(session: Py<ScriptSession>, method: &str, url: String) -> Self {
        Self {
            session,
            method: shared_method(method),
            url,
            name: None,
            headers: Vec::new(),
            body: None,
            timeout_s: None,
            follows_redirects: true,
            catches: false,
            is_watched: false,
            is_streamed: false,
        }
    }

    /// Name of the step that the request is counted under.
    pub(super) fn step_name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{} {}", self.method, self.url))
    }
}

#[pymethods]
impl ScriptRequest {
    #[new]
    #[pyo3(signature = (session, method, url, name=None, headers=None, body=None, timeout=None, redirects=true,
        catches=false, is_watched=false, is_streamed=false))]
    #[expect(clippy::too_many_arguments, reason = "what a request has")]
    fn new(
        session: Py<ScriptSession>,
        method: &str,
        url: String,
        name: Option<String>,
        headers: Option<&Bound<'_, PyDict>>,
        body: Option<&[u8]>,
        timeout: Option<f64>,
        redirects: bool,
        catches: bool,
        is_watched: bool,
        is_streamed: bool,
    ) -> PyResult<Self> {
        let headers = match headers {
            Some(headers) => headers.iter().map(|(name, value)| header(&name, &value)).collect::<PyResult<_>>()?,
            None => Vec::new(),
        };
        Ok(Self {
            name,
            headers,
            body: body.map(<[u8]>::to_vec),
            timeout_s: timeout,
            follows_redirects: redirects,
            catches,
            is_watched,
            is_streamed,
            ..Self::plain(session, method, url)
        })
    }

    /// Method.
    #[getter]
    fn method(&self) -> &str {
        &self.method
    }

    /// URL as it was given.
    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    /// Body.
    #[getter]
    fn body(&self) -> Option<&[u8]> {
        self.body.as_deref()
    }

    /// Headers that replace those of the session.
    #[getter]
    fn headers(&self) -> Vec<(&str, Option<&str>)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.as_deref())).collect()
    }

    fn __repr__(&self) -> String {
        format!("<request {} {}>", self.method, without_secrets(&self.url))
    }
}

/// Method, whose common ones are copied nowhere.
fn shared_method(method: &str) -> Cow<'static, str> {
    const COMMON_METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    match COMMON_METHODS.into_iter().find(|common| *common == method) {
        Some(common) => Cow::Borrowed(common),
        None => Cow::Owned(method.to_owned()),
    }
}

/// Header by name and value; without a value it removes that of the session.
///
/// # Errors
/// An exception of the value's own text.
pub(super) fn header(name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<(String, Option<String>)> {
    let name = text(name)?;
    Ok((name, if value.is_none() { None } else { Some(text(value)?) }))
}

/// Text of a header, which may be bytes.
fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast_exact::<PyString>() {
        return Ok(text.to_str()?.to_owned());
    }
    match value.cast::<PyBytes>() {
        Ok(bytes) => Ok(String::from_utf8_lossy(bytes.as_bytes()).into_owned()),
        Err(_) => Ok(value.str()?.to_cow()?.into_owned()),
    }
}
