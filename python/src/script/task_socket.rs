//! WebSockets of tasks: what a task asks for, and what has come.

use std::collections::VecDeque;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use weir::load::program::SocketId;

use super::request::ScriptRequest;

/// Maximum number of WebSockets that a user has at a time.
pub(super) const MAX_SOCKETS: usize = 8;
/// Maximum length of messages that wait for a task, in bytes.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// WebSocket that a task opens; resumed with its number and its subprotocol.
#[pyclass(frozen, module = "weir._weir")]
#[derive(Debug)]
pub(crate) struct SocketOpen {
    /// Request of the upgrade.
    pub(super) request: Py<ScriptRequest>,
    pub(super) subprotocols: Vec<String>,
}

#[pymethods]
impl SocketOpen {
    #[new]
    fn new(request: Py<ScriptRequest>, subprotocols: Vec<String>) -> Self {
        Self { request, subprotocols }
    }
}

/// What a task asks of its WebSocket.
#[pyclass(frozen, module = "weir._weir")]
#[derive(Debug)]
pub(crate) struct SocketStep(pub(super) SocketRequest);

/// Request of a task about its WebSocket.
#[derive(Debug)]
pub(super) enum SocketRequest {
    /// Sends a message, which is counted under a name; resumed at once.
    Send { socket: u32, data: Vec<u8>, is_text: bool, name: String },
    /// Waits for the next message; resumed with text or bytes, or with code and reason of the end.
    Receive { socket: u32, timeout_s: Option<f64> },
    /// Closes; resumed at once.
    Close { socket: u32, code: u16, reason: String },
}

#[pymethods]
impl SocketStep {
    /// Sends a message.
    #[staticmethod]
    fn send(socket: u32, data: &[u8], is_text: bool, name: String) -> Self {
        Self(SocketRequest::Send { socket, data: data.to_vec(), is_text, name })
    }

    /// Waits for the next message.
    #[staticmethod]
    #[pyo3(signature = (socket, timeout_s))]
    fn receive(socket: u32, timeout_s: Option<f64>) -> Self {
        Self(SocketRequest::Receive { socket, timeout_s })
    }

    /// Closes.
    #[staticmethod]
    fn close(socket: u32, code: u16, reason: String) -> Self {
        Self(SocketRequest::Close { socket, code, reason })
    }
}

/// How a WebSocket stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SocketPhase {
    Opening,
    Open,
    /// The service has closed it, with this code and reason.
    Closed(u16, String),
    /// It has failed in this way.
    Failed(&'static str),
}

/// WebSocket of a task, until the task closes it.
#[derive(Debug)]
pub(super) struct TaskSocket {
    pub(super) id: SocketId,
    pub(super) phase: SocketPhase,
    pub(super) subprotocol: Option<String>,
    /// Messages that the task has not taken, each with whether it is text.
    messages: VecDeque<(bool, Vec<u8>)>,
    /// Length of these, in bytes.
    waiting_bytes: usize,
}

impl TaskSocket {
    pub(super) fn new(id: SocketId) -> Self {
        let (messages, phase) = (VecDeque::new(), SocketPhase::Opening);
        Self { id, phase, subprotocol: None, messages, waiting_bytes: 0 }
    }

    /// Takes a message that has come; false if too many wait for the task.
    pub(super) fn push(&mut self, is_text: bool, data: &[u8]) -> bool {
        if self.waiting_bytes + data.len() > MAX_WAITING_BYTES && !self.messages.is_empty() {
            return false;
        }
        self.waiting_bytes += data.len();
        self.messages.push_back((is_text, data.to_vec()));
        true
    }

    /// Next message that the task has not taken.
    pub(super) fn next_message(&mut self, py: Python<'_>) -> Option<Py<PyAny>> {
        let (is_text, data) = self.messages.pop_front()?;
        self.waiting_bytes -= data.len();
        Some(match std::str::from_utf8(&data).ok().filter(|_| is_text) {
            Some(text) => PyString::new(py, text).into_any().unbind(),
            None => PyBytes::new(py, &data).into_any().unbind(),
        })
    }

    /// Whether nothing more can come of it.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, SocketPhase::Closed(..) | SocketPhase::Failed(_))
    }
}

/// What a task waits for on a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SocketWait {
    Open(SocketId),
    Message(SocketId, f64),
}
