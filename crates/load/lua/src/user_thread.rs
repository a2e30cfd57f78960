//! Users of one worker thread, driven by the thread's interpreter.

use std::sync::Arc;

use mlua::{Function, LuaString, Table};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_load::program::{
    KeptParts, PipelinedRequest, ProgramAction, ProgramCall, ProgramOrigin, ProgramResponse, ProgramSend, ThreadProgram,
};
use weir_scenario::plan::{OriginId, RequestOrigin};

use super::failure::describe;
use super::pipeline::{parse, split};
use super::source::ScriptErrors;
use super::thread_handle::ThreadState;
use super::vm::Vm;

/// Functions that the script defines, as the first thread's interpreter had them after `init`; the same for all
/// threads, as in wrk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DefinedFunctions {
    pub(crate) request: bool,
    pub(crate) delay: bool,
    pub(crate) response: bool,
}

/// Users of one worker thread.
#[derive(Debug)]
pub(crate) struct LuaThread {
    vm: Arc<Vm>,
    state: Arc<ThreadState>,
    request: Function,
    delay: Function,
    response: Function,
    defined: DefinedFunctions,
    errors: ScriptErrors,
    /// Scheme, host and port of the target, for addresses that the script sets.
    target: RequestOrigin,
    users: Vec<ScriptUser>,
    /// Request that never changes.
    prepared: Option<Vec<u8>>,
    /// Requests in the string of the last call.
    requests: Vec<PipelinedRequest>,
    /// Last head of a response, and its headers.
    head: Vec<u8>,
    headers: Option<Table>,
}

/// User of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct ScriptUser {
    /// When the request should be sent: the start of the iteration, or the end of its delay.
    intended: Nanos,
    has_failed: bool,
}

impl LuaThread {
    /// Users of the thread of an interpreter whose `init` was called.
    ///
    /// # Errors
    /// One line, if the script's request is invalid.
    pub(crate) fn new(
        vm: &Arc<Vm>,
        state: Arc<ThreadState>,
        defined: DefinedFunctions,
        errors: ScriptErrors,
        target: RequestOrigin,
    ) -> Result<Self, String> {
        let entry = |name| vm.entry(name);
        let (request, delay, response) = (entry("request")?, entry("delay")?, entry("response")?);
        let mut thread = Self {
            vm: Arc::clone(vm),
            state,
            request,
            delay,
            response,
            defined,
            errors,
            target,
            users: Vec::new(),
            prepared: None,
            requests: Vec::new(),
            head: Vec::new(),
            headers: None,
        };
        if !defined.request {
            thread.prepared = Some(thread.checked_request()?);
        }
        Ok(thread)
    }

    /// Calls `request` once and checks what it returns.
    ///
    /// # Errors
    /// One line with what is wrong.
    pub(crate) fn checked_request(&mut self) -> Result<Vec<u8>, String> {
        let text = self.call_request()?;
        let bytes = text.as_bytes();
        parse(&bytes, &mut self.requests).map_err(|why| format!("request() returned {why}"))?;
        Ok(bytes.to_vec())
    }

    /// Number of requests in the last string.
    pub(crate) fn requests(&self) -> &[PipelinedRequest] {
        &self.requests
    }

    /// Request that never changes, if it is one.
    pub(crate) fn single_request(&self) -> Option<&[u8]> {
        self.prepared.as_deref().filter(|_| self.requests.len() == 1 && self.state.address_number() == 0)
    }

    fn call_request(&self) -> Result<LuaString, String> {
        let result = self.vm.watch.watch(|| self.request.call::<mlua::Value>(()));
        match result {
            Ok(mlua::Value::String(text)) => Ok(text),
            Ok(other) => {
                Err(format!("request() returned {}; return a string, such as wrk.format()", other.type_name()))
            }
            Err(error) => Err(self.vm.describe(&error, "request")),
        }
    }

    /// Milliseconds of `delay`, rounded down as in wrk.
    fn call_delay(&self) -> Result<Nanos, String> {
        let result = self.vm.watch.watch(|| self.delay.call::<mlua::Value>(()));
        let delay = match result {
            Ok(mlua::Value::Integer(ms)) => ms as f64,
            Ok(mlua::Value::Number(ms)) => ms,
            Ok(mlua::Value::String(text)) => text.to_str().ok().and_then(|text| text.parse().ok()).unwrap_or(0.0),
            Ok(_) => 0.0,
            Err(error) => return Err(self.vm.describe(&error, "delay")),
        };
        Ok(Nanos::from_millis(delay.max(0.0) as u64))
    }

    fn user(&mut self, user: u32) -> &mut ScriptUser {
        let at = user as usize;
        if self.users.len() <= at {
            self.users.resize(at + 1, ScriptUser::default());
        }
        &mut self.users[at]
    }

    /// Sends the next request of a user.
    fn send(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        let intended = self.user(call.user).intended;
        if let Some(bytes) = &self.prepared {
            call.put_pipeline(bytes, &self.requests);
        } else {
            let text = match self.call_request() {
                Ok(text) => text,
                Err(why) => return self.failed_call(why, call),
            };
            let bytes = text.as_bytes();
            if let Err(why) = split(&bytes, &mut self.requests) {
                drop(bytes);
                return self.failed_call(format!("request() returned {why}"), call);
            }
            call.put_pipeline(&bytes, &self.requests);
        }
        if self.state.is_stopped() {
            return ProgramAction::StopThread;
        }
        ProgramAction::Send(ProgramSend {
            step: 0,
            origin: OriginId(self.state.address_number()),
            intended,
            timeout: None,
            is_bodyless: self.requests.first().is_some_and(|request| request.is_bodyless),
            keeps: if self.defined.response { KeptParts::HeadAndBody } else { KeptParts::Nothing },
            key: 0,
        })
    }

    /// Next action after an error of the script.
    #[cold]
    fn failed_call(&self, why: String, call: &mut ProgramCall<'_>) -> ProgramAction {
        match self.errors {
            ScriptErrors::Stop => ProgramAction::Abort(why),
            ScriptErrors::Count => {
                call.fail(why);
                ProgramAction::End { ok: false }
            }
        }
    }

    fn call_response(&mut self, response: &ProgramResponse<'_>) -> Result<(), String> {
        let headers = self.headers(response).map_err(|error| describe(&error, "response"))?;
        let vm = &self.vm;
        let body = vm.lua.create_string(response.body).map_err(|error| describe(&error, "response"))?;
        let result = vm.watch.watch(|| self.response.call::<()>((response.status, headers, body)));
        result.map_err(|error| vm.describe(&error, "response"))
    }

    /// Table of the headers. Responses of a service mostly have the same head, except for their date.
    fn headers(&mut self, response: &ProgramResponse<'_>) -> mlua::Result<Table> {
        if self.head == response.head
            && let Some(headers) = &self.headers
        {
            return Ok(headers.clone());
        }
        let lua = &self.vm.lua;
        let headers = response.with_headers(|fields| {
            let table = lua.create_table_with_capacity(0, fields.len())?;
            for (name, value) in fields {
                table.raw_set(*name, lua.create_string(value)?)?;
            }
            mlua::Result::Ok(table)
        })?;
        self.head.clear();
        self.head.extend_from_slice(response.head);
        self.headers = Some(headers.clone());
        Ok(headers)
    }
}

impl ThreadProgram for LuaThread {
    fn begin(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        let delay = match self.defined.delay {
            true => self.call_delay(),
            false => Ok(Nanos::ZERO),
        };
        let delay = match delay {
            Ok(delay) => delay,
            Err(why) => return self.failed_call(why, call),
        };
        let intended = call.intended + delay;
        *self.user(call.user) = ScriptUser { intended, has_failed: false };
        if self.state.is_stopped() {
            return ProgramAction::StopThread;
        }
        if delay > Nanos::ZERO { ProgramAction::WaitUntil(intended) } else { self.send(call) }
    }

    fn woken(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        self.send(call)
    }

    fn response(&mut self, response: &ProgramResponse<'_>, call: &mut ProgramCall<'_>) -> ProgramAction {
        let mut is_ok = response.status < 400;
        if self.defined.response {
            if let Err(why) = self.call_response(response) {
                match self.errors {
                    ScriptErrors::Stop => return ProgramAction::Abort(why),
                    ScriptErrors::Count => {
                        call.fail(why);
                        is_ok = false;
                    }
                }
            }
            if self.state.is_stopped() {
                return ProgramAction::StopThread;
            }
        }
        self.ended(call.user, is_ok, response.remaining)
    }

    fn failed(&mut self, _: FailureKind, remaining: usize, call: &mut ProgramCall<'_>) -> ProgramAction {
        self.ended(call.user, false, remaining)
    }

    fn origin(&self, origin: OriginId) -> Option<ProgramOrigin> {
        let address = self.state.address(origin.0)?;
        Some(ProgramOrigin { origin: self.target.clone(), address: Some(address), is_for_calls: false, tls: None })
    }
}

impl LuaThread {
    /// Next action after the end of a request; `remaining` further ones of the same string are in flight.
    fn ended(&mut self, user: u32, is_ok: bool, remaining: usize) -> ProgramAction {
        let user = self.user(user);
        user.has_failed |= !is_ok;
        if remaining > 0 { ProgramAction::Await } else { ProgramAction::End { ok: !user.has_failed } }
    }
}
