//! Requests that tasks send.

use pyo3::prelude::*;
use weir::load::program::{KeptParts, ProgramAction, ProgramCall, ProgramSend};

use super::request::ScriptRequest;
use super::task_stream::TaskStream;
use super::thread::{PythonThread, seconds};
use super::user::TaskExchange;

impl PythonThread {
    /// Sends a request that a task has yielded.
    ///
    /// # Errors
    /// Why it is not sent, as one line.
    pub(super) fn send(
        &mut self,
        request: &Bound<'_, ScriptRequest>,
        call: &mut ProgramCall<'_>,
    ) -> Result<ProgramAction, String> {
        let script_request = request.get();
        if self.user(call.user).is_some_and(|user| user.stream.is_some()) {
            return Err("a request within the block of a stream; leave the block first".to_owned());
        }
        let url = TaskExchange::url_of(script_request)?;
        let step = self.step_of(request, call.user);
        let is_streamed = script_request.is_streamed;
        let action = self.exchange(TaskExchange::new(request, url, step), call)?;
        if let Some(user) = self.user(call.user).filter(|_| is_streamed) {
            user.stream = Some(TaskStream::new());
        }
        Ok(action)
    }

    /// Index of the step of a request.
    pub(super) fn step_of(&mut self, request: &Bound<'_, ScriptRequest>, user: u32) -> u32 {
        let script_request = request.get();
        let scenario = self.user(user).map_or(0, |user| user.scenario);
        let known = self.steps.get(scenario, script_request);
        known.unwrap_or_else(|| {
            let name = script_request.step_name();
            let step = self.program.names.index(self.program.scenario(scenario), &name);
            self.steps.insert(step);
            let listed =
                (scenario, name, script_request.name.as_ref().unwrap_or(&script_request.url), &script_request.method);
            // Users that have no use for it do not have the method.
            let _ = self.factory.bind(request.py()).call_method1("add_step", listed);
            step
        })
    }

    /// Sends the request of an exchange.
    ///
    /// # Errors
    /// As above.
    pub(super) fn exchange(
        &mut self,
        exchange: TaskExchange,
        call: &mut ProgramCall<'_>,
    ) -> Result<ProgramAction, String> {
        let url = &exchange.url;
        let origin = self.origins.intern(url.is_tls(), url.host(), url.port());
        let origin = origin.ok_or_else(|| format!("'{url}': too many hosts"))?;
        exchange.write(&mut self.buffer)?;
        call.put_request(&self.buffer);
        let timeout = exchange.request.get().timeout_s.map(seconds);
        let send = ProgramSend {
            step: exchange.step,
            origin,
            intended: self.user(call.user).map_or(call.now, |user| user.due),
            timeout,
            is_bodyless: exchange.method == "HEAD",
            keeps: if exchange.request.get().is_streamed { KeptParts::Events } else { KeptParts::HeadAndBody },
            key: 0,
        };
        if let Some(user) = self.user(call.user) {
            user.exchange = Some(exchange);
        }
        Ok(ProgramAction::Send(send))
    }
}
