//! Scenarios in virtual time: a service that is a function answers the requests of a user.

mod encodings;
mod errors;
mod flows;
mod hosts;
mod names;
mod places;
mod properties;
mod redirects;
mod requests;
mod retries;
mod success;

use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_hurl::ErrorReport;

use super::*;
use crate::evaluate::{ResponseView, VariableTable};

/// Response of the service, or the failure of the request.
#[derive(Clone, Debug)]
pub(super) enum ScriptedReply {
    Response { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    Failure(FailureKind),
}

/// What happened in an iteration.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trace {
    /// Requests, with their intended times in milliseconds and their origins.
    pub(super) requests: Vec<TracedRequest>,
    /// Findings that have a verdict.
    pub(super) findings: Vec<StepFindings>,
    pub(super) ok: bool,
    pub(super) ended_ms: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct TracedRequest {
    pub(super) intended_ms: u64,
    pub(super) origin: String,
    pub(super) text: String,
}

/// Time of each response after its request.
const RESPONSE_TIME: Nanos = Nanos::from_millis(10);
/// Most calls of an iteration, so that a test ends.
const MAX_CALLS: usize = 10_000;

pub(super) fn reply(status: u16, headers: &[(&str, &str)], body: &str) -> ScriptedReply {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ScriptedReply::Response { status, headers, body: body.as_bytes().to_vec() }
}

pub(super) fn ok(body: &str) -> ScriptedReply {
    reply(200, &[], body)
}

pub(super) fn no_files(name: &str) -> Result<Vec<u8>, String> {
    Err(format!("{name} is not there"))
}

pub(super) fn plan_with(text: &str, settings: &ScenarioSettings) -> ScenarioPlan {
    let file = weir_hurl::parse(text).unwrap_or_else(|errors| panic!("{}", ErrorReport::new("t", text, &errors)));
    let plan = ScenarioPlan::compile(&file, settings, &mut no_files);
    plan.unwrap_or_else(|errors| panic!("{}", ErrorReport::new("t", text, &errors)))
}

pub(super) fn plan(text: &str) -> ScenarioPlan {
    plan_with(text, &ScenarioSettings::default())
}

/// One thread with one user.
pub(super) struct World<'p> {
    pub(super) plan: &'p ScenarioPlan,
    pub(super) user: ScenarioUser,
    origins: OriginTable,
    scratch: RenderScratch,
    now: Nanos,
    seed: u64,
    sequence: u64,
}

impl<'p> World<'p> {
    pub(super) fn new(plan: &'p ScenarioPlan, seed: u64) -> Self {
        let user = ScenarioUser::new(plan, seed, 0);
        let origins = plan.origins.clone();
        Self { plan, user, origins, scratch: RenderScratch::default(), now: Nanos::ZERO, seed, sequence: 0 }
    }

    /// Executes an iteration against a service.
    pub(super) fn iterate(&mut self, service: impl FnMut(&str) -> ScriptedReply) -> Trace {
        self.iterate_with(service, |_| {})
    }

    /// Executes an iteration against a service, with a row of data.
    pub(super) fn iterate_with(
        &mut self,
        mut service: impl FnMut(&str) -> ScriptedReply,
        row: impl FnOnce(&mut VariableTable),
    ) -> Trace {
        let (mut request, mut findings) = (RequestBytes::default(), StepFindings::default());
        let mut trace = Trace { requests: Vec::new(), findings: Vec::new(), ok: false, ended_ms: 0 };
        row(self.user.prepare(self.plan, self.seed, self.sequence));
        self.sequence += 1;
        let mut call = Call::Begin;
        for _ in 0..MAX_CALLS {
            let mut flow = FlowContext {
                plan: self.plan,
                origins: &mut self.origins,
                request: &mut request,
                findings: &mut findings,
                scratch: &mut self.scratch,
                unix_s: 1_700_000_000,
            };
            let action = match &call {
                Call::Begin => self.user.begin(&mut flow, self.now, self.now),
                Call::Woken => self.user.woken(&mut flow, self.now),
                Call::Replied(ScriptedReply::Failure(kind)) => self.user.failed(&mut flow, *kind, self.now),
                Call::Replied(ScriptedReply::Response { status, headers, body }) => {
                    let headers: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
                    let view = view(*status, &headers, body);
                    self.user.response(&mut flow, &view, self.now)
                }
            };
            if findings.verdict.is_some() {
                trace.findings.push(findings.clone());
            }
            call = match action {
                FlowAction::End { ok } => {
                    trace.ok = ok;
                    trace.ended_ms = self.now.as_millis();
                    return trace;
                }
                FlowAction::WaitUntil(until) => {
                    self.now = self.now.max(until);
                    Call::Woken
                }
                FlowAction::Send { origin, intended } => {
                    assert!(intended <= self.now, "a request is not sent before its intention");
                    let text = String::from_utf8(request.to_vec()).unwrap();
                    let origin = self.origins.get(origin).unwrap().to_string();
                    let reply = service(&text);
                    trace.requests.push(TracedRequest { intended_ms: intended.as_millis(), origin, text });
                    self.now += RESPONSE_TIME;
                    Call::Replied(reply)
                }
            };
        }
        panic!("the iteration does not end: {trace:?}");
    }
}

enum Call {
    Begin,
    Woken,
    Replied(ScriptedReply),
}

/// One iteration of a new user.
pub(super) fn run(plan: &ScenarioPlan, service: impl FnMut(&str) -> ScriptedReply) -> Trace {
    World::new(plan, 1).iterate(service)
}

/// First line of each request.
pub(super) fn lines(trace: &Trace) -> Vec<&str> {
    trace.requests.iter().map(|request| request.text.split(" HTTP/1.1").next().unwrap()).collect()
}

/// Value of a header in the text of a request.
pub(super) fn header<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let head = text.split("\r\n\r\n").next().unwrap_or_default();
    let found = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    found.into_iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

pub(super) fn body_of(text: &str) -> &str {
    text.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

fn view<'a>(status: u16, headers: &'a [(&'a str, &'a [u8])], body: &'a [u8]) -> ResponseView<'a> {
    ResponseView { status, headers, body, raw_body: body, version: "1.1", ..ResponseView::default() }
}

fn think_of(ms: u64) -> crate::data::ThinkTime {
    crate::data::ThinkTime::Constant(Nanos::from_millis(ms))
}
