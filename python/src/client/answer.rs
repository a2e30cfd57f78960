//! How a call ended, as Python reads it: nothing is converted before it is asked for.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::engine::{Ended, Outcome};
use super::request::{Request, RequestHandle};

/// How a call ended.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct AnswerHandle {
    request: Arc<Request>,
    outcome: Outcome,
}

impl AnswerHandle {
    pub(crate) fn new(request: Arc<Request>, outcome: Outcome) -> Self {
        Self { request, outcome }
    }

    pub(crate) fn ended(&self) -> Ended {
        self.outcome.why
    }
}

#[pymethods]
impl AnswerHandle {
    /// The status, or 0 without an answer.
    #[getter]
    fn status(&self) -> u16 {
        self.outcome.head.as_ref().map_or(0, |head| head.status)
    }

    #[getter]
    fn version(&self) -> &'static str {
        match self.outcome.head.as_ref().map(|head| head.version) {
            Some(http::Version::HTTP_2) => "HTTP/2",
            Some(http::Version::HTTP_10) => "HTTP/1.0",
            _ => "HTTP/1.1",
        }
    }

    /// Names and values in the order of their arrival, names in lower case.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        if let Some(head) = &self.outcome.head {
            for (name, value) in &head.headers {
                list.append((PyBytes::new(py, name.as_str().as_bytes()), PyBytes::new(py, value.as_bytes())))?;
            }
        }
        Ok(list)
    }

    /// As it came, before any decoding.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.outcome.head.as_ref().map_or(&[][..], |head| &head.body))
    }

    #[getter]
    fn request(&self) -> RequestHandle {
        RequestHandle { request: Arc::clone(&self.request) }
    }

    /// From the call's start to its end.
    #[getter]
    fn elapsed_s(&self) -> f64 {
        (self.outcome.done.0 - self.outcome.began.0) as f64 / 1e9
    }

    /// For each attempt: why, upstream, end, started and took in milliseconds.
    #[getter]
    fn attempts(&self) -> Vec<(&'static str, String, String, f64, f64)> {
        let began = self.outcome.began.0;
        let ms = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e6;
        self.outcome
            .attempts
            .iter()
            .map(|a| (a.why, a.upstream.clone(), a.end.clone(), ms(began, a.launched.0), ms(a.launched.0, a.ended.0)))
            .collect()
    }
}
