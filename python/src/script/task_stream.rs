//! Responses that tasks read as streams of events.

use std::collections::VecDeque;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use weir::load::program::{ArrivedEvent, ArrivedEvents};

use super::response::ScriptResponse;
use crate::json;

/// Request of a task within the block of a response that it reads as a stream.
#[pyclass(frozen, eq, eq_int, module = "weir._weir")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamStep {
    /// Asks for the next event; resumed with it, or with None behind the last one.
    NextEvent,
    /// Leaves the block: what is left of the response is not read.
    Leave,
}

/// Event of a response that a task reads as a stream.
#[pyclass(frozen, module = "weir._weir")]
#[derive(Debug)]
pub(crate) struct ScriptEvent {
    name: String,
    id: String,
    data: Vec<u8>,
}

impl ScriptEvent {
    pub(super) fn new(event: ArrivedEvent<'_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { name: text(event.name), id: text(event.id), data: event.data.to_vec() }
    }
}

#[pymethods]
impl ScriptEvent {
    /// Type of a server-sent event; `message` without one.
    #[getter]
    fn event(&self) -> &str {
        if self.name.is_empty() { "message" } else { &self.name }
    }

    /// Last ID of server-sent events so far; empty without one.
    #[getter]
    fn id(&self) -> &str {
        &self.id
    }

    /// Content as text.
    #[getter]
    fn data(&self) -> String {
        String::from_utf8_lossy(&self.data).into_owned()
    }

    /// Content as it came.
    #[getter]
    fn content<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.data)
    }

    /// Content as JSON.
    fn json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        match json::read(py, &self.data) {
            Some(read) => Ok(read),
            None => LOADS.import(py, "json", "loads")?.call1((PyBytes::new(py, &self.data),)),
        }
    }

    fn __repr__(&self) -> String {
        format!("<Event {}: {} bytes>", self.event(), self.data.len())
    }
}

/// Part of the stream that a task waits for within the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamWait {
    /// Nothing of the response: it runs, or sleeps.
    Nothing,
    Head,
    Event,
    /// The end of a response that it has left.
    End,
}

/// How a response that is read as a stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamPhase {
    /// Parts are still to come.
    Open,
    Ended,
    /// It failed in the middle, in this way.
    Failed(&'static str),
}

/// Response that a task reads as a stream, until the task has left its block.
#[derive(Debug)]
pub(super) struct TaskStream {
    /// The response, once its head is there.
    pub(super) response: Option<Py<ScriptResponse>>,
    /// Events that the task has not taken.
    pub(super) events: VecDeque<ScriptEvent>,
    pub(super) phase: StreamPhase,
    pub(super) wait: StreamWait,
}

impl TaskStream {
    /// Stream whose request is sent.
    pub(super) fn new() -> Self {
        Self { response: None, events: VecDeque::new(), phase: StreamPhase::Open, wait: StreamWait::Head }
    }

    /// Takes events that have arrived; none once the task has left the block.
    pub(super) fn extend(&mut self, events: &ArrivedEvents) {
        if self.wait != StreamWait::End {
            self.events.extend(events.iter().map(ScriptEvent::new));
        }
    }
}
