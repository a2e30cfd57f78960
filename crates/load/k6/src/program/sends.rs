//! What users send: requests that their scripts have made, and what follows.

use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_load::program::{KeptParts, ProgramAction, ProgramCall, ProgramSend};

use super::exchange::HttpExchange;
use super::thread::K6Thread;
use super::user::{K6User, UserWait};
use crate::host::exchange::HttpRequest;
use crate::samples::HttpSample;

/// Most URLs whose steps a thread keeps: those with numbers in them may be without end.
const MAX_STEP_KEYS: usize = 10_000;
/// Most times that a script goes on at once before others have their turn: requests that cannot be sent end at once.
const MAX_RUNS: u32 = 8;

impl K6Thread {
    /// What a user does next, whose script waits: it sends what is to be sent, goes on, or waits.
    pub(super) fn next_action(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        let mut runs = 0;
        loop {
            self.flush_sockets(call);
            let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
            let has_sockets = user.state.sockets.borrow().is_open();
            let has_report = user.state.sockets.borrow().has_news();
            if let Some(action) = self.put_off(call) {
                return action;
            }
            let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
            let mut exchanges = user.state.exchanges.borrow_mut();
            let next = exchanges.outbox.pop_front();
            let (is_last, has_result) = (exchanges.outbox.is_empty(), exchanges.has_news() || has_report);
            drop(exchanges);
            if let Some((key, request)) = next {
                let step = self.step_of(&request, call.scenario);
                let is_stream = request.is_stream;
                match self.exchange(Box::new(HttpExchange::new(request, key, step)), call) {
                    // A response brings the next action; else there is more to do.
                    Ok(send) if is_last && !is_stream && self.awaits_request(call.user) => {
                        return ProgramAction::Send(send);
                    }
                    Ok(send) => return ProgramAction::SendBeside(send),
                    Err((exchange, why)) => self.finish(call.user, *exchange, (FailureKind::Request, why)),
                }
                continue;
            }
            self.flush_calls(call);
            let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
            return match user.wait {
                // Its wait is still to end, with what it has.
                UserWait::Request(_) if has_result && runs == MAX_RUNS => ProgramAction::WaitUntil(call.now),
                UserWait::Request(_) if has_result => {
                    runs += 1;
                    match self.run_on(call) {
                        Some(action) => action,
                        None => continue,
                    }
                }
                UserWait::Request(Nanos::NEVER) if !has_sockets => ProgramAction::Await,
                UserWait::Request(until) => ProgramAction::WaitUntil(until),
                UserWait::Until(at) => {
                    user.due = at;
                    ProgramAction::WaitUntil(at)
                }
                UserWait::Start(_) | UserWait::Nothing => ProgramAction::Await,
            };
        }
    }

    /// What a user does whose next request may not be sent yet, since the rate is limited; `None` if it may, or if there
    /// is none.
    fn put_off(&mut self, call: &mut ProgramCall<'_>) -> Option<ProgramAction> {
        let program = Arc::clone(&self.program);
        program.script.options.requests_per_s?;
        let now = call.now;
        let user = self.user(call.user)?;
        let is_limited = user.state.exchanges.borrow().outbox.front().is_some_and(|(_, request)| !request.is_call);
        if !is_limited {
            return None;
        }
        let at = *user.send_at.get_or_insert_with(|| program.time_to_send(now));
        if at <= now {
            user.send_at = None;
            user.due = user.due.max(at);
            return None;
        }
        let cut = user.given.map_or(Nanos::NEVER, |given| given.cut);
        if now >= cut {
            // It is cut off, and waits for nothing.
            return Some(self.run_on(call).unwrap_or(ProgramAction::Await));
        }
        let until = match user.wait {
            UserWait::Request(until) | UserWait::Until(until) => until,
            UserWait::Start(_) | UserWait::Nothing => Nanos::NEVER,
        };
        Some(ProgramAction::WaitUntil(at.min(until).min(cut)))
    }

    /// Whether a user waits for the end of a request alone.
    pub(super) fn awaits_request(&mut self, user: u32) -> bool {
        let waits =
            |user: &mut K6User| user.wait == UserWait::Request(Nanos::NEVER) && !user.state.sockets.borrow().is_open();
        self.user(user).is_some_and(waits)
    }

    /// Gives the script of a user the failure of a request that has not been sent, or has no response.
    pub(super) fn finish(&mut self, user: u32, exchange: HttpExchange, (kind, why): (FailureKind, String)) {
        if let Some(user) = self.user(user) {
            let (key, service) = (exchange.key, user.state.now.get() - exchange.since);
            let failed = exchange.into_failure(kind, why, service);
            user.state.exchanges.borrow_mut().finish(key, failed);
        }
    }

    /// Index of the step of a request.
    pub(super) fn step_of(&mut self, request: &HttpRequest, scenario: u32) -> u32 {
        // The name of the step is made once for each name, or method and URL; the key takes no memory of its own.
        let mut key = std::mem::take(&mut self.step_key);
        key.clear();
        let url = &request.url;
        let _ = match &request.name {
            Some(name) => write!(key, "{scenario} n{name}"),
            None => write!(key, "{scenario} {} {}:{}{}", request.method, url.host(), url.port(), url.path()),
        };
        let step = match self.steps.get(key.as_str()) {
            Some(step) => *step,
            None => {
                let step = self.program.step_index(scenario as usize, &self.program.step_name(request));
                if self.steps.len() < MAX_STEP_KEYS {
                    self.steps.insert(key.clone(), step);
                }
                step
            }
        };
        self.step_key = key;
        step
    }

    /// Writes the request of an exchange.
    pub(super) fn exchange(
        &mut self,
        mut exchange: Box<HttpExchange>,
        call: &mut ProgramCall<'_>,
    ) -> Result<ProgramSend, (Box<HttpExchange>, String)> {
        let url = &exchange.url;
        if self.program.script.options.blocks(url.host()) {
            let why = format!("'{}' is one of options.blockHostnames", url.host());
            return Err((exchange, why));
        }
        let origin = match exchange.request.is_call {
            true => self.call_origins.intern(url, exchange.request.channel),
            false => self.program.origin_of(&mut self.origins, url),
        };
        let Some(origin) = origin else {
            let why = format!("'{url}': too many hosts");
            return Err((exchange, why));
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        let program = Arc::clone(&self.program);
        let Some(user) = self.user(call.user) else { return Err((exchange, "no user".to_owned())) };
        let written = {
            let mut jars = user.state.jars.borrow_mut();
            let at = if exchange.request.jar < jars.len() { exchange.request.jar } else { 0 };
            exchange.write(&program.script.head, &mut jars[at], &mut buffer)
        };
        if let Err(why) = written {
            self.buffer = buffer;
            return Err((exchange, why));
        }
        if let Some(debug) = program.script.options.http_debug.filter(|_| !exchange.request.is_call) {
            program.script.file.log("info", &debug.request(&buffer));
        }
        call.put_request(&buffer);
        let left = user.given.map_or(Nanos::NEVER, |given| given.cut - call.now).max(Nanos::MILLI);
        exchange.since = call.now;
        let send = ProgramSend {
            step: exchange.step,
            origin,
            intended: user.due,
            timeout: Some(exchange.request.timeout.min(left)),
            is_bodyless: exchange.method == "HEAD",
            keeps: match &exchange.request {
                request if request.is_stream => KeptParts::Messages,
                request if request.discards_body => KeptParts::Head,
                _ => KeptParts::HeadAndBody,
            },
            key: exchange.key,
        };
        user.exchanges.push(*exchange);
        self.buffer = buffer;
        Ok(send)
    }

    /// Takes the values of a response, or of a failure, and says whether it is a success.
    pub(super) fn judge(&mut self, sample: &HttpSample<'_>, call: &mut ProgramCall<'_>) {
        let Some(user) = self.user(call.user) else { return };
        let is_expected = sample.is_expected();
        user.has_failed |= !is_expected;
        let state = Rc::clone(&user.state);
        sample.record(&state);
        if sample.status > 0 && !sample.request.is_call {
            call.is_success = Some(is_expected);
        }
    }
}
