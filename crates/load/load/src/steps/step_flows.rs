//! Users of one thread that play compiled steps.

use std::borrow::Cow;

use weir_base::Nanos;
use weir_base::grpc_status::status_text;
use weir_net::tls::Tls;
use weir_net::wire::HeadNotes;
use weir_pace::shard::Shard;
use weir_request::secret_mask::SecretMask;
use weir_scenario::data::ScenarioOrdinals;
use weir_scenario::evaluate::{CompiledCapture, ResponseView};
use weir_scenario::plan::{FlowAction, FlowContext, OriginId, RenderScratch, ScenarioStep, ScenarioUser};
use weir_scenario::value::Value;

use super::flow_event::{FlowEvent, FlowNext, FlowSend};
use super::thread_origins::ThreadOrigins;
use super::user_flow::{CallBuffers, CallSubject, UserFlow};
use super::{ResolvedOrigin, ScenarioMix, StepExchange};
use crate::headers::{HTTP2_STATUS_LINE, HeaderField, with_headers};
use crate::program::KeptParts;

/// Users of one thread that play compiled steps.
#[derive(Debug)]
pub(crate) struct StepFlows<'a> {
    mix: &'a ScenarioMix,
    seed: u64,
    ordinals: ScenarioOrdinals,
    /// Numbers of the users in the whole load, in the closed loop.
    numbers: Option<Shard>,
    users: Vec<StepUser>,
    origins: ThreadOrigins,
    scratch: RenderScratch,
}

/// Place of a user in a scenario.
#[derive(Debug)]
struct StepUser {
    flow: ScenarioUser,
    scenario: u32,
}

impl<'a> StepFlows<'a> {
    /// Users of a thread, with these numbers in the closed loop.
    pub(crate) fn new(mix: &'a ScenarioMix, seed: u64, numbers: Option<Shard>) -> Self {
        Self {
            mix,
            seed,
            ordinals: ScenarioOrdinals::default(),
            numbers,
            users: Vec::new(),
            origins: ThreadOrigins::new(mix),
            scratch: RenderScratch::default(),
        }
    }

    fn response(
        &mut self,
        user: u32,
        exchange: &StepExchange,
        (status, service): (u16, Nanos),
        buffers: CallBuffers<'_>,
    ) -> Option<FlowNext> {
        // Most steps look at the status and the body alone.
        let needs_headers = self.step_of(user).is_none_or(|step| step.checks.needs_headers());
        let looks_at_headers = needs_headers
            || !(200..300).contains(&status)
            || exchange.notes != HeadNotes::default()
            || exchange.codec.is_some()
            || exchange.kept.has_other_charset();
        let ip = if needs_headers { self.origins.ip(self.scenario_of(user), exchange.origin) } else { String::new() };
        if !looks_at_headers {
            return self.examine(user, exchange, (&[], &ip), (status, service), buffers);
        }
        with_headers(exchange.kept.head(), |headers| {
            self.examine(user, exchange, (headers, &ip), (status, service), buffers)
        })
    }

    fn examine(
        &mut self,
        user: u32,
        exchange: &StepExchange,
        (headers, ip): (&[HeaderField<'_>], &str),
        (status, service): (u16, Nanos),
        buffers: CallBuffers<'_>,
    ) -> Option<FlowNext> {
        let encoding = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
        let body = match &exchange.codec {
            Some(codec) => codec.response(exchange.kept.head(), exchange.kept.raw_body()).map(Cow::Owned),
            None => exchange.kept.decoded_body(encoding.map(|(_, value)| *value)),
        };
        let name = exchange.codec.as_ref().map(|_| status_text(status));
        let view = ResponseView {
            version: version_of(exchange.kept.head()),
            status,
            call_status: name.as_deref(),
            headers,
            body: body.as_deref().unwrap_or_default(),
            raw_body: exchange.kept.raw_body(),
            body_error: body.as_ref().err().map(String::as_str),
            duration: service,
            ip,
            ..ResponseView::default()
        };
        let at = buffers.now;
        self.step(user, buffers, |flow, context| flow.response(context, &view, at))
    }

    fn step(
        &mut self,
        user: u32,
        buffers: CallBuffers<'_>,
        call: impl FnOnce(&mut ScenarioUser, &mut FlowContext<'_>) -> FlowAction,
    ) -> Option<FlowNext> {
        let Self { mix, users, origins, scratch, .. } = self;
        let CallBuffers { request, findings, unix_s, .. } = buffers;
        let StepUser { flow, scenario } = users.get_mut(user as usize)?;
        let (compiled, origins) = (mix.scenarios.get(*scenario as usize)?, origins.table(*scenario)?);
        let plan = &compiled.plan;
        let mut context = FlowContext { plan, origins, request, findings, scratch, unix_s };
        Some(match call(flow, &mut context) {
            FlowAction::Send { origin, intended } => {
                let step = plan.steps.get(flow.step() as usize);
                let keeps_body = step.is_some_and(|step| step.checks.needs_body());
                FlowNext::Send(FlowSend {
                    step: compiled.first_step + flow.step(),
                    origin,
                    intended,
                    timeout: flow.timeout(),
                    is_bodyless: flow.method(plan) == "HEAD",
                    keeps: if keeps_body { KeptParts::HeadAndBody } else { KeptParts::Head },
                    key: 0,
                })
            }
            FlowAction::WaitUntil(until) => FlowNext::WaitUntil(until),
            FlowAction::End { ok } => FlowNext::End { ok },
        })
    }

    fn scenario_of(&self, user: u32) -> u32 {
        self.users.get(user as usize).map_or(0, |slot| slot.scenario)
    }

    /// Step that a user is at.
    fn step_of(&self, user: u32) -> Option<&'a ScenarioStep> {
        let slot = self.users.get(user as usize)?;
        self.mix.scenarios.get(slot.scenario as usize)?.plan.steps.get(slot.flow.step() as usize)
    }

    /// Step of this index of a user's scenario.
    fn step_at(&self, user: u32, step: u32) -> Option<&'a ScenarioStep> {
        self.mix.scenarios.get(self.scenario_of(user) as usize)?.plan.steps.get(step as usize)
    }
}

impl UserFlow for StepFlows<'_> {
    fn prepare(&mut self, user: u32, number: u64) -> Option<u32> {
        let user_number = self.numbers.map(|numbers| numbers.nth(u64::from(user)));
        let scenario = self.mix.pick(number, user_number);
        let compiled = self.mix.scenarios.get(scenario as usize)?;
        while self.users.len() <= user as usize {
            self.users.push(StepUser { flow: ScenarioUser::new(&compiled.plan, self.seed, number), scenario });
        }
        let slot = self.users.get_mut(user as usize)?;
        if slot.scenario != scenario {
            slot.flow.change_plan(&compiled.plan, self.seed, number);
            slot.scenario = scenario;
        }
        let variables = slot.flow.prepare(&compiled.plan, self.seed, number);
        if let Some(data) = &compiled.data {
            let ordinal = self.mix.ordinal(&mut self.ordinals, number);
            data.assign(ordinal, user_number.unwrap_or_default(), self.seed, &compiled.plan.columns, variables);
        }
        Some(scenario)
    }

    fn call(&mut self, subject: &mut CallSubject, event: &FlowEvent<'_>, buffers: CallBuffers<'_>) -> Option<FlowNext> {
        let (CallSubject { user, intended, .. }, now) = (*subject, buffers.now);
        match event {
            FlowEvent::Begin => self.step(user, buffers, |flow, context| flow.begin(context, intended, now)),
            FlowEvent::Woken => self.step(user, buffers, |flow, context| flow.woken(context, now)),
            FlowEvent::Stop
            | FlowEvent::More
            | FlowEvent::Events { .. }
            | FlowEvent::Socket(_)
            | FlowEvent::Message { .. } => None,
            FlowEvent::Failed { kind, .. } => {
                self.step(user, buffers, |flow, context| flow.failed(context, *kind, now))
            }
            FlowEvent::Response { exchange, status, times, .. } => {
                self.response(user, exchange, (*status, times.service), buffers)
            }
        }
    }

    fn next_start(&self, user: u32, intended: Nanos) -> Option<Nanos> {
        Some(intended + self.mix.scenarios.get(self.scenario_of(user) as usize)?.pacing?)
    }

    fn step_name(&self, step: u32) -> String {
        self.mix.step_name(step).to_owned()
    }

    fn step_checks(&self, step: u32) -> &[String] {
        self.mix.step_checks(step)
    }

    fn decides_success(&self, user: u32, step: u32) -> bool {
        self.step_at(user, step).is_some_and(|step| step.checks.expects_status())
    }

    fn captures(&self, user: u32, step: u32) -> &[CompiledCapture] {
        self.step_at(user, step).map_or(&[], |step| step.checks.captures())
    }

    fn variables(&self, user: u32) -> Vec<(String, Value)> {
        let Some(slot) = self.users.get(user as usize) else { return Vec::new() };
        let Some(compiled) = self.mix.scenarios.get(slot.scenario as usize) else { return Vec::new() };
        let named = slot.flow.named_variables(&compiled.plan);
        named.map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }

    fn secret_mask(&self, user: u32) -> SecretMask {
        let mut mask = self.mix.mask.clone();
        let slot = self.users.get(user as usize);
        let plan = slot.and_then(|slot| self.mix.scenarios.get(slot.scenario as usize)).map(|compiled| &compiled.plan);
        for (name, value) in slot.zip(plan).into_iter().flat_map(|(slot, plan)| slot.flow.named_variables(plan)) {
            if mask.is_secret(name) || plan.is_some_and(|plan| plan.is_redacted_capture(name)) {
                add_value(value, &mut mask);
            }
        }
        mask
    }

    fn step_index(&self, scenario: u32, step: u32) -> u32 {
        self.mix.scenarios.get(scenario as usize).map_or(0, |compiled| compiled.first_step) + step
    }

    fn address(&mut self, scenario: u32, origin: OriginId) -> Result<&ResolvedOrigin, String> {
        self.origins.address(self.mix, scenario, origin)
    }

    fn tls(&self, scenario: u32, origin: OriginId) -> Option<&Tls> {
        self.origins.tls(scenario, origin)
    }

    fn origin_name(&self, scenario: u32, origin: OriginId) -> String {
        self.origins.name(scenario, origin)
    }
}

/// Takes note of a secret variable, as it is in JSON and as it is elsewhere: with quotes and line breaks.
fn add_value(value: &Value, mask: &mut SecretMask) {
    mask.add(value.json().trim_matches('"'));
    value.template_text().iter().for_each(|text| mask.add(text));
}

/// Version of HTTP that a head begins with.
fn version_of(head: &[u8]) -> &'static str {
    match head {
        _ if head.starts_with(b"HTTP/1.0") => "1.0",
        _ if head.starts_with(HTTP2_STATUS_LINE) => "2",
        _ => "1.1",
    }
}
