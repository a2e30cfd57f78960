//! Outcome of a call, for Python: attributes are converted when they are read.

use std::sync::Arc;

use http::Version;
use http::header::CONTENT_ENCODING;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use weir::net::client::FailurePoint;

use super::engine::{ClientCallEnd, ClientCallOutcome};
use super::not_repeated;
use super::request::{ClientRequest, SentRequestHandle, pairs};
use crate::transport::received;

/// Outcome of a call.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct ResponseHandle {
    request: Arc<ClientRequest>,
    outcome: ClientCallOutcome,
}

/// Reason, upstream, outcome, status, detail, start and duration in milliseconds.
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
    /// `responded`, `failed` or `deadline_exceeded`.
    #[getter]
    fn ended(&self) -> &'static str {
        match self.outcome.end {
            ClientCallEnd::Responded => "responded",
            ClientCallEnd::AllFailed => "failed",
            ClientCallEnd::DeadlineExceeded => "deadline_exceeded",
            ClientCallEnd::NoPermit => "no_permit",
        }
    }

    /// Status of the response; 0 without one.
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

    /// Pairs of name, in lower case, and value.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        match &self.outcome.response {
            Some(head) => pairs(py, &head.headers),
            None => Ok(PyList::empty(py)),
        }
    }

    /// Pairs of name and value in the order and spelling of the response, as far as they are known.
    #[getter]
    fn received_headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let received = self.outcome.response.as_ref().and_then(|head| head.received.as_ref());
        match received.map(|head| received::pairs(py, head)).transpose()?.flatten() {
            Some(list) => Ok(list),
            None => self.headers(py),
        }
    }

    /// Reason phrase of the status; empty if there is none.
    #[getter]
    fn reason_phrase<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let received = self.outcome.response.as_ref().and_then(|head| head.received.as_ref());
        PyBytes::new(py, received.map_or(&[], received::reason_phrase))
    }

    /// Content-Encoding, if any; several are joined by commas.
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

    /// Body as received, before decoding.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.outcome.response.as_ref().map_or(&[], |head| &head.body))
    }

    /// Whether the body is whole, and not received in pieces.
    #[getter]
    fn is_whole(&self) -> bool {
        self.outcome.response.as_ref().is_none_or(|head| head.is_whole)
    }

    /// Number of attempts.
    #[getter]
    fn attempt_count(&self) -> usize {
        self.outcome.attempts.len()
    }

    /// Length of the body as received.
    #[getter]
    fn body_length(&self) -> usize {
        self.outcome.response.as_ref().map_or(0, |head| head.body.len())
    }

    /// Maximum body in bytes, as received and decoded; `None` is unlimited.
    #[getter]
    fn max_response(&self) -> Option<usize> {
        Some(self.outcome.max_response).filter(|max| *max != usize::MAX)
    }

    /// Whether an attempt failed since its response was longer than the maximum.
    #[getter]
    fn is_too_large(&self) -> bool {
        self.outcome.attempts.iter().any(|attempt| attempt.end.failure_point() == FailurePoint::TooLong)
    }

    /// What failed of the last attempt, where its outcome does not say it: `other`, `connect_timeout`, `write_timeout`,
    /// `stream`, `content_length`, `body`, `too_long` or `rate_limit`.
    #[getter]
    fn failure_point(&self) -> &'static str {
        self.outcome.attempts.last().map_or(FailurePoint::Other, |attempt| attempt.end.failure_point()).name()
    }

    #[getter]
    fn request(&self) -> SentRequestHandle {
        SentRequestHandle(Arc::clone(&self.request))
    }

    /// Duration of the call in seconds.
    #[getter]
    fn elapsed_s(&self) -> f64 {
        self.outcome.duration.as_millis_f64() / 1e3
    }

    /// Extra attempts that were not sent, for want of budget or a slot.
    #[getter]
    fn skipped(&self) -> u32 {
        self.outcome.unsent.total()
    }

    /// These attempts, and the limit that stopped them, or why a failure was not repeated, as text; `None` if all were
    /// sent.
    #[getter]
    fn not_sent(&self) -> Option<String> {
        let unsent = &self.outcome.unsent;
        if unsent.total() == 0 {
            return unsent.not_repeated.and_then(|reason| not_repeated::text(reason, &self.request.method));
        }
        let remedy = if unsent.is_by_budget() { "; budget=None lifts it" } else { "" };
        Some(format!("{unsent}{remedy}"))
    }

    /// See [`AttemptRow`].
    #[getter]
    fn attempts(&self) -> Vec<AttemptRow> {
        let row = |attempt: &super::engine::ClientAttempt| {
            let (outcome, status, detail) = attempt.end();
            let times = (attempt.started.as_millis_f64(), attempt.duration.as_millis_f64());
            let upstream = self.outcome.upstream.to_string();
            (attempt.reason, upstream, outcome, status, detail.map(str::to_owned), times.0, times.1)
        };
        self.outcome.attempts.iter().map(row).collect()
    }
}
