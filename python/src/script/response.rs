//! Responses that tasks get.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDelta, PyString};
use weir::base::Nanos;
use weir::load::steps::decoded_body;
use weir::load::with_headers;
use weir::machine::lock::lock;
use weir::request::url::HttpUrl;

use super::request::ScriptRequest;
use super::session::ScriptSession;
use crate::{errors, json};

/// Response that a task gets. Nothing is parsed before it is looked at.
#[pyclass(frozen, module = "weir._weir", dict)]
#[derive(Debug)]
pub(crate) struct ScriptResponse {
    /// Status; 0 without a response.
    #[pyo3(get)]
    pub(super) status: u16,
    /// Request that the task has yielded.
    #[pyo3(get)]
    pub(super) request: Py<ScriptRequest>,
    /// Method of the request, after redirects.
    pub(super) method: Cow<'static, str>,
    pub(super) url: HttpUrl,
    pub(super) head: Vec<u8>,
    pub(super) body: Vec<u8>,
    pub(super) service: Nanos,
    /// Responses before it that were redirects.
    pub(super) history: Vec<Py<ScriptResponse>>,
    /// Why there is no response.
    pub(super) error: Option<String>,
    pub(super) verdict: Mutex<TaskVerdict>,
    /// Whether the task has left the response's `with` block.
    pub(super) is_left: AtomicBool,
    /// Function that is called at the end of its block.
    on_leave: OnceLock<Py<PyAny>>,
    decoded: OnceLock<Py<PyBytes>>,
}

/// Verdict of a task on a response.
#[derive(Debug, Default)]
pub(super) struct TaskVerdict {
    /// Why it is a failure, in order.
    pub(super) failures: Vec<String>,
    /// Whether it is a success, if the task has decided; otherwise its status does.
    pub(super) is_success: Option<bool>,
}

impl ScriptResponse {
    pub(super) fn new(
        (status, method): (u16, Cow<'static, str>),
        request: Py<ScriptRequest>,
        url: HttpUrl,
        (head, body): (&[u8], &[u8]),
        service: Nanos,
        history: Vec<Py<Self>>,
    ) -> Self {
        Self {
            status,
            request,
            method,
            url,
            head: head.to_vec(),
            body: body.to_vec(),
            service,
            history,
            error: None,
            verdict: Mutex::default(),
            is_left: AtomicBool::new(false),
            on_leave: OnceLock::new(),
            decoded: OnceLock::new(),
        }
    }

    fn header(&self, wanted: &str) -> Option<Vec<u8>> {
        with_headers(&self.head, |fields| {
            let found = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.to_vec())
        })
    }

    fn body<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        if let Some(body) = self.decoded.get() {
            return Ok(body.bind(py).clone());
        }
        let encoding = has_field(&self.head, b"content-encoding:").then(|| self.header("content-encoding")).flatten();
        let body = decoded_body(&self.body, encoding.as_deref()).map_err(|why| errors::usage(&why))?;
        let body = PyBytes::new(py, &body);
        let _ = self.decoded.set(body.clone().unbind());
        Ok(body)
    }
}

#[pymethods]
impl ScriptResponse {
    /// Status, as in requests.
    #[getter]
    fn status_code(&self) -> u16 {
        self.status
    }

    /// Method of the request, after redirects.
    #[getter]
    fn method(&self) -> &str {
        &self.method
    }

    /// Sets the function that is called at the end of the response's block.
    fn set_on_leave(&self, call: Py<PyAny>) {
        let _ = self.on_leave.set(call);
    }

    /// Calls the function of the end of the block.
    fn call_on_leave(&self, py: Python<'_>) -> PyResult<()> {
        self.on_leave.get().map_or(Ok(()), |call| call.call0(py).map(drop))
    }

    /// Whether the status is below 400.
    #[getter]
    fn ok(&self) -> bool {
        (1..400).contains(&self.status)
    }

    /// URL of the request, after redirects.
    #[getter]
    fn url(&self) -> String {
        self.url.to_string()
    }

    /// Path and query of the request, after redirects.
    #[getter]
    fn target(&self) -> String {
        String::from_utf8_lossy(self.url.target()).into_owned()
    }

    /// Why there is no response.
    #[getter]
    fn failure_kind(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Responses before it that were redirects.
    #[getter]
    fn history(&self, py: Python<'_>) -> Vec<Py<Self>> {
        self.history.iter().map(|one| one.clone_ref(py)).collect()
    }

    /// Session of the request.
    #[getter]
    fn session(&self, py: Python<'_>) -> Py<ScriptSession> {
        self.request.get().session.clone_ref(py)
    }

    /// Reason phrase.
    #[getter]
    fn reason(&self) -> String {
        let line = self.head.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
        String::from_utf8_lossy(line).splitn(3, ' ').nth(2).unwrap_or_default().to_owned()
    }

    /// Headers by name, in any case.
    #[getter]
    fn headers(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        static HEADERS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = slf.py();
        let pairs = with_headers(&slf.get().head, |fields| {
            let bytes = |text: &[u8]| PyBytes::new(py, text).unbind();
            fields.iter().map(|(name, value)| (bytes(name.as_bytes()), bytes(value))).collect::<Vec<_>>()
        });
        Ok(HEADERS.import(py, "weir._headers", "Headers")?.call_method1("_of", (pairs,))?.unbind())
    }

    /// Body after content decoding.
    #[getter]
    fn content<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.body(py)
    }

    /// Body as it came.
    #[getter]
    fn raw_length(&self) -> usize {
        self.body.len()
    }

    /// Name of the characters' encoding.
    #[getter]
    fn encoding(&self) -> Option<String> {
        let kind = String::from_utf8_lossy(&self.header("content-type")?).into_owned();
        let mut parameters = kind.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
        let (_, name) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
        Some(name.trim().trim_matches(['"', '\'']).to_owned())
    }

    /// Body as text, in the encoding that its type names, or UTF-8.
    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let body = self.body(py)?;
        match self.encoding() {
            Some(name) if !name.eq_ignore_ascii_case("utf-8") => {
                let text = body.call_method1("decode", (name, "replace"));
                text.or_else(|_| body.call_method1("decode", ("utf-8", "replace")))
            }
            _ => Ok(PyString::new(py, &String::from_utf8_lossy(body.as_bytes())).into_any()),
        }
    }

    /// Body as JSON.
    #[pyo3(signature = (**options))]
    fn json<'py>(
        &self,
        py: Python<'py>,
        options: Option<&Bound<'py, pyo3::types::PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let body = self.body(py)?;
        let read = if options.is_none() { json::read(py, body.as_bytes()) } else { None };
        match read {
            Some(read) => Ok(read),
            None => LOADS.import(py, "json", "loads")?.call((body,), options),
        }
    }

    /// Time from the send to the whole response.
    #[getter]
    fn elapsed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDelta>> {
        let us = self.service.0 / 1000;
        let (seconds, us) = ((us / 1_000_000) as i32, (us % 1_000_000) as i32);
        PyDelta::new(py, seconds / 86_400, seconds % 86_400, us, true)
    }

    /// Decides whether the response is a success, with a reason if it is not.
    #[pyo3(signature = (condition, reason=None))]
    fn check(&self, condition: bool, reason: Option<&str>) -> bool {
        if !condition {
            let mut verdict = lock(&self.verdict);
            verdict.failures.push(reason.unwrap_or("check failed").to_owned());
            verdict.is_success = Some(false);
        }
        condition
    }

    /// Decides that the response is a success.
    fn success(&self) {
        *lock(&self.verdict) = TaskVerdict { failures: Vec::new(), is_success: Some(true) };
    }

    /// Decides that the response is a failure.
    fn failure(&self, reason: &Bound<'_, PyAny>) -> PyResult<()> {
        let reason = match reason.is_instance_of::<pyo3::exceptions::PyBaseException>() {
            true => reason.repr()?.to_cow()?.into_owned(),
            false => reason.str()?.to_cow()?.into_owned(),
        };
        *lock(&self.verdict) = TaskVerdict { failures: vec![reason], is_success: Some(false) };
        Ok(())
    }

    /// Reasons that the task has decided on; an empty text for a success, None without a decision.
    #[getter]
    fn decided(&self) -> Option<String> {
        let verdict = lock(&self.verdict);
        verdict.is_success.map(|_| verdict.failures.join("; "))
    }

    /// Exception of a response that is not a success.
    #[getter]
    fn error<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(slf.py(), "exception_of")?.call1((slf,))
    }

    /// Raises an exception for a status from 400 on.
    fn raise_for_status(slf: &Bound<'_, Self>) -> PyResult<()> {
        helper(slf.py(), "raise_for_status")?.call1((slf,)).map(drop)
    }

    /// Cookies that the response sets, by name.
    #[getter]
    fn cookies<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(slf.py(), "cookies_of")?.call1((slf,))
    }

    fn close(&self) {}

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__<'py>(
        slf: &Bound<'py, Self>,
        kind: &Bound<'py, PyAny>,
        error: &Bound<'py, PyAny>,
        _traceback: &Bound<'py, PyAny>,
    ) -> PyResult<bool> {
        let is_handled = match kind.is_none() {
            true => slf.get().call_on_leave(slf.py()).map(|()| true),
            false => helper(slf.py(), "leave").and_then(|leave| leave.call1((slf, error))?.extract()),
        };
        slf.get().is_left.store(true, Ordering::Relaxed);
        is_handled
    }

    fn __bool__(&self) -> bool {
        self.ok()
    }

    fn __repr__(&self) -> String {
        format!("<Response [{}]>", self.status)
    }
}

/// Function of the package about responses.
fn helper<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("weir._task_response")?.getattr(name)
}

/// Whether a head has a field of this name, in lower case with its colon.
pub(super) fn has_field(head: &[u8], name: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').any(|line| line.get(..name.len()).is_some_and(|of| of.eq_ignore_ascii_case(name)))
}
