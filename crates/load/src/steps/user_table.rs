//! Users of one thread: their places in scenarios, their waits, and what they send next.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use weir_decide::Nanos;
use weir_decide::base::failure::FailureKind;
use weir_decide::load::{feed::DueRequest, shard::Shard};
use weir_http::tls::Tls;
use weir_http::wire::HeadNotes;
use weir_scenario::data::ScenarioOrdinals;
use weir_scenario::evaluate::{CompiledCapture, ResponseView};
use weir_scenario::plan::{
    FlowAction, FlowContext, OriginId, RenderScratch, RequestBytes, ScenarioStep, ScenarioUser, StepFindings,
};
use weir_scenario::value::Value;

use super::headers::{HeaderField, with_headers};
use super::redaction::{Redaction, variable_texts};
use super::thread_origins::ThreadOrigins;
use super::user_action::{EndedIteration, PendingRequest, Send, UserAction, UserRest};
use super::user_connections::UserConnections;
use super::{ExchangePool, ResolvedOrigin, ScenarioMix, StepExchange};

/// Users of one thread.
#[derive(Debug)]
pub(crate) struct UserTable<'a> {
    mix: &'a ScenarioMix,
    seed: u64,
    ordinals: ScenarioOrdinals,
    /// Numbers of the users in the whole load, in the closed loop.
    numbers: Option<Shard>,
    users: Vec<LoadUser>,
    /// Users of the open loop that have no iteration.
    idle: Vec<u32>,
    max_users: usize,
    timers: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Users that wait to be allowed to connect.
    connecting: VecDeque<u32>,
    origins: ThreadOrigins,
    /// Request to send, rendered.
    pub(crate) request: RequestBytes,
    /// What the last call of a flow found.
    pub(crate) findings: StepFindings,
    scratch: RenderScratch,
    /// Buffers of exchanges.
    pub(crate) exchanges: ExchangePool,
}

/// User of a thread.
#[derive(Debug)]
struct LoadUser {
    flow: ScenarioUser,
    scenario: u32,
    /// Number of the iteration among all of the load, and its intended start.
    iteration: u64,
    intended: Nanos,
    /// Time from which only weir itself could delay the first request.
    ready: Nanos,
    /// Whether a request of the iteration has reached its service.
    has_reached: bool,
    /// Wait between two iterations.
    rest: Option<UserRest>,
    /// Open connections, by scenario and origin.
    connections: UserConnections,
    /// Request that waits to be allowed to connect.
    pending: Option<PendingRequest>,
}

impl<'a> UserTable<'a> {
    /// Users of a thread that has at most `max_users` of them, with these numbers in the closed loop.
    pub(crate) fn new(mix: &'a ScenarioMix, seed: u64, numbers: Option<Shard>, max_users: usize) -> Self {
        Self {
            mix,
            seed,
            ordinals: ScenarioOrdinals::default(),
            numbers,
            users: Vec::new(),
            idle: Vec::new(),
            max_users,
            timers: BinaryHeap::new(),
            connecting: VecDeque::new(),
            origins: ThreadOrigins::new(mix),
            request: RequestBytes::default(),
            findings: StepFindings::default(),
            scratch: RenderScratch::default(),
            exchanges: ExchangePool::default(),
        }
    }

    /// Scenarios of the load.
    pub(crate) fn mix(&self) -> &'a ScenarioMix {
        self.mix
    }

    /// Whether a user is free for an iteration that arrives.
    pub(crate) fn has_free(&self) -> bool {
        !self.idle.is_empty() || self.users.len() < self.max_users
    }

    /// A free user; one that is new is made by [`begin`](Self::begin).
    pub(crate) fn take_free(&mut self) -> u32 {
        self.idle.pop().unwrap_or_else(|| u32::try_from(self.users.len()).unwrap_or(u32::MAX))
    }

    /// Frees a user for the next iteration that arrives.
    pub(crate) fn free(&mut self, user: u32) {
        self.idle.push(user);
    }

    /// Time of the next wake.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Next user whose wait is over.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<u32> {
        let Reverse((at, user)) = *self.timers.peek()?;
        if at > now {
            return None;
        }
        self.timers.pop();
        Some(user)
    }

    /// Whether no user waits.
    pub(crate) fn is_quiet(&self) -> bool {
        self.timers.is_empty() && self.connecting.is_empty()
    }

    /// Ends all waits; `cut_off` gets the scenario of each iteration that is cut off. Returns the number of requests
    /// that waited to be allowed to connect.
    pub(crate) fn cut(&mut self, mut cut_off: impl FnMut(u32)) -> u64 {
        let waits = std::mem::take(&mut self.timers).into_iter().map(|Reverse((_, user))| user);
        let connecting = std::mem::take(&mut self.connecting);
        let withdrawn = connecting.len() as u64;
        for user in waits.chain(connecting) {
            if let Some(slot) = self.users.get(user as usize).filter(|slot| slot.rest.is_none()) {
                cut_off(slot.scenario);
            }
        }
        withdrawn
    }

    /// Pauses a user between two iterations.
    pub(crate) fn rest(&mut self, user: u32, until: Nanos, rest: UserRest) {
        if let Some(slot) = self.users.get_mut(user as usize) {
            slot.rest = Some(rest);
            self.timers.push(Reverse((until, user)));
        }
    }

    /// Ends the rest of a user that was woken, if it rests between two iterations.
    pub(crate) fn end_rest(&mut self, user: u32) -> Option<UserRest> {
        self.users.get_mut(user as usize)?.rest.take()
    }

    /// Earliest start of a user's next iteration, if its scenario has a pace.
    pub(crate) fn paced_start(&self, user: u32) -> Option<Nanos> {
        let slot = self.users.get(user as usize)?;
        let pacing = self.mix.scenarios.get(slot.scenario as usize)?.pacing?;
        Some(slot.intended + pacing)
    }

    /// Begins an iteration; only weir itself could delay its first request from `ready` on.
    pub(crate) fn begin(&mut self, user: u32, start: &DueRequest, ready: Nanos, now: Nanos, unix_s: i64) -> UserAction {
        let number = start.arrival.number;
        let user_number = self.numbers.map(|numbers| numbers.nth(u64::from(user)));
        let scenario = self.mix.pick(number, user_number);
        let Some(compiled) = self.mix.scenarios.get(scenario as usize) else { return UserAction::Wait };
        while self.users.len() <= user as usize {
            self.users.push(LoadUser {
                flow: ScenarioUser::new(&compiled.plan, self.seed, number),
                scenario,
                iteration: 0,
                intended: Nanos::ZERO,
                ready: Nanos::ZERO,
                has_reached: false,
                rest: None,
                connections: UserConnections::default(),
                pending: None,
            });
        }
        let Some(slot) = self.users.get_mut(user as usize) else { return UserAction::Wait };
        if slot.scenario != scenario {
            slot.flow.change_plan(&compiled.plan, self.seed, number);
            slot.scenario = scenario;
        }
        (slot.iteration, slot.intended, slot.ready) = (number, start.arrival.intended, ready);
        slot.has_reached = false;
        let variables = slot.flow.prepare(&compiled.plan, self.seed, number);
        if let Some(data) = &compiled.data {
            let ordinal = self.mix.ordinal(&mut self.ordinals, number);
            data.assign(ordinal, user_number.unwrap_or_default(), self.seed, &compiled.plan.columns, variables);
        }
        self.step(user, now, unix_s, |flow, context| flow.begin(context, start.arrival.intended, now))
    }

    /// Continues after a wait.
    pub(crate) fn woken(&mut self, user: u32, now: Nanos, unix_s: i64) -> UserAction {
        self.step(user, now, unix_s, |flow, context| flow.woken(context, now))
    }

    /// Takes a failed request.
    pub(crate) fn failed(&mut self, user: u32, kind: FailureKind, now: Nanos, unix_s: i64) -> UserAction {
        self.step(user, now, unix_s, |flow, context| flow.failed(context, kind, now))
    }

    /// Takes the response of this status to a request that took `service`; it was complete at `at`.
    pub(crate) fn response(
        &mut self,
        user: u32,
        exchange: &StepExchange,
        (status, service): (u16, Nanos),
        at: Nanos,
        unix_s: i64,
    ) -> UserAction {
        if let Some(slot) = self.users.get_mut(user as usize) {
            slot.has_reached = true;
        }
        // Most steps look at the status and the body alone.
        let needs_headers = self.step_of(user).is_none_or(|step| step.checks.needs_headers());
        let looks_at_headers = needs_headers
            || !(200..300).contains(&status)
            || exchange.notes != HeadNotes::default()
            || exchange.kept.has_other_charset();
        let ip = if needs_headers { self.origins.ip(self.scenario_of(user), exchange.origin) } else { String::new() };
        if !looks_at_headers {
            return self.examine(user, exchange, (&[], &ip), (status, service), at, unix_s);
        }
        with_headers(exchange.kept.head(), |headers| {
            self.examine(user, exchange, (headers, &ip), (status, service), at, unix_s)
        })
    }

    fn examine(
        &mut self,
        user: u32,
        exchange: &StepExchange,
        (headers, ip): (&[HeaderField<'_>], &str),
        (status, service): (u16, Nanos),
        at: Nanos,
        unix_s: i64,
    ) -> UserAction {
        let encoding = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
        let body = exchange.kept.decoded_body(encoding.map(|(_, value)| *value));
        let view = ResponseView {
            version: if exchange.kept.head().starts_with(b"HTTP/1.0") { "1.0" } else { "1.1" },
            status,
            headers,
            body: body.as_deref().unwrap_or_default(),
            raw_body: exchange.kept.raw_body(),
            body_error: body.as_ref().err().map(String::as_str),
            duration: service,
            ip,
            ..ResponseView::default()
        };
        self.step(user, at, unix_s, |flow, context| flow.response(context, &view, at))
    }

    fn step(
        &mut self,
        user: u32,
        now: Nanos,
        unix_s: i64,
        call: impl FnOnce(&mut ScenarioUser, &mut FlowContext<'_>) -> FlowAction,
    ) -> UserAction {
        let Self { mix, users, timers, origins, request, findings, scratch, .. } = self;
        let Some(slot) = users.get_mut(user as usize) else { return UserAction::Wait };
        let scenario = slot.scenario;
        let (Some(compiled), Some(origins)) = (mix.scenarios.get(scenario as usize), origins.table(scenario)) else {
            return UserAction::Wait;
        };
        let plan = &compiled.plan;
        let mut context = FlowContext { plan, origins, request, findings, scratch, unix_s };
        match call(&mut slot.flow, &mut context) {
            FlowAction::Send { origin, intended } => UserAction::Send(Send {
                user,
                scenario,
                step: compiled.first_step + slot.flow.step(),
                origin,
                intended,
                // Later steps are ready when they are intended: their connection belongs to the user.
                ready: if slot.has_reached { intended } else { slot.ready.max(intended) },
                number: slot.iteration,
                timeout: slot.flow.timeout(),
                is_bodyless: slot.flow.method(plan) == "HEAD",
                keeps_body: plan.steps.get(slot.flow.step() as usize).is_some_and(|step| step.checks.needs_body()),
            }),
            FlowAction::WaitUntil(until) => {
                timers.push(Reverse((until.max(now), user)));
                UserAction::Wait
            }
            FlowAction::End { ok } => {
                UserAction::End(EndedIteration { scenario, intended: slot.intended, ok, has_reached: slot.has_reached })
            }
        }
    }

    /// Index of a step of a scenario among all steps.
    pub(crate) fn step_index(&self, scenario: u32, step: u32) -> u32 {
        self.mix.scenarios.get(scenario as usize).map_or(0, |compiled| compiled.first_step) + step
    }

    /// Scenario of a user's iteration.
    pub(crate) fn scenario_of(&self, user: u32) -> u32 {
        self.users.get(user as usize).map_or(0, |slot| slot.scenario)
    }

    /// Whether the step of what was found last says which status it expects.
    pub(crate) fn expects_status(&self, user: u32) -> bool {
        let scenario = self.mix.scenarios.get(self.scenario_of(user) as usize);
        let step = scenario.and_then(|compiled| compiled.plan.steps.get(self.findings.step as usize));
        step.is_some_and(|step| step.checks.expects_status())
    }

    /// Variables of a user that have values, by name.
    pub(crate) fn variables(&self, user: u32) -> Vec<(String, Value)> {
        let Some(slot) = self.users.get(user as usize) else { return Vec::new() };
        let Some(compiled) = self.mix.scenarios.get(slot.scenario as usize) else { return Vec::new() };
        let named = slot.flow.named_variables(&compiled.plan);
        named.map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }

    /// Captures of the step of what was found last.
    pub(crate) fn captures(&self, user: u32) -> &[CompiledCapture] {
        let scenario = self.mix.scenarios.get(self.scenario_of(user) as usize);
        let step = scenario.and_then(|compiled| compiled.plan.steps.get(self.findings.step as usize));
        step.map_or(&[], |step| step.checks.captures())
    }

    /// Step that a user is at.
    /// What a sample of a user's failure leaves out: by name, and values of variables.
    pub(crate) fn secrets(&self, user: u32) -> (&Redaction, Vec<String>) {
        let redaction = &self.mix.redaction;
        let slot = self.users.get(user as usize);
        let plan = slot.and_then(|slot| self.mix.scenarios.get(slot.scenario as usize)).map(|compiled| &compiled.plan);
        let named = slot.zip(plan).into_iter().flat_map(|(slot, plan)| slot.flow.named_variables(plan));
        let is_secret =
            |name: &str| redaction.is_secret_variable(name) || plan.is_some_and(|plan| plan.is_redacted_capture(name));
        let values = named.filter(|(name, _)| is_secret(name)).flat_map(|(_, value)| variable_texts(value));
        (redaction, values.chain(self.mix.secrets.iter().cloned()).collect())
    }

    fn step_of(&self, user: u32) -> Option<&'a ScenarioStep> {
        let slot = self.users.get(user as usize)?;
        self.mix.scenarios.get(slot.scenario as usize)?.plan.steps.get(slot.flow.step() as usize)
    }

    /// Open connections of a user, which may have ended meanwhile.
    pub(crate) fn connections(&mut self, user: u32) -> Option<&mut UserConnections> {
        self.users.get_mut(user as usize).map(|slot| &mut slot.connections)
    }

    /// Stores the request of the table until a connection may be made.
    pub(crate) fn await_connection(&mut self, send: Send) {
        if let Some(slot) = self.users.get_mut(send.user as usize) {
            slot.pending = Some(PendingRequest { send, bytes: self.request.clone() });
            self.connecting.push_back(send.user);
        }
    }

    /// Next request that waits to be allowed to connect.
    pub(crate) fn take_awaiting(&mut self) -> Option<PendingRequest> {
        let user = self.connecting.pop_front()?;
        self.users.get_mut(user as usize)?.pending.take()
    }

    /// Whether requests wait to be allowed to connect.
    pub(crate) fn is_awaiting(&self) -> bool {
        !self.connecting.is_empty()
    }

    /// Addresses of an origin; one that the plan does not know is resolved now, once.
    pub(crate) fn address(&mut self, scenario: u32, origin: OriginId) -> Result<&ResolvedOrigin, String> {
        self.origins.address(self.mix, scenario, origin)
    }

    /// TLS of an origin whose addresses are known.
    pub(crate) fn tls(&self, scenario: u32, origin: OriginId) -> Option<&Tls> {
        self.origins.tls(scenario, origin)
    }

    /// Origin of a scenario as text.
    pub(crate) fn origin_name(&self, scenario: u32, origin: OriginId) -> String {
        self.origins.name(scenario, origin)
    }
}
