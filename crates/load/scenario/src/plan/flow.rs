//! Flow of a user through the steps of a scenario.

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::grpc_status::is_success_status;

use super::credential_home::{CredentialHome, RenderedTarget};
use super::digest::DigestRequest;
use super::findings::{FlowFailure, StepFindings, StepVerdict};
use super::origin::{OriginId, OriginTable};
use super::redirect::{RedirectRequest, is_redirect};
use super::render_error::RenderError;
use super::request_bytes::RequestBytes;
use super::request_template::{RenderScratch, RenderSource, RequestShape, intern};
use super::rules::StepRules;
use super::scenario_plan::ScenarioPlan;
use super::step::ScenarioStep;
use super::user::{RequestMethod, ScenarioUser, UserPhase};
use crate::evaluate::{RenderContext, ResponseView};
use weir_request::url::HttpUrl;

/// Next action of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowAction {
    /// Sends the request in the buffer.
    Send {
        /// Destination of the request.
        origin: OriginId,
        /// Time at which the user meant to send: the end of the wait before it, or the response before it.
        intended: Nanos,
    },
    /// Waits, and is then woken.
    WaitUntil(Nanos),
    /// Has ended the iteration.
    End {
        /// Whether no step has failed.
        ok: bool,
    },
}

/// Inputs and buffers of a flow: those of a thread.
#[derive(Debug)]
pub struct FlowContext<'a> {
    /// Steps.
    pub plan: &'a ScenarioPlan,
    /// Origins of this thread.
    pub origins: &'a mut OriginTable,
    /// Bytes of the request to send; overwritten.
    pub request: &'a mut RequestBytes,
    /// Outcome of the user's last request for its step; overwritten.
    pub findings: &'a mut StepFindings,
    /// Buffers.
    pub scratch: &'a mut RenderScratch,
    /// Date, in seconds since 1970.
    pub unix_s: i64,
}

impl ScenarioUser {
    /// Begins an iteration, after [`prepare`](Self::prepare). The first request is meant for `intended`, which is not
    /// after `now`.
    pub fn begin(&mut self, flow: &mut FlowContext<'_>, intended: Nanos, now: Nanos) -> FlowAction {
        flow.findings.clear(self.place.step);
        self.start_step(flow, intended, now)
    }

    /// Takes the response to the request that was sent last.
    pub fn response(&mut self, flow: &mut FlowContext<'_>, view: &ResponseView<'_>, now: Nanos) -> FlowAction {
        flow.findings.clear(self.place.step);
        let plan = flow.plan;
        let Some(step) = plan.steps.get(self.place.step as usize) else { return self.end() };
        self.store_cookies(step, view, flow.unix_s);
        if view.status == 401
            && let Some(action) = self.answer_challenge(flow, step, view, now)
        {
            return action;
        }
        if self.place.rules.follow_redirects
            && is_redirect(view.status)
            && let Some(location) = view.header("location")
        {
            return match self.redirect(flow, step, view.status, location) {
                Ok(origin) => {
                    flow.findings.verdict = Some(StepVerdict::Redirected);
                    FlowAction::Send { origin, intended: now }
                }
                Err(failure) => {
                    flow.findings.failures.push(failure);
                    self.fail_step(flow, now)
                }
            };
        }
        let redirected = std::mem::take(&mut self.redirected);
        self.examine(flow, step, &ResponseView { redirects: &redirected, ..*view });
        if !flow.findings.failures.is_empty() {
            return self.fail_step(flow, now);
        }
        // As in a load: without an expectation of the step its status decides, and the user goes on.
        let is_success = is_success_status(view.status) || step.checks.expects_status();
        if !is_success && self.place.rules.retries_status(view.status) && self.may_retry() {
            return self.fail_step(flow, now);
        }
        flow.findings.verdict = Some(if is_success { StepVerdict::Passed } else { StepVerdict::Failed });
        self.place.is_ok &= is_success;
        self.place.repeats = self.place.repeats.saturating_add(1);
        self.start_step(flow, now, now)
    }

    /// Takes the failure of the request that was sent last.
    pub fn failed(&mut self, flow: &mut FlowContext<'_>, kind: FailureKind, now: Nanos) -> FlowAction {
        flow.findings.clear(self.place.step);
        flow.findings.failures.push(FlowFailure::Transfer(kind));
        self.fail_step(flow, now)
    }

    /// Continues after a wait.
    pub fn woken(&mut self, flow: &mut FlowContext<'_>, now: Nanos) -> FlowAction {
        flow.findings.clear(self.place.step);
        match self.place.phase {
            UserPhase::Waiting(until) if now < until => FlowAction::WaitUntil(until),
            UserPhase::Waiting(until) => self.send(flow, until, now),
            UserPhase::Starting(from) => self.start_step(flow, from, now),
            UserPhase::Idle | UserPhase::Sent => self.end(),
        }
    }

    /// Starts the step at the user's place, or the next one that is not skipped. `from` is the end of what was before.
    fn start_step(&mut self, flow: &mut FlowContext<'_>, from: Nanos, now: Nanos) -> FlowAction {
        let plan = flow.plan;
        loop {
            let Some(step) = plan.steps.get(self.place.step as usize) else { return self.end() };
            match self.evaluate_options(flow, step) {
                Ok(rules) => self.place.rules = rules,
                Err(_) if flow.findings.is_used() => {
                    // One call has findings about one step: this failure is found again when the user is woken.
                    self.place.phase = UserPhase::Starting(from);
                    return FlowAction::WaitUntil(now);
                }
                Err(error) => {
                    flow.findings.add(self.place.step, FlowFailure::Request(error));
                    flow.findings.verdict = Some(StepVerdict::Failed);
                    self.place.is_ok = false;
                    if !plan.continue_on_error {
                        return self.end();
                    }
                    self.leave_step();
                    continue;
                }
            }
            if self.place.rules.skip || self.place.repeats >= self.place.rules.repeat {
                self.leave_step();
                continue;
            }
            self.place.retries = 0;
            let think = if self.place.has_sent { plan.think.sample(&mut self.rng) } else { Nanos::ZERO };
            let due = from + think + self.place.rules.delay;
            if due > now {
                self.place.phase = UserPhase::Waiting(due);
                return FlowAction::WaitUntil(due);
            }
            return self.send(flow, due, now);
        }
    }

    fn evaluate_options(&mut self, flow: &mut FlowContext<'_>, step: &ScenarioStep) -> Result<StepRules, RenderError> {
        let mut context = RenderContext { rng: &mut self.rng, unix_s: flow.unix_s, sequence: self.sequence };
        let mut source = RenderSource { variables: &mut self.variables, context: &mut context };
        step.options.evaluate(&mut source, &mut flow.scratch.body)
    }

    /// Renders the request of the step.
    fn send(&mut self, flow: &mut FlowContext<'_>, intended: Nanos, now: Nanos) -> FlowAction {
        let plan = flow.plan;
        let Some(step) = plan.steps.get(self.place.step as usize) else { return self.end() };
        self.place.rng = self.rng;
        let mut context = RenderContext { rng: &mut self.rng, unix_s: flow.unix_s, sequence: self.sequence };
        let mut source = RenderSource { variables: &mut self.variables, context: &mut context };
        flow.request.clear();
        self.redirected.clear();
        let home = CredentialHome { of_plan: plan.home.as_ref(), first_sent: self.place.first_origin };
        let rendered = step.request.render(
            &mut source,
            (&mut self.jar, &mut self.url),
            (&mut *flow.origins, home),
            flow.scratch,
            flow.request,
        );
        match rendered {
            Ok(RenderedTarget { origin, is_home }) => {
                let place = &mut self.place;
                place.first_origin.get_or_insert(origin);
                place.phase = UserPhase::Sent;
                place.origin = origin;
                place.redirects = 0;
                place.method = RequestMethod::OfStep;
                (place.has_body, place.has_sent) = (true, true);
                (place.is_own_origin, place.is_home) = (true, is_home);
                place.has_answered = false;
                FlowAction::Send { origin, intended }
            }
            Err(_) if flow.findings.is_used() => {
                self.place.phase = UserPhase::Waiting(intended);
                FlowAction::WaitUntil(now)
            }
            Err(error) => {
                flow.findings.add(self.place.step, FlowFailure::Request(error));
                self.fail_step(flow, now)
            }
        }
    }

    /// Ends an execution of the step that has failed.
    fn fail_step(&mut self, flow: &mut FlowContext<'_>, now: Nanos) -> FlowAction {
        if self.may_retry() {
            self.place.retries += 1;
            flow.findings.verdict = Some(StepVerdict::Retried);
            let due = now + self.place.rules.retry_wait(self.place.retries, &mut self.rng);
            self.place.phase = UserPhase::Waiting(due);
            return FlowAction::WaitUntil(due);
        }
        flow.findings.verdict = Some(StepVerdict::Failed);
        self.place.is_ok = false;
        if !flow.plan.continue_on_error {
            return self.end();
        }
        self.place.repeats = self.place.repeats.saturating_add(1);
        self.start_step(flow, now, now)
    }

    fn may_retry(&self) -> bool {
        self.place.retries < self.place.rules.max_retries
    }

    fn store_cookies(&mut self, step: &ScenarioStep, view: &ResponseView<'_>, unix_s: i64) {
        let Some(url) = self.url.get(step) else { return };
        for (name, value) in view.headers {
            if name.eq_ignore_ascii_case("set-cookie") {
                // A cookie that is ignored is not a failure of the response.
                let _ = self.jar.store(value, url, unix_s);
            }
        }
    }

    /// Evaluates the captures and checks of a response.
    fn examine(&mut self, flow: &mut FlowContext<'_>, step: &ScenarioStep, view: &ResponseView<'_>) {
        let mut context = RenderContext { rng: &mut self.rng, unix_s: flow.unix_s, sequence: self.sequence };
        let mut source = RenderSource { variables: &mut self.variables, context: &mut context };
        let url = if step.checks.needs_url() { self.url.get(step).map(ToString::to_string) } else { None };
        let view = ResponseView { url: url.as_deref().unwrap_or(view.url), ..*view };
        step.checks.evaluate(&view, &mut source, &mut flow.scratch.body, flow.findings);
    }

    fn leave_step(&mut self) {
        self.place.repeats = 0;
        self.place.step += 1;
    }

    fn end(&mut self) -> FlowAction {
        self.place.phase = UserPhase::Idle;
        FlowAction::End { ok: self.place.is_ok }
    }

    /// Sends the request again with the answer to a challenge of digest authentication, once.
    fn answer_challenge(
        &mut self,
        flow: &mut FlowContext<'_>,
        step: &ScenarioStep,
        view: &ResponseView<'_>,
        now: Nanos,
    ) -> Option<FlowAction> {
        let place = &self.place;
        let credentials = step.request.digest(place.is_home).filter(|_| !place.has_answered && place.is_trusted())?;
        let method = match self.place.method {
            RequestMethod::OfStep => step.request.method.as_str(),
            RequestMethod::Get => "GET",
        };
        let nonce = self.rng.bits();
        let mut rng = self.place.rng;
        let mut context = RenderContext { rng: &mut rng, unix_s: flow.unix_s, sequence: self.sequence };
        let mut source = RenderSource { variables: &mut self.variables, context: &mut context };
        let scratch = &mut flow.scratch.body;
        scratch.clear();
        credentials.render(&mut source, scratch).ok()?;
        let url = self.url.get(step)?;
        let target = String::from_utf8_lossy(url.target());
        let request = DigestRequest { credentials: &String::from_utf8_lossy(scratch), method, target: &target, nonce };
        let mut challenges = view.values("www-authenticate").filter_map(|value| std::str::from_utf8(value).ok());
        let answer = challenges.find_map(|challenge| request.answer(challenge))?;
        let shape = RequestShape {
            method,
            url,
            has_body: self.place.has_body,
            is_own_origin: self.place.is_own_origin,
            is_trusted: true,
            is_home: self.place.is_home,
            answer: Some(&answer),
        };
        flow.request.clear();
        step.request.write(shape, &mut source, &mut self.jar, scratch, flow.request).ok()?;
        self.place.has_answered = true;
        flow.findings.verdict = Some(StepVerdict::Redirected);
        Some(FlowAction::Send { origin: self.place.origin, intended: now })
    }

    /// Renders the request that follows a redirect.
    fn redirect(
        &mut self,
        flow: &mut FlowContext<'_>,
        step: &ScenarioStep,
        status: u16,
        location: &[u8],
    ) -> Result<OriginId, FlowFailure> {
        let place = &mut self.place;
        let max = place.rules.max_redirects;
        if place.redirects >= max {
            return Err(FlowFailure::Redirects(max));
        }
        place.redirects += 1;
        let base = self.url.get(step);
        let url = base.map_or_else(|| HttpUrl::parse(location), |base| base.resolve(location));
        let url = url.map_err(FlowFailure::Location)?;
        if step.checks.needs_redirects() {
            self.redirected.push(url.to_string());
        }
        // What was left out on the way does not come back: who redirects here again is another origin.
        place.is_own_origin &=
            base.is_some_and(|base| base.credential_origin().shares_credentials_with(&url.credential_origin()));
        let is_trusted = place.is_trusted();
        let method = match place.method {
            RequestMethod::OfStep => step.request.method.as_str(),
            RequestMethod::Get => "GET",
        };
        let next = RedirectRequest::after(status, method, place.has_body);
        if next.method != method {
            place.method = RequestMethod::Get;
        }
        place.has_body = next.keeps_body;
        let origin = intern(&url, flow.origins).ok_or(FlowFailure::Request(RenderError::Origins))?;
        place.origin = origin;
        let shape = RequestShape {
            method: next.method,
            url: &url,
            has_body: next.keeps_body,
            is_own_origin: place.is_own_origin,
            is_trusted,
            is_home: is_trusted && place.is_home,
            answer: None,
        };
        // A request that is sent again has the same random values.
        let mut rng = place.rng;
        let mut context = RenderContext { rng: &mut rng, unix_s: flow.unix_s, sequence: self.sequence };
        let mut source = RenderSource { variables: &mut self.variables, context: &mut context };
        flow.request.clear();
        let request = &step.request;
        let written = request
            .skip_target(&mut source, flow.scratch)
            .and_then(|()| request.write(shape, &mut source, &mut self.jar, &mut flow.scratch.body, flow.request));
        self.url.set(url);
        written.map(|()| origin).map_err(FlowFailure::Request)
    }
}
