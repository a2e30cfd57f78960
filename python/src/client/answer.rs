//! How a call ended, as Python reads it: nothing is converted before it is asked for.

use std::sync::Arc;

use http::Version;
use http::header::CONTENT_ENCODING;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::engine::{ClientCallEnd, ClientCallOutcome};
use super::request::{ClientRequest, SentRequestHandle, pairs};

/// How a call ended.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct ResponseHandle {
    request: Arc<ClientRequest>,
    outcome: ClientCallOutcome,
}

/// Why, upstream, outcome, status, cause, start and length in milliseconds.
type AttemptRow = (&'static str, String, &'static str, Option<u16>, Option<String>, f64, f64);

impl ResponseHandle {
    pub(crate) fn new(request: Arc<ClientRequest>, outcome: ClientCallOutcome) -> Self {
        Self { request, outcome }
    }

    pub(crate) fn has_response(&self) -> bool {
        self.outcome.end == ClientCallEnd::Responded
    }
}

#[pymethods]
impl ResponseHandle {
    /// `answered`, `failed` or `late`.
    #[getter]
    fn ended(&self) -> &'static str {
        match self.outcome.end {
            ClientCallEnd::Responded => "answered",
            ClientCallEnd::AllFailed => "failed",
            ClientCallEnd::DeadlineExceeded => "late",
        }
    }

    /// The status; 0 without an answer.
    #[getter]
    fn status(&self) -> u16 {
        self.outcome.response.as_ref().map_or(0, |head| head.status.as_u16())
    }

    #[getter]
    fn version(&self) -> &'static str {
        match self.outcome.response.as_ref().map(|head| head.version) {
            Some(Version::HTTP_2) => "HTTP/2",
            Some(Version::HTTP_10) => "HTTP/1.0",
            _ => "HTTP/1.1",
        }
    }

    /// Names and values, names in lower case.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        match &self.outcome.response {
            Some(head) => pairs(py, &head.headers),
            None => Ok(PyList::empty(py)),
        }
    }

    /// Content-Encoding, if there is one.
    #[getter]
    fn coding(&self) -> Option<String> {
        let head = self.outcome.response.as_ref()?;
        let mut values = head.headers.get_all(CONTENT_ENCODING).iter();
        let mut all = String::from_utf8_lossy(values.next()?.as_bytes()).into_owned();
        for value in values {
            all.push(',');
            all.push_str(&String::from_utf8_lossy(value.as_bytes()));
        }
        Some(all)
    }

    /// As it came, before any decoding.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.outcome.response.as_ref().map_or(&[], |head| &head.body))
    }

    #[getter]
    fn request(&self) -> SentRequestHandle {
        SentRequestHandle(Arc::clone(&self.request))
    }

    /// From the call's start to its end.
    #[getter]
    fn elapsed_s(&self) -> f64 {
        self.outcome.duration.as_millis_f64() / 1e3
    }

    /// Extra attempts that the budget did not allow.
    #[getter]
    fn budget_exhausted(&self) -> u32 {
        self.outcome.budget_exhausted
    }

    /// See [`AttemptRow`].
    #[getter]
    fn attempts(&self) -> Vec<AttemptRow> {
        let line = |attempt: &super::engine::ClientAttempt| {
            let (outcome, status, cause) = attempt.end();
            let times = (attempt.started.as_millis_f64(), attempt.duration.as_millis_f64());
            let upstream = self.outcome.upstream.to_string();
            (attempt.reason, upstream, outcome, status, cause.map(str::to_owned), times.0, times.1)
        };
        self.outcome.attempts.iter().map(line).collect()
    }
}
