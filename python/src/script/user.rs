//! User that Python drives.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use pyo3::types::iterator::PySendResult;
use weir::base::Nanos;
use weir::request::url::HttpUrl;

use super::references::is_only_reference;
use super::request::ScriptRequest;
use super::response::{ScriptResponse, TaskVerdict, has_field};
use super::session::{SessionState, unix_s};
use super::task_socket::{SocketWait, TaskSocket};
use super::task_stream::TaskStream;
use weir::load::program::request::redirect::{MAX_REDIRECTS, is_redirect, keeps_body, method_after};
use weir::load::program::request::{RequestParts, SentForm, SessionParts, absolute, write_request};
use weir::load::program::{ProgramCall, ProgramResponse, ReleasedRecord, StreamPart};
use weir::machine::lock::lock;

/// Generator or greenlet of a user.
#[derive(Debug)]
pub(super) enum UserDriver {
    /// Generator, which Python resumes without a look for its method.
    Generator(Py<PyIterator>),
    /// Greenlet, and its method that takes a value and returns what the user does next.
    Greenlet(Py<PyAny>, Py<PyAny>),
}

impl UserDriver {
    /// Driver of a user as its factory makes it.
    pub(super) fn new(driver: &Bound<'_, PyAny>, resume: Py<PyAny>) -> Self {
        match driver.cast::<PyIterator>() {
            Ok(generator) => Self::Generator(generator.clone().unbind()),
            Err(_) => Self::Greenlet(driver.clone().unbind(), resume),
        }
    }

    /// Resumes it; `None` if it has ended.
    pub(super) fn resume<'py>(&self, value: Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = value.py();
        match self {
            Self::Generator(generator) => generator.bind(py).send(&value).map(|sent| match sent {
                PySendResult::Next(next) => Some(next),
                PySendResult::Return(_) => None,
            }),
            Self::Greenlet(_, resume) => resume.bind(py).call1((value,)).map(Some),
        }
    }

    /// Raises an exception in it; `None` if it has ended.
    pub(super) fn throw<'py>(&self, py: Python<'py>, error: PyErr) -> PyResult<Option<Bound<'py, PyAny>>> {
        let driver = match self {
            Self::Generator(generator) => generator.bind(py).as_any(),
            Self::Greenlet(greenlet, _) => greenlet.bind(py),
        };
        match driver.call_method1("throw", (error.into_value(py),)) {
            Ok(next) => Ok(Some(next)),
            Err(error) if error.is_instance_of::<PyStopIteration>(py) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether it has ended, where that is not known by its last result.
    pub(super) fn is_dead(&self, py: Python<'_>) -> bool {
        match self {
            Self::Generator(_) => false,
            Self::Greenlet(greenlet, _) => {
                greenlet.bind(py).getattr("dead").and_then(|dead| dead.is_truthy()).unwrap_or(false)
            }
        }
    }
}

/// User that Python drives.
#[derive(Debug)]
pub(super) struct PythonUser {
    pub(super) driver: UserDriver,
    pub(super) scenario: u32,
    pub(super) exchange: Option<TaskExchange>,
    /// Response that its task reads as a stream of events.
    pub(super) stream: Option<TaskStream>,
    /// WebSockets that it holds, the number of the next one, and what its task waits for on one.
    pub(super) sockets: Vec<TaskSocket>,
    pub(super) next_socket: u32,
    pub(super) socket_wait: Option<SocketWait>,
    /// Responses about which its task has not decided, by the numbers that their records are held back under.
    pub(super) watched: Vec<(u64, Py<ScriptResponse>)>,
    /// Time at which the next request should be sent: the intended start of the iteration, the arrival of the last
    /// response, or the end of a wait. What the script takes after it is lateness.
    pub(super) due: Nanos,
    /// Earliest start of the next iteration.
    pub(super) next_start: Nanos,
    pub(super) has_failed: bool,
    pub(super) is_over: bool,
}

impl PythonUser {
    /// Releases responses about which the task decides nothing more, since it has left their block or has no name for
    /// them; with `is_end` all.
    pub(super) fn release(&mut self, py: Python<'_>, is_end: bool, call: &mut ProgramCall<'_>) {
        self.watched.retain(|(number, response)| {
            let is_forgotten = is_only_reference(py, response);
            let response = response.get();
            if !is_end && !is_forgotten && !response.is_left.load(Ordering::Relaxed) {
                return true;
            }
            let TaskVerdict { is_success, failures } = std::mem::take(&mut *lock(&response.verdict));
            self.has_failed |= !is_success.unwrap_or((1..400).contains(&response.status));
            call.release(ReleasedRecord { number: *number, is_success, failures });
            false
        });
    }
}

/// Request of a task that is on its way.
#[derive(Debug)]
pub(super) struct TaskExchange {
    pub(super) request: Py<ScriptRequest>,
    pub(super) method: Cow<'static, str>,
    pub(super) url: HttpUrl,
    pub(super) step: u32,
    sends_body: bool,
    has_left_origin: bool,
    history: Vec<Py<ScriptResponse>>,
}

impl TaskExchange {
    /// Exchange of a request that a task has yielded.
    ///
    /// # Errors
    /// One line, if its URL is invalid.
    pub(super) fn new(request: &Bound<'_, ScriptRequest>, url: HttpUrl, step: u32) -> Self {
        Self {
            request: request.clone().unbind(),
            method: request.get().method.clone(),
            url,
            step,
            sends_body: true,
            has_left_origin: false,
            history: Vec::new(),
        }
    }

    /// URL of a request.
    ///
    /// # Errors
    /// One line.
    pub(super) fn url_of(request: &ScriptRequest) -> Result<HttpUrl, String> {
        absolute(&lock(&request.session.get().state).base, &request.url)
    }

    /// Writes the bytes of the request.
    ///
    /// # Errors
    /// One line, if a part would break the request.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Result<(), String> {
        let request = self.request.get();
        let parts = RequestParts { headers: &request.headers, body: request.body.as_deref() };
        let mut session = lock(&request.session.get().state);
        let is_home = session.is_home(&self.url);
        let SessionState { head, jar, given, .. } = &mut *session;
        let form = SentForm {
            method: &self.method,
            url: &self.url,
            sends_body: self.sends_body,
            has_left_origin: self.has_left_origin,
            withheld: if is_home { &[] } else { given },
        };
        write_request(parts, SessionParts { head, jar, unix_s: unix_s() }, form, out)
    }

    /// Stores the cookies of a response.
    pub(super) fn store_cookies(&self, response: &ProgramResponse<'_>) {
        if !has_field(response.head, b"set-cookie:") {
            return;
        }
        let now = unix_s();
        let mut state = lock(&self.request.get().session.get().state);
        response.with_headers(|fields| {
            for (_, value) in fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie")) {
                // An ignored cookie is common and no failure.
                let _ = state.jar.store(value, &self.url, now);
            }
        });
    }

    /// URL that the response redirects to, if the request follows it.
    ///
    /// # Errors
    /// One line, if there were too many redirects, or the location is invalid.
    pub(super) fn redirect_of(&self, response: &ProgramResponse<'_>) -> Result<Option<HttpUrl>, String> {
        if !self.follows(response.status) {
            return Ok(None);
        }
        let location = response.with_headers(|fields| {
            let found = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("location"));
            found.map(|(_, value)| self.url.resolve(value).map_err(|error| format!("redirect: {error}")))
        });
        match location {
            Some(_) if self.history.len() >= MAX_REDIRECTS => Err(format!("more than {MAX_REDIRECTS} redirects")),
            location => location.transpose(),
        }
    }

    /// Goes on to where a response redirects.
    pub(super) fn follow(&mut self, py: Python<'_>, response: &ProgramResponse<'_>, url: HttpUrl) -> PyResult<()> {
        let history = self.history.iter().map(|one| one.clone_ref(py)).collect();
        let (request, from, method) = (self.request.clone_ref(py), self.url.clone(), self.method.clone());
        let head = (response.head, response.body);
        let made = ScriptResponse::new((response.status, method), request, from, head, response.times.service, history);
        self.history.push(Py::new(py, made)?);
        self.has_left_origin |= !self.url.credential_origin().shares_credentials_with(&url.credential_origin());
        self.sends_body &= keeps_body(response.status);
        self.method = Cow::Owned(method_after(response.status, &self.method).to_owned());
        self.url = url;
        Ok(())
    }

    /// Response as the task gets it.
    pub(super) fn into_response(self, response: &ProgramResponse<'_>) -> ScriptResponse {
        let head = (response.head, response.body);
        let Self { request, method, url, history, .. } = self;
        ScriptResponse::new((response.status, method), request, url, head, response.times.service, history)
    }

    /// Response whose body is to come, as the task gets it.
    pub(super) fn begun_response(&self, py: Python<'_>, part: &StreamPart<'_>) -> ScriptResponse {
        let history = self.history.iter().map(|one| one.clone_ref(py)).collect();
        let (request, url) = (self.request.clone_ref(py), self.url.clone());
        ScriptResponse::new((part.status, self.method.clone()), request, url, (part.head, b""), part.service, history)
    }

    /// Whether a response of this status is followed to where it redirects.
    pub(super) fn follows(&self, status: u16) -> bool {
        is_redirect(status) && self.request.get().follows_redirects
    }

    /// Response in place of one that never came.
    pub(super) fn into_no_response(self, error: String) -> ScriptResponse {
        let Self { request, method, url, history, .. } = self;
        let empty = (&b""[..], &b""[..]);
        let mut response = ScriptResponse::new((0, method), request, url, empty, Nanos::ZERO, history);
        response.error = Some(error);
        response
    }
}
