//! Calls about responses that tasks read as streams of events.

use pyo3::prelude::*;
use weir::base::failure::FailureKind;
use weir::load::program::{ProgramAction, ProgramCall, ProgramResponse, StreamPart};

use super::task_stream::{StreamPhase, StreamStep, StreamWait, TaskStream};
use super::thread::{PythonThread, TaskInput, described};
use super::user::TaskExchange;
use crate::errors;

impl PythonThread {
    /// Input with which a task that reads a stream is resumed at once, or the action that it waits behind.
    pub(super) fn stream_step(
        &mut self,
        py: Python<'_>,
        step: StreamStep,
        user: u32,
    ) -> Result<TaskInput, ProgramAction> {
        let nothing = TaskInput::Value(py.None());
        let Some(user) = self.user(user) else { return Ok(nothing) };
        let Some(stream) = &mut user.stream else { return Ok(nothing) };
        match (step, stream.phase) {
            (StreamStep::Leave, StreamPhase::Open) => {
                stream.wait = StreamWait::End;
                stream.events.clear();
                Err(ProgramAction::EndStream)
            }
            (StreamStep::Leave, StreamPhase::Ended | StreamPhase::Failed(_)) => {
                user.stream = None;
                Ok(nothing)
            }
            (StreamStep::NextEvent, phase) => match (next_event(py, stream), phase) {
                (Some(event), _) => Ok(event),
                (None, StreamPhase::Open) => {
                    stream.wait = StreamWait::Event;
                    Err(ProgramAction::Await)
                }
                (None, StreamPhase::Ended) => Ok(nothing),
                (None, StreamPhase::Failed(kind)) => {
                    Ok(TaskInput::Error(errors::no_response(&format!("the stream of events: {kind}"))))
                }
            },
        }
    }

    /// Takes a part of a response, and resumes a task that waits for it.
    pub(super) fn stream_part(
        &mut self,
        py: Python<'_>,
        part: &StreamPart<'_>,
        call: &mut ProgramCall<'_>,
    ) -> ProgramAction {
        let Some(user) = self.user(call.user) else { return ProgramAction::Await };
        let (Some(stream), Some(exchange)) = (&mut user.stream, &user.exchange) else { return ProgramAction::Await };
        // Redirects are followed when they are whole.
        if exchange.follows(part.status) {
            return ProgramAction::Await;
        }
        stream.extend(part.events);
        if let Err(error) = begin(py, stream, exchange, part) {
            return ProgramAction::Abort(described(py, &error));
        }
        match resumption(py, stream) {
            Some(input) => self.advance(py, input, call),
            None => ProgramAction::Await,
        }
    }

    /// Takes the end of a whole response, or of one that the task has left; its record is held back until the task
    /// decides, as that of any response.
    pub(super) fn stream_ended(
        &mut self,
        py: Python<'_>,
        exchange: &TaskExchange,
        response: &ProgramResponse<'_>,
        call: &mut ProgramCall<'_>,
    ) -> ProgramAction {
        self.held += 1;
        let number = self.held;
        let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
        let Some(stream) = &mut user.stream else { return ProgramAction::Await };
        stream.extend(response.events);
        let &ProgramResponse { status, times, head, events, .. } = response;
        let service = times.service;
        if let Err(error) = begin(py, stream, exchange, &StreamPart { status, service, head, events }) {
            return ProgramAction::Abort(described(py, &error));
        }
        stream.phase = StreamPhase::Ended;
        if let Some(response) = &stream.response {
            call.held_as = Some(number);
            user.watched.push((number, response.clone_ref(py)));
        }
        match resumption(py, stream) {
            Some(input) => {
                if stream.wait == StreamWait::End {
                    user.stream = None;
                }
                self.advance(py, input, call)
            }
            None => ProgramAction::Await,
        }
    }

    /// Takes the failure of a response, before or in the middle of its events.
    pub(super) fn stream_failed(
        &mut self,
        py: Python<'_>,
        exchange: &TaskExchange,
        kind: FailureKind,
        call: &mut ProgramCall<'_>,
    ) -> ProgramAction {
        let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
        let Some(stream) = &mut user.stream else { return ProgramAction::Await };
        stream.phase = StreamPhase::Failed(kind.name());
        let wait = std::mem::replace(&mut stream.wait, StreamWait::Nothing);
        let error =
            || TaskInput::Error(errors::no_response(&format!("{} {}: {}", exchange.method, exchange.url, kind.name())));
        let input = match wait {
            StreamWait::Nothing => return ProgramAction::Await,
            StreamWait::Event => error(),
            StreamWait::Head => {
                // Without a response there is no block to leave.
                user.stream = None;
                error()
            }
            StreamWait::End => {
                user.stream = None;
                TaskInput::Value(py.None())
            }
        };
        self.advance(py, input, call)
    }
}

/// Makes the response, if its head is new.
fn begin(py: Python<'_>, stream: &mut TaskStream, exchange: &TaskExchange, part: &StreamPart<'_>) -> PyResult<()> {
    if stream.response.is_none() {
        stream.response = Some(Py::new(py, exchange.begun_response(py, part))?);
    }
    Ok(())
}

/// Input with which a task that waits for the stream is resumed; `None` if it waits for something else.
fn resumption(py: Python<'_>, stream: &mut TaskStream) -> Option<TaskInput> {
    let is_over = stream.phase != StreamPhase::Open;
    let input = match stream.wait {
        StreamWait::Nothing => return None,
        StreamWait::Head => TaskInput::Value(stream.response.as_ref()?.clone_ref(py).into_any()),
        StreamWait::Event => match next_event(py, stream) {
            Some(event) => event,
            None if is_over => TaskInput::Value(py.None()),
            None => return None,
        },
        StreamWait::End if is_over => return Some(TaskInput::Value(py.None())),
        StreamWait::End => return None,
    };
    stream.wait = StreamWait::Nothing;
    Some(input)
}

/// Next event that the task has not taken.
fn next_event(py: Python<'_>, stream: &mut TaskStream) -> Option<TaskInput> {
    let event = stream.events.pop_front()?;
    Some(match Py::new(py, event) {
        Ok(event) => TaskInput::Value(event.into_any()),
        Err(error) => TaskInput::Error(error),
    })
}
