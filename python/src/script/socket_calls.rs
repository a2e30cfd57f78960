//! Calls about WebSockets of tasks.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use weir::base::Nanos;
use weir::base::failure::FailureKind;
use weir::load::program::{
    KeptParts, ProgramAction, ProgramCall, ProgramSend, SocketCommand, SocketEnd, SocketEvent, SocketId, SocketMessage,
    SocketOpening,
};

use super::request::ScriptRequest;
use super::task_socket::{MAX_SOCKETS, SocketOpen, SocketPhase, SocketRequest, SocketWait, TaskSocket};
use super::thread::{PythonThread, TaskInput, described, seconds};
use super::user::TaskExchange;
use crate::errors;

/// Close code of a normal end, and of one for messages that the task does not take.
const NORMAL: u16 = 1000;
const POLICY: u16 = 1008;

impl PythonThread {
    /// Opens a WebSocket that a task has asked for.
    ///
    /// # Errors
    /// Why it is not opened, as one line.
    pub(super) fn open_socket(
        &mut self,
        opening: &Bound<'_, SocketOpen>,
        call: &mut ProgramCall<'_>,
    ) -> Result<ProgramAction, String> {
        let request: &Bound<'_, ScriptRequest> = opening.get().request.bind(opening.py());
        let url = TaskExchange::url_of(request.get())?;
        let origin = self.origins.intern(url.is_tls(), url.host(), url.port());
        let origin = origin.ok_or_else(|| format!("'{url}': too many hosts"))?;
        let step = self.step_of(request, call.user);
        TaskExchange::new(request, url, step).write(&mut self.buffer)?;
        let bytes = self.buffer.clone();
        let Some(user) = self.user(call.user) else { return Ok(ProgramAction::End { ok: false }) };
        if user.sockets.iter().filter(|socket| !socket.is_over()).count() >= MAX_SOCKETS {
            return Err(format!("more than {MAX_SOCKETS} open WebSockets of a user; close one first"));
        }
        user.sockets.retain(|socket| !socket.is_over());
        let socket = SocketId(user.next_socket);
        user.next_socket = user.next_socket.wrapping_add(1);
        user.sockets.push(TaskSocket::new(socket));
        user.socket_wait = Some(SocketWait::Open(socket));
        let timeout = request.get().timeout_s.map(seconds);
        let (intended, keeps) = (user.due, KeptParts::Nothing);
        let send = ProgramSend { step, origin, intended, timeout, is_bodyless: false, keeps, key: 0 };
        let subprotocols = opening.get().subprotocols.clone();
        call.command(SocketCommand::Open(Box::new(SocketOpening { socket, send, request: bytes, subprotocols })));
        Ok(ProgramAction::Await)
    }

    /// Input with which a task is resumed at once, or the action that it waits behind.
    pub(super) fn socket_step(
        &mut self,
        py: Python<'_>,
        step: &SocketRequest,
        call: &mut ProgramCall<'_>,
    ) -> Result<TaskInput, ProgramAction> {
        let nothing = TaskInput::Value(py.None());
        match step {
            SocketRequest::Send { socket, data, is_text, name } => {
                let Some(user) = self.user(call.user) else { return Ok(nothing) };
                let (id, intended) = (SocketId(*socket), user.due);
                let found = user.sockets.iter().find(|socket| socket.id == id);
                if found.is_none_or(|socket| socket.phase != SocketPhase::Open) {
                    user.has_failed = true;
                    return Ok(TaskInput::Error(errors::no_response(&ended_text(found))));
                }
                let step = self.named_step(py, call.user, name);
                let (is_text, data) = (*is_text, data.clone());
                call.command(SocketCommand::Send(SocketMessage {
                    socket: id,
                    is_text,
                    data,
                    intended,
                    step: Some(step),
                }));
                Ok(nothing)
            }
            SocketRequest::Receive { socket, timeout_s } => {
                let (now, id) = (call.now, SocketId(*socket));
                let Some(user) = self.user(call.user) else { return Ok(nothing) };
                let Some(socket) = user.sockets.iter_mut().find(|socket| socket.id == id) else {
                    return Ok(TaskInput::Error(errors::no_response(&ended_text(None))));
                };
                if let Some(input) = received(py, socket) {
                    user.has_failed |= matches!(input, TaskInput::Error(_));
                    return Ok(input);
                }
                let until = timeout_s.map_or(Nanos::NEVER, |timeout_s| now + seconds(timeout_s));
                user.socket_wait = Some(SocketWait::Message(id, timeout_s.unwrap_or(f64::INFINITY)));
                Err(ProgramAction::WaitUntil(until))
            }
            SocketRequest::Close { socket, code, reason } => {
                let id = SocketId(*socket);
                if let Some(user) = self.user(call.user) {
                    user.sockets.retain(|socket| socket.id != id);
                }
                call.command(SocketCommand::Close { socket: id, code: *code, reason: reason.clone() });
                Ok(nothing)
            }
        }
    }

    /// Takes what has happened to a WebSocket, and resumes a task that waits for it.
    pub(super) fn socket_event(
        &mut self,
        py: Python<'_>,
        event: &SocketEvent<'_>,
        call: &mut ProgramCall<'_>,
    ) -> ProgramAction {
        let (now, id) = (call.now, event.socket());
        let Some(user) = self.user(call.user) else { return ProgramAction::Await };
        let Some(at) = user.sockets.iter().position(|socket| socket.id == id) else { return ProgramAction::Await };
        let Some(socket) = user.sockets.get_mut(at) else { return ProgramAction::Await };
        match event {
            SocketEvent::Opened { subprotocol, .. } => {
                (socket.phase, socket.subprotocol) = (SocketPhase::Open, subprotocol.map(str::to_owned));
            }
            SocketEvent::Message { is_text, data, .. } => {
                if !socket.push(*is_text, data) {
                    socket.phase = SocketPhase::Failed("more than 16 MiB of messages that the task does not take");
                    call.command(SocketCommand::Close { socket: id, code: POLICY, reason: String::new() });
                }
            }
            SocketEvent::Ping { .. } | SocketEvent::Pong { .. } => return ProgramAction::Await,
            SocketEvent::Ended { end, .. } => {
                socket.phase = match end {
                    SocketEnd::Closed { code, reason } => SocketPhase::Closed(*code, (*reason).to_owned()),
                    SocketEnd::Rejected { status } => {
                        user.socket_wait = None;
                        (user.has_failed, user.due) = (true, now);
                        user.sockets.remove(at);
                        let why = format!("the WebSocket was rejected: status {status} in place of 101");
                        return self.advance(py, TaskInput::Error(errors::no_response(&why)), call);
                    }
                    SocketEnd::Failed { kind } => SocketPhase::Failed(kind.name()),
                };
            }
        }
        let input = match user.socket_wait {
            Some(SocketWait::Open(waited)) if waited == id => opened(py, socket),
            Some(SocketWait::Message(waited, _)) if waited == id => received(py, socket),
            _ => None,
        };
        let Some(input) = input else { return ProgramAction::Await };
        user.has_failed |= matches!(input, TaskInput::Error(_));
        (user.socket_wait, user.due) = (None, now);
        self.advance(py, input, call)
    }

    /// Input of a task whose wait is over: an error if it has waited for a message, which has not come.
    pub(super) fn waited(&mut self, py: Python<'_>, call: &mut ProgramCall<'_>) -> TaskInput {
        let (now, nothing) = (call.now, TaskInput::Value(py.None()));
        let Some(user) = self.user(call.user) else { return nothing };
        let Some(SocketWait::Message(socket, timeout_s)) = user.socket_wait.take() else { return nothing };
        (user.has_failed, user.due) = (true, now);
        call.command(SocketCommand::FailReply { socket, kind: FailureKind::Timeout });
        TaskInput::Error(errors::no_response(&format!("no message within {timeout_s} s")))
    }

    /// Closes the WebSockets of a user that ends.
    pub(super) fn close_sockets(&mut self, call: &mut ProgramCall<'_>) {
        let Some(user) = self.user(call.user) else { return };
        user.socket_wait = None;
        for socket in std::mem::take(&mut user.sockets) {
            call.command(SocketCommand::Close { socket: socket.id, code: NORMAL, reason: String::new() });
        }
    }

    /// Index of the step of a name.
    fn named_step(&mut self, py: Python<'_>, user: u32, name: &str) -> u32 {
        let scenario = self.user(user).map_or(0, |user| user.scenario);
        if let Some(step) = self.message_steps.get(&scenario).and_then(|steps| steps.get(name)) {
            return *step;
        }
        let step = self.program.names.index(self.program.scenario(scenario), name);
        self.message_steps.entry(scenario).or_default().insert(name.to_owned(), step);
        // Users that have no use for it do not have the method.
        let _ = self.factory.bind(py).call_method1("add_step", (scenario, name, name, "WS"));
        step
    }
}

/// Input of a task that opens a WebSocket, once that is known.
fn opened(py: Python<'_>, socket: &TaskSocket) -> Option<TaskInput> {
    match &socket.phase {
        SocketPhase::Opening => None,
        SocketPhase::Open => match (socket.id.0, socket.subprotocol.clone()).into_pyobject(py) {
            Ok(made) => Some(TaskInput::Value(made.into_any().unbind())),
            Err(error) => Some(TaskInput::Error(PyValueError::new_err(described(py, &error)))),
        },
        SocketPhase::Closed(..) | SocketPhase::Failed(_) => {
            Some(TaskInput::Error(errors::no_response(&ended_text(Some(socket)))))
        }
    }
}

/// Input of a task that waits for a message, if there is one, or none can come.
fn received(py: Python<'_>, socket: &mut TaskSocket) -> Option<TaskInput> {
    if let Some(message) = socket.next_message(py) {
        return Some(TaskInput::Value(message));
    }
    match &socket.phase {
        SocketPhase::Closed(code, reason) => match (*code, reason.as_str()).into_pyobject(py) {
            Ok(made) => Some(TaskInput::Value(made.into_any().unbind())),
            Err(error) => Some(TaskInput::Error(error)),
        },
        SocketPhase::Failed(_) => Some(TaskInput::Error(errors::no_response(&ended_text(Some(socket))))),
        SocketPhase::Opening | SocketPhase::Open => None,
    }
}

fn ended_text(socket: Option<&TaskSocket>) -> String {
    match socket.map(|socket| &socket.phase) {
        Some(SocketPhase::Failed(why)) => format!("the WebSocket: {why}"),
        Some(SocketPhase::Closed(code, _)) => format!("the WebSocket was closed by the service: {code}"),
        _ => "the WebSocket is closed".to_owned(),
    }
}
