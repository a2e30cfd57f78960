//! Results of jobs for Python, converted on access.

use std::sync::Arc;

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use weir::base::Nanos;
use weir::send::{FinishedJob, JobDetail, State};

/// Result of a job.
#[derive(Debug)]
pub(crate) struct JobResult {
    number: u64,
    id: Option<String>,
    state: State,
    status: Option<u16>,
    body: Bytes,
    failure: Option<String>,
    attempts: u32,
    maybe_sent: bool,
    key: Option<Arc<str>>,
    created_ms: i64,
    sent_ms: Option<i64>,
    ended_ms: i64,
    service: Option<Nanos>,
}

impl JobResult {
    /// Result from an event of the sender.
    pub(crate) fn from_sender(ended: &FinishedJob, keys: &[Arc<str>]) -> Self {
        let last = ended.last_attempt.as_ref();
        Self {
            number: ended.entry.number,
            id: ended.entry.job.id.clone(),
            state: ended.state,
            status: ended.status(),
            body: ended.body.clone(),
            failure: ended.failure().map(str::to_owned),
            attempts: ended.attempts,
            maybe_sent: ended.entry.status.maybe_sent,
            key: last.and_then(|last| keys.get(last.key)).map(Arc::clone),
            created_ms: ended.entry.job.created_at.0,
            sent_ms: last.map(|last| last.sent_at.0),
            ended_ms: ended.ended_at.0,
            service: last.map(|last| last.service_time),
        }
    }

    /// Result from the store; None if the job has not ended.
    pub(crate) fn from_store(detail: JobDetail) -> Option<Self> {
        let (job, status) = (detail.entry.job, detail.entry.status);
        let last = status.last_attempt.as_ref();
        (!status.state.is_open()).then(|| Self {
            number: detail.entry.number,
            id: job.id,
            state: status.state,
            status: last.and_then(|last| last.status),
            body: detail.response.map(|response| response.body.into()).unwrap_or_default(),
            failure: (status.state != State::Done).then(|| status.reason.clone()),
            attempts: status.attempts,
            maybe_sent: status.maybe_sent,
            key: last.and_then(|last| last.key.as_deref()).map(Arc::from),
            created_ms: job.created_at.0,
            sent_ms: last.map(|last| last.sent_at.0),
            ended_ms: status.changed_at.0,
            service: None,
        })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

/// Result of a job, for Python.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct JobResultHandle(pub(crate) Arc<JobResult>);

#[pymethods]
impl JobResultHandle {
    #[getter]
    fn number(&self) -> u64 {
        self.0.number
    }

    #[getter]
    fn id(&self) -> Option<&str> {
        self.0.id.as_deref()
    }

    #[getter]
    fn state(&self) -> &'static str {
        self.0.state.name()
    }

    #[getter]
    fn status(&self) -> Option<u16> {
        self.0.status
    }

    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.body)
    }

    #[getter]
    fn failure(&self) -> Option<&str> {
        self.0.failure.as_deref()
    }

    #[getter]
    fn attempts(&self) -> u32 {
        self.0.attempts
    }

    #[getter]
    fn maybe_sent(&self) -> bool {
        self.0.maybe_sent
    }

    #[getter]
    fn last_key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    #[getter]
    fn created_ms(&self) -> i64 {
        self.0.created_ms
    }

    #[getter]
    fn sent_ms(&self) -> Option<i64> {
        self.0.sent_ms
    }

    #[getter]
    fn ended_ms(&self) -> i64 {
        self.0.ended_ms
    }

    #[getter]
    fn service_ms(&self) -> Option<f64> {
        self.0.service.map(|took| (took.as_millis_f64() * 1e3).round() / 1e3)
    }
}
