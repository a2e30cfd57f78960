//! Users of the worker thread.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use weir::base::Nanos;
use weir::base::failure::FailureKind;
use weir::load::program::{
    ProgramAction, ProgramCall, ProgramOrigin, ProgramResponse, SocketEvent, StreamPart, ThreadProgram,
};
use weir::machine::lock::lock;
use weir::pace::shard::Shard;
use weir::scenario::plan::{OriginId, OriginTable};

use super::program::PythonProgram;
use super::references::is_only_reference;
use super::request::ScriptRequest;
use super::response::ScriptResponse;
use super::step_cache::StepCache;
use super::task_socket::{SocketOpen, SocketStep};
use super::task_stream::StreamStep;
use super::thread_state::KeptThreadState;
use super::user::{PythonUser, UserDriver};
use crate::errors;

/// Longest wait of a task, in seconds: a century.
const MAX_WAIT_S: f64 = 3e9;

/// Users of the worker thread.
#[derive(Debug)]
pub(super) struct PythonThread {
    pub(super) program: Arc<PythonProgram>,
    pub(super) factory: Py<PyAny>,
    /// Numbers of its users in the whole load.
    numbers: Shard,
    /// Users by their places on the thread; each is made when it begins.
    users: Vec<Option<PythonUser>>,
    pub(super) steps: StepCache,
    /// Indices of the steps of messages, by scenario and name.
    pub(super) message_steps: HashMap<u32, HashMap<String, u32>>,
    pub(super) origins: OriginTable,
    pub(super) buffer: Vec<u8>,
    /// Number of records that were held back.
    pub(super) held: u64,
    /// Dropped last: what is above is Python's.
    state: Option<KeptThreadState>,
}

/// Input with which a task is resumed.
pub(super) enum TaskInput {
    Value(Py<PyAny>),
    Error(PyErr),
}

impl PythonThread {
    pub(super) fn new(program: Arc<PythonProgram>, factory: Py<PyAny>, origins: OriginTable, numbers: Shard) -> Self {
        let (users, steps, buffer) = (Vec::new(), StepCache::default(), Vec::new());
        let message_steps = HashMap::new();
        Self { program, factory, numbers, users, steps, message_steps, origins, buffer, held: 0, state: None }
    }

    /// Notes which of Python's threads this one is.
    #[cold]
    fn note_thread(&self) {
        let ident = Python::attach(|py| py.import("threading")?.call_method0("get_ident")?.extract::<u64>());
        self.program.thread_ident.store(ident.unwrap_or(0), Ordering::Relaxed);
    }

    /// User of a call, which is made if it is new.
    fn make_user(&mut self, py: Python<'_>, user: u32) -> PyResult<()> {
        let at = user as usize;
        if self.users.len() <= at {
            self.users.resize_with(at + 1, || None);
        }
        if self.users[at].is_none() {
            let made = self.factory.bind(py).call_method1("user", (self.numbers.nth(user.into()),))?;
            let (driver, resume, scenario): (Bound<'_, PyAny>, _, _) = made.extract()?;
            let driver = UserDriver::new(&driver, resume);
            self.users[at] = Some(PythonUser {
                driver,
                scenario,
                exchange: None,
                stream: None,
                sockets: Vec::new(),
                next_socket: 0,
                socket_wait: None,
                watched: Vec::new(),
                due: Nanos::ZERO,
                next_start: Nanos::ZERO,
                has_failed: false,
                is_over: false,
            });
        }
        Ok(())
    }

    pub(super) fn user(&mut self, number: u32) -> Option<&mut PythonUser> {
        self.users.get_mut(number as usize)?.as_mut()
    }

    /// Resumes a user until it sends, waits or ends its task.
    pub(super) fn advance(&mut self, py: Python<'_>, input: TaskInput, call: &mut ProgramCall<'_>) -> ProgramAction {
        let action = self.play(py, input, call);
        if let Some(user) = self.user(call.user).filter(|user| !user.watched.is_empty()) {
            user.release(py, false, call);
        }
        action
    }

    fn play(&mut self, py: Python<'_>, input: TaskInput, call: &mut ProgramCall<'_>) -> ProgramAction {
        let mut input = input;
        loop {
            let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
            let next = match input {
                TaskInput::Value(value) => user.driver.resume(value.into_bound(py)),
                TaskInput::Error(error) => user.driver.throw(py, error),
            };
            let next = match next {
                Ok(Some(next)) => next,
                Ok(None) => return self.end_user(py, call),
                Err(error) => return ProgramAction::Abort(format!("the run was ended by {}", described(py, &error))),
            };
            if let Ok(request) = next.cast::<ScriptRequest>() {
                match self.send(request, call) {
                    Ok(action) => return action,
                    Err(why) => input = TaskInput::Error(PyValueError::new_err(why)),
                }
            } else if let Ok(step) = next.cast::<StreamStep>() {
                match self.stream_step(py, *step.get(), call.user) {
                    Ok(resumed) => input = resumed,
                    Err(action) => return action,
                }
            } else if let Ok(step) = next.cast::<SocketStep>() {
                match self.socket_step(py, &step.get().0, call) {
                    Ok(resumed) => input = resumed,
                    Err(action) => return action,
                }
            } else if let Ok(opening) = next.cast::<SocketOpen>() {
                match self.open_socket(opening, call) {
                    Ok(action) => return action,
                    Err(why) => input = TaskInput::Error(PyValueError::new_err(why)),
                }
            } else if let Ok(end) = next.cast::<PyTuple>() {
                return match end.extract() {
                    Ok((has_failed, wait_s)) => self.end_task(py, has_failed, wait_s, call),
                    Err(error) => ProgramAction::Abort(described(py, &error)),
                };
            } else if let Ok(wait_s) = next.extract::<f64>() {
                user.due = call.now + seconds(wait_s);
                return ProgramAction::WaitUntil(user.due);
            } else if next.is_none() {
                // A greenlet that has ended, or a coroutine that gives others their turn.
                if user.driver.is_dead(py) {
                    return self.end_user(py, call);
                }
                return ProgramAction::WaitUntil(call.now);
            } else {
                input = TaskInput::Error(foreign(&next));
            }
        }
    }

    fn end_task(
        &mut self,
        py: Python<'_>,
        has_failed: bool,
        wait_s: Option<f64>,
        call: &mut ProgramCall<'_>,
    ) -> ProgramAction {
        let (program, number) = (Arc::clone(&self.program), self.numbers.nth(call.user.into()));
        let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
        user.release(py, true, call);
        user.next_start = match wait_s {
            None => {
                user.is_over = true;
                Nanos::NEVER
            }
            Some(_) if program.is_open => Nanos::ZERO,
            Some(wait_s) => program.shape.active_from(number, call.now + seconds(wait_s)),
        };
        let ok = !user.has_failed && !has_failed;
        ProgramAction::End { ok }
    }

    /// Ends a user that does not go on.
    fn end_user(&mut self, py: Python<'_>, call: &mut ProgramCall<'_>) -> ProgramAction {
        let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
        user.release(py, true, call);
        (user.is_over, user.next_start) = (true, Nanos::NEVER);
        ProgramAction::End { ok: !user.has_failed }
    }

    /// Resumes a user with a response, and takes over what its task decided about it.
    fn resume_with(&mut self, py: Python<'_>, response: ScriptResponse, call: &mut ProgramCall<'_>) -> ProgramAction {
        let is_ok = (1..400).contains(&response.status);
        let is_watched = response.request.get().is_watched;
        let response = match Py::new(py, response) {
            Ok(response) => response,
            Err(error) => return ProgramAction::Abort(described(py, &error)),
        };
        let action = self.advance(py, TaskInput::Value(response.clone_ref(py).into_any()), call);
        let is_end = !matches!(action, ProgramAction::Send(_) | ProgramAction::WaitUntil(_));
        let made = response.get();
        let is_open = match is_watched {
            // Within the response's block anything may be decided.
            true => !made.is_left.load(Ordering::Relaxed),
            false => !is_only_reference(py, &response) && lock(&made.verdict).is_success.is_none(),
        };
        if is_open && !is_end && made.status > 0 {
            self.held += 1;
            let number = self.held;
            call.held_as = Some(number);
            if let Some(user) = self.user(call.user) {
                user.watched.push((number, response));
            }
            return action;
        }
        let verdict = std::mem::take(&mut *lock(&response.get().verdict));
        let has_failed = !verdict.is_success.unwrap_or(is_ok);
        call.is_success = verdict.is_success;
        verdict.failures.into_iter().for_each(|why| call.fail(why));
        let Some(user) = self.user(call.user) else { return action };
        user.has_failed |= has_failed;
        match action {
            ProgramAction::End { ok } => ProgramAction::End { ok: ok && !has_failed },
            other => other,
        }
    }
}

impl ThreadProgram for PythonThread {
    fn begin(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        if self.state.is_none() {
            self.state = Some(KeptThreadState::keep());
            self.note_thread();
        }
        Python::attach(|py| {
            if let Err(error) = self.make_user(py, call.user) {
                return ProgramAction::Abort(described(py, &error));
            }
            let from = self.program.shape.active_from(self.numbers.nth(call.user.into()), call.now);
            let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
            call.scenario = user.scenario;
            (user.has_failed, user.due) = (false, call.intended);
            if user.is_over {
                return ProgramAction::BeginAt(Nanos::NEVER);
            }
            if from > call.now {
                (call.intended, user.due) = (from, from);
                return ProgramAction::BeginAt(from);
            }
            self.advance(py, TaskInput::Value(py.None()), call)
        })
    }

    fn woken(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        Python::attach(|py| {
            let input = self.waited(py, call);
            self.advance(py, input, call)
        })
    }

    fn socket(&mut self, event: &SocketEvent<'_>, call: &mut ProgramCall<'_>) -> ProgramAction {
        Python::attach(|py| self.socket_event(py, event, call))
    }

    fn events(&mut self, part: &StreamPart<'_>, call: &mut ProgramCall<'_>) -> ProgramAction {
        Python::attach(|py| self.stream_part(py, part, call))
    }

    fn response(&mut self, response: &ProgramResponse<'_>, call: &mut ProgramCall<'_>) -> ProgramAction {
        Python::attach(|py| {
            let Some(mut exchange) = self.user(call.user).and_then(|user| user.exchange.take()) else {
                return ProgramAction::End { ok: false };
            };
            if let Some(user) = self.user(call.user) {
                user.due = call.now;
            }
            exchange.store_cookies(response);
            let problem = match exchange.redirect_of(response) {
                Ok(None) => None,
                Ok(Some(url)) => {
                    let sent = exchange.follow(py, response, url).map_err(|error| error.to_string());
                    match sent.and_then(|()| self.exchange(exchange, call)) {
                        Ok(action) => return action,
                        Err(why) => return ProgramAction::Abort(why),
                    }
                }
                Err(why) => Some(why),
            };
            if problem.is_none() && self.user(call.user).is_some_and(|user| user.stream.is_some()) {
                return self.stream_ended(py, &exchange, response, call);
            }
            let mut made = exchange.into_response(response);
            if let Some(why) = problem {
                call.fail(why.clone());
                made.error = Some(why);
                if let Some(user) = self.user(call.user) {
                    user.has_failed = true;
                }
            }
            self.resume_with(py, made, call)
        })
    }

    fn failed(&mut self, kind: FailureKind, _: usize, call: &mut ProgramCall<'_>) -> ProgramAction {
        Python::attach(|py| {
            let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
            let Some(exchange) = user.exchange.take() else { return ProgramAction::End { ok: false } };
            (user.has_failed, user.due) = (true, call.now);
            if user.stream.is_some() {
                return self.stream_failed(py, &exchange, kind, call);
            }
            let request = exchange.request.get();
            if !request.catches {
                let what = format!("{} {}: {}", exchange.method, exchange.url, kind.name());
                return self.advance(py, TaskInput::Error(errors::no_response(&what)), call);
            }
            let made = exchange.into_no_response(kind.name().to_owned());
            self.resume_with(py, made, call)
        })
    }

    fn stops_users(&self) -> bool {
        true
    }

    fn stop(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        Python::attach(|py| {
            self.close_sockets(call);
            let number = self.numbers.nth(call.user.into());
            let end = ProgramAction::End { ok: true };
            let Some(Some(user)) = self.users.get_mut(call.user as usize) else { return end };
            let ending = self.factory.bind(py).call_method1("ending", (number,));
            let ending = ending.and_then(|made| made.extract::<Option<(Bound<'_, PyAny>, _)>>());
            match ending {
                Ok(Some((driver, resume))) => user.driver = UserDriver::new(&driver, resume),
                Ok(None) => {
                    user.release(py, true, call);
                    return end;
                }
                Err(error) => return ProgramAction::Abort(described(py, &error)),
            }
            (user.exchange, user.stream, user.due, call.scenario) = (None, None, call.now, user.scenario);
            user.release(py, true, call);
            self.advance(py, TaskInput::Value(py.None()), call)
        })
    }

    fn origin(&self, origin: OriginId) -> Option<ProgramOrigin> {
        Some(ProgramOrigin { origin: self.origins.get(origin)?.clone(), address: None, is_for_calls: false, tls: None })
    }

    fn next_start(&self, user: u32) -> Option<Nanos> {
        let user = self.users.get(user as usize)?.as_ref()?;
        (user.next_start > Nanos::ZERO).then_some(user.next_start)
    }
}

impl Drop for PythonThread {
    fn drop(&mut self) {
        // Without a state nothing has begun.
        if self.state.is_some() {
            Python::attach(|py| {
                // What `stop` raises is its own affair; it reports errors of users itself.
                let _ = self.factory.call_method0(py, "stop");
                self.users.clear();
            });
        }
    }
}

pub(super) fn seconds(seconds: f64) -> Nanos {
    Nanos((seconds.clamp(0.0, MAX_WAIT_S) * 1e9) as u64)
}

/// Error of an awaitable that weir's loop cannot wait for.
fn foreign(awaited: &Bound<'_, PyAny>) -> PyErr {
    let kind = awaited.get_type().qualname().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "a task awaited a {kind}, which needs another event loop; await self.get() and weir.sleep()"
    ))
}

/// Exception as one line, with the last line of the script that was in it.
pub(super) fn described(py: Python<'_>, error: &PyErr) -> String {
    // With its traceback.
    let raised = error.clone_ref(py).into_value(py);
    let line = py.import("weir._task_errors").and_then(|module| module.call_method1("described", (raised,)));
    line.map_or_else(|_| error.to_string(), |line| line.to_string())
}
