//! Users of one thread that a program drives.

use std::collections::HashMap;
use std::sync::Arc;

use weir_base::Nanos;
use weir_base::grpc_status::{GRPC_OK, is_grpc_status, is_success_status};
use weir_machine::clock;
use weir_measure::run_steps::StepFacts;
use weir_net::target::SocketAddress;
use weir_net::tls::Tls;
use weir_pace::arrival_queue::ArrivalQueue;
use weir_request::secret_mask::SecretMask;
use weir_scenario::plan::{FlowFailure, OriginId, RequestOrigin, StepVerdict};

use super::flow_event::{FlowEvent, FlowNext, FlowSend};
use super::name_refresh::NameRefresh;
use super::user_flow::{CallBuffers, CallSubject, ScriptTime, UserFlow};
use super::{OriginResolver, ResolvedOrigin, StepExchange};
use crate::program::{
    ProgramAction, ProgramCall, ProgramResponse, ProgramSend, ReleasedRecord, RequestTimes, SocketCommand, StreamPart,
    ThreadProgram, UserProgram,
};

/// Program of a load, and the way to its hosts.
#[derive(Clone, Debug)]
pub struct ProgramPlan {
    pub(crate) program: Arc<dyn UserProgram>,
    pub(crate) resolver: OriginResolver,
    /// Secrets masked in samples of failures.
    pub(crate) mask: SecretMask,
}

impl ProgramPlan {
    /// Steps so far, in the order of their indices.
    pub fn steps(&self) -> Vec<StepFacts> {
        self.program.steps()
    }
}

/// Users of one thread that a program drives.
#[derive(Debug)]
pub(crate) struct ProgramFlows<'a> {
    plan: &'a ProgramPlan,
    program: Box<dyn ThreadProgram>,
    /// Destination of requests without an origin of their own.
    target: ResolvedOrigin,
    target_name: String,
    origins: HashMap<OriginId, KnownOrigin>,
    /// Whether the program has said if the last response is a success.
    decides_success: bool,
    /// Whether the program has said that the last response is a failure.
    is_failed: bool,
    /// Reason of the program to end the run.
    abort: Option<String>,
    script_time: ScriptTime,
    /// Number under which the record of the last response is held back.
    held_as: Option<u64>,
    released: Vec<ReleasedRecord>,
    /// Commands for sockets, each with its user.
    sockets: Vec<(u32, SocketCommand)>,
}

/// Origin that requests have gone to.
#[derive(Debug)]
struct KnownOrigin {
    named: RequestOrigin,
    resolved: ResolvedOrigin,
    /// Further lookups of its name, if they have a time.
    refresh: Option<NameRefresh>,
}

impl<'a> ProgramFlows<'a> {
    /// Users of a thread; `target` is where requests without an origin of their own go.
    pub(crate) fn new(
        plan: &'a ProgramPlan,
        program: Box<dyn ThreadProgram>,
        target: ResolvedOrigin,
        target_name: String,
    ) -> Self {
        Self {
            plan,
            program,
            target,
            target_name,
            origins: HashMap::new(),
            decides_success: false,
            is_failed: false,
            abort: None,
            script_time: ScriptTime::default(),
            held_as: None,
            released: Vec::new(),
            sockets: Vec::new(),
        }
    }

    fn next(&mut self, action: ProgramAction) -> FlowNext {
        match action {
            ProgramAction::Send(send) => FlowNext::Send(flow_send(send)),
            ProgramAction::SendBeside(send) => FlowNext::SendBeside(flow_send(send)),
            ProgramAction::WaitUntil(at) => FlowNext::WaitUntil(at),
            ProgramAction::BeginAt(at) => FlowNext::BeginAt(at),
            ProgramAction::Idle => FlowNext::Idle,
            ProgramAction::Await => FlowNext::Await,
            ProgramAction::EndStream => FlowNext::EndStream,
            ProgramAction::End { ok } => FlowNext::End { ok },
            ProgramAction::Cut => FlowNext::Cut,
            ProgramAction::StopThread => FlowNext::Stop,
            ProgramAction::Abort(reason) => {
                self.abort = Some(reason);
                FlowNext::Stop
            }
        }
    }
}

impl UserFlow for ProgramFlows<'_> {
    fn call(&mut self, subject: &mut CallSubject, event: &FlowEvent<'_>, buffers: CallBuffers<'_>) -> Option<FlowNext> {
        let CallBuffers { request, pipelined, findings, now, .. } = buffers;
        let step = event.step();
        findings.clear(step.unwrap_or(0));
        let mut call = ProgramCall {
            user: subject.user,
            iteration: subject.iteration,
            intended: subject.intended,
            now,
            scenario: subject.scenario,
            step: step.unwrap_or(0),
            key: event.key(),
            is_success: None,
            held_as: None,
            released: &mut self.released,
            sockets: &mut self.sockets,
            request,
            pipelined,
            failures: &mut findings.failures,
        };
        let begun = clock::monotonic();
        let action = match event {
            FlowEvent::Begin => self.program.begin(&mut call),
            FlowEvent::Woken => self.program.woken(&mut call),
            FlowEvent::More => self.program.more(&mut call),
            FlowEvent::Stop => self.program.stop(&mut call),
            FlowEvent::Socket(event) => self.program.socket(event, &mut call),
            FlowEvent::Message { message, .. } => self.program.message(message, &mut call),
            FlowEvent::Failed { kind, remaining, .. } => self.program.failed(*kind, *remaining, &mut call),
            FlowEvent::Events { exchange, status, service } => {
                let (head, events) = (exchange.head(), &exchange.arrived);
                self.program.events(&StreamPart { status: *status, service: *service, head, events }, &mut call)
            }
            FlowEvent::Response { exchange, status, times, remaining } => {
                let response = response(exchange, *status, *times, *remaining);
                self.program.response(&response, &mut call)
            }
        };
        (subject.scenario, subject.intended) = (call.scenario, call.intended);
        if self.plan.program.has_script() {
            let took = clock::monotonic() - begun;
            self.script_time.total += took;
            self.script_time.longest = self.script_time.longest.max(took);
        }
        let (call_step, is_success) = (call.step, call.is_success);
        self.held_as = call.held_as;
        if let FlowEvent::Failed { kind, .. } = event {
            findings.failures.push(FlowFailure::Transfer(*kind));
        }
        // The program says what failed, or nothing did.
        findings.step = step.unwrap_or(call_step);
        self.decides_success = is_success.is_some();
        let is_failed = !findings.failures.is_empty() || is_success == Some(false);
        self.is_failed = is_failed;
        let is_failed_by_status =
            matches!(event, FlowEvent::Response { status, .. } if is_success.is_none() && !is_success_status(*status));
        let verdict = if is_failed || is_failed_by_status { StepVerdict::Failed } else { StepVerdict::Passed };
        findings.verdict = step.map(|_| verdict);
        Some(self.next(action))
    }

    fn held_as(&self) -> Option<u64> {
        self.held_as
    }

    fn take_released(&mut self) -> Vec<ReleasedRecord> {
        std::mem::take(&mut self.released)
    }

    fn take_socket_commands(&mut self) -> Vec<(u32, SocketCommand)> {
        std::mem::take(&mut self.sockets)
    }

    fn take_script_time(&mut self) -> ScriptTime {
        let taken = self.script_time;
        self.script_time.longest = Nanos::ZERO;
        taken
    }

    fn asks_for_connections(&self) -> bool {
        self.plan.program.asks_for_connections()
    }

    fn may_read_events(&self) -> bool {
        self.plan.program.may_read_events()
    }

    fn stops_users(&self) -> bool {
        self.program.stops_users()
    }

    fn abort_reason(&mut self) -> Option<String> {
        self.abort.take()
    }

    fn decides_success(&self, _user: u32, _step: u32) -> bool {
        self.decides_success
    }

    fn is_failed(&self) -> bool {
        self.is_failed
    }

    fn secret_mask(&self, _user: u32) -> SecretMask {
        self.plan.mask.clone()
    }

    fn next_start(&self, user: u32, _intended: Nanos) -> Option<Nanos> {
        self.program.next_start(user)
    }

    fn make_users(&mut self, count: usize) {
        self.program.make_users(count);
    }

    fn refill(&mut self, queue: &mut ArrivalQueue) {
        self.program.refill(queue);
    }

    fn cut(&mut self, user: u32) {
        self.program.cut(user);
    }

    fn address(&mut self, _scenario: u32, origin: OriginId) -> Result<&ResolvedOrigin, String> {
        if origin.0 == 0 {
            return Ok(&self.target);
        }
        let plan = self.plan;
        let resolver = &plan.resolver;
        if !self.origins.contains_key(&origin) {
            let named = self.program.origin(origin).ok_or("unknown origin")?;
            let resolved = match named.address {
                Some(address) => resolver.at(&named.origin, SocketAddress::Inet(address)),
                None => resolver.resolve(&named.origin),
            };
            let resolved = match &named.tls {
                Some(texts) => resolved.and_then(|resolved| resolver.with_texts(resolved, &named.origin, texts)),
                None => resolved,
            };
            let resolved = resolved.map(|resolved| if named.is_for_calls { resolved.for_calls() } else { resolved });
            let resolved = resolved.map_err(|error| error.to_string())?;
            let ttl = resolver.rules.and_then(|rules| rules.ttl).filter(|_| named.address.is_none());
            let refresh = ttl.map(|ttl| NameRefresh::new(Nanos::from(ttl), clock::monotonic()));
            self.origins.insert(origin, KnownOrigin { named: named.origin, resolved, refresh });
        }
        let known = self.origins.get_mut(&origin).ok_or_else(|| "unknown origin".to_owned())?;
        if let Some(refresh) = &mut known.refresh {
            let now = clock::monotonic();
            if let Some(addresses) = refresh.take(now) {
                known.resolved.addresses = addresses;
            }
            if refresh.is_due(now) {
                let (resolver, named) = (resolver.clone(), known.named.clone());
                refresh.begin(move || resolver.addresses(&named).ok());
            }
        }
        Ok(&known.resolved)
    }

    fn tls(&self, _scenario: u32, origin: OriginId) -> Option<&Tls> {
        if origin.0 == 0 { self.target.tls.as_ref() } else { self.origins.get(&origin)?.resolved.tls.as_ref() }
    }

    fn is_for_calls(&self, origin: OriginId) -> bool {
        self.origins.get(&origin).is_some_and(|known| known.resolved.is_for_calls)
    }

    fn origin_name(&self, _scenario: u32, origin: OriginId) -> String {
        match self.origins.get(&origin) {
            Some(known) => known.named.to_string(),
            None => self.target_name.clone(),
        }
    }

    fn step_name(&self, step: u32) -> String {
        self.plan.program.steps().into_iter().nth(step as usize).map(|facts| facts.name).unwrap_or_default()
    }
}

fn flow_send(send: ProgramSend) -> FlowSend {
    let ProgramSend { step, origin, intended, timeout, is_bodyless, keeps, key } = send;
    FlowSend { step, origin, intended, timeout, is_bodyless, keeps, key }
}

fn response(exchange: &StepExchange, status: u16, times: RequestTimes, remaining: usize) -> ProgramResponse<'_> {
    let (head, body) = (exchange.head(), exchange.body());
    // A program has the status of gRPC among the fields.
    let status = match status {
        GRPC_OK => 200,
        status if is_grpc_status(status) => 500,
        status => status,
    };
    let llm = exchange.observer.as_ref().map(|observer| *observer.llm_timeline());
    let connection = exchange.connection.as_ref();
    ProgramResponse { status, times, head, body, remaining, llm, events: &exchange.arrived, connection }
}
