//! A call in flight: launches and ends the attempts that [`HedgedCall`] decides on.

use super::admission::{BudgetWithPermits, CallAdmission};
use super::attempt::{AttemptOutcome, ConcludedAttempt, LaunchedAttempt};
use super::attempt_log::{AttemptStatus, CallTrace};
use super::attempt_rate::SlotFuture;
use super::call_event::CallEvent;
use super::call_slots::CallSlots;
use super::call_start::CallStart;
use super::counts::CallOutcome;
use super::direct_call::RunningCall;
use super::engine_state::EngineState;
use super::host_permit::{BlameRule, HostChoice, HostPermit};
use super::permits::{CallPermit, PermitOutcome};
use super::request::CallRequest;
use super::response::{CallFailure, CallFailureReason, CallResponse, UpstreamResponse};
use super::unsent_attempts::UnsentLimit;
use super::upload::{UploadState, track_upload};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_machine::lock::lock;
use weir_net::client::OutgoingBody;
use weir_resilience::admission;
use weir_resilience::admission::AbandonReason;
use weir_resilience::hedge::{CallVerdict, Event, HedgeAction, HedgedCall, LaunchReason, ResendRule};
use weir_retry::policy::AttemptFailure;
use weir_retry::retry_budget::Unlimited;

/// State of one call in flight.
pub(super) struct CallState<'a> {
    engine: &'a EngineState,
    request: &'a CallRequest<'a>,
    hedge: HedgedCall<'a>,
    start: CallStart,
    /// Time of the last event. All effects of an event have this time, so that timeouts agree with the decision.
    now: Nanos,
    body: OutgoingBody,
    admission: CallAdmission,
    /// Permits of attempts that are about to be launched.
    launch_permits: Vec<CallPermit>,
    slots: CallSlots<'a>,
    /// Attempts of the last event that no permit was free for.
    without_slot: u32,
    /// State of a body that the caller still sends.
    upload: Option<UploadState>,
    /// Hosts of the attempts so far, as a bit set.
    attempted_hosts: u64,
    call_trace: CallTrace,
    success: Option<UpstreamResponse>,
    last_response: Option<UpstreamResponse>,
    is_counted: bool,
    /// Called with the trace if the call is dropped before its end.
    on_cancel: &'a dyn Fn(CallTrace),
}

impl<'a> CallState<'a> {
    pub(super) fn begin(
        engine: &'a EngineState,
        request: &'a CallRequest<'a>,
        body: OutgoingBody,
        start: CallStart,
        mut admission: CallAdmission,
        on_cancel: &'a dyn Fn(CallTrace),
        actions: &mut Vec<HedgeAction>,
    ) -> Self {
        let plan = request.plan;
        // Hedge stages count from here: the time in the queue is not part of the first attempt's.
        let now = if admission.waited { engine.timer.now() } else { start.began };
        let resend = match body {
            OutgoingBody::Stream(_) => ResendRule::Never,
            _ if request.upgrade => ResendRule::IfUnsent,
            _ => ResendRule::of(plan.policy.retryable_methods, request.method.as_str()),
        };
        let mut hedge = start.begin(engine, (plan, &*plan.policy), now, resend, actions);
        let slots = CallSlots::new(request.rate, admission.rate_slot.take());
        if slots.is_limited() {
            hedge.take_turns();
        }
        Self::new((engine, request, body), (start, now, hedge), (admission, slots), on_cancel)
    }

    fn new(
        (engine, request, body): (&'a EngineState, &'a CallRequest<'a>, OutgoingBody),
        (start, now, hedge): (CallStart, Nanos, HedgedCall<'a>),
        (admission, slots): (CallAdmission, CallSlots<'a>),
        on_cancel: &'a dyn Fn(CallTrace),
    ) -> Self {
        let call_trace = CallTrace { began: start.began, ..CallTrace::default() };
        let launch_permits = Vec::new();
        Self {
            engine,
            request,
            hedge,
            start,
            now,
            body,
            admission,
            launch_permits,
            slots,
            without_slot: 0,
            upload: None,
            attempted_hosts: 0,
            call_trace,
            success: None,
            last_response: None,
            is_counted: false,
            on_cancel,
        }
    }

    /// Takes over a call that has begun as a value, with its first attempt.
    pub(super) fn resume(
        engine: &'a EngineState,
        request: &'a CallRequest<'a>,
        body: OutgoingBody,
        running: RunningCall,
        on_cancel: &'a dyn Fn(CallTrace),
    ) -> (Self, LaunchedAttempt<'a>) {
        let RunningCall { start, launched, hedge, admission, host_permit, exchange, .. } = running;
        let (decisions, permits) = ((start, launched, hedge), (admission, CallSlots::default()));
        let mut call = Self::new((engine, request, body), decisions, permits, on_cancel);
        let attempt =
            LaunchedAttempt { exchange: exchange.map(Box::new), ..call.prepare(0, LaunchReason::First, host_permit) };
        (call, attempt)
    }

    /// Prepares the next attempt.
    pub(super) fn launch(&mut self, number: u32, reason: LaunchReason) -> LaunchedAttempt<'a> {
        let (engine, request, now) = (self.engine, self.request, self.now);
        let blame_rule = BlameRule::of(&request.plan.policy, &self.start, number, now);
        let permits = match number {
            0 => (self.admission.upstream_permit.take(), self.admission.breaker_permit.take()),
            _ => (self.launch_permits.pop(), None),
        };
        let upstream = &request.plan.upstream;
        let choice = HostChoice { avoid: self.attempted_hosts, key: request.key };
        let host_permit = HostPermit::acquire(upstream, &engine.timer, now, blame_rule, choice, reason, permits);
        self.prepare(number, reason, host_permit)
    }

    /// Prepares an attempt at its host.
    fn prepare(&mut self, number: u32, reason: LaunchReason, mut host_permit: HostPermit) -> LaunchedAttempt<'a> {
        let (engine, request, now) = (self.engine, self.request, self.now);
        self.attempted_hosts |= 1 << host_permit.host.index;
        debug_assert_eq!(
            self.call_trace.attempts.len(),
            number as usize,
            "attempts are numbered in the order of launch"
        );
        self.call_trace.launched(reason, host_permit.origin(), now);
        let body = match &self.body {
            OutgoingBody::Empty => OutgoingBody::Empty,
            OutgoingBody::Bytes(bytes) => OutgoingBody::Bytes(bytes.clone()),
            OutgoingBody::Stream(_) => match std::mem::replace(&mut self.body, OutgoingBody::Empty) {
                OutgoingBody::Stream(body) => {
                    let (body, upload) = track_upload(body);
                    host_permit.set_upload(upload.clone());
                    self.upload = Some(upload);
                    body
                }
                other => other,
            },
        };
        let headers = &engine.headers;
        let trace = request.trace.map(|trace| trace.of_attempt(number));
        let extra_headers = headers.list(request.plan, self.start.remaining(now), trace);
        let (client, timer) = (&engine.client, &engine.timer);
        let fault = self.slots.launch(number);
        LaunchedAttempt { client, timer, headers, request, body, extra_headers, host_permit, exchange: None, fault }
    }

    /// Handles the outcome of an attempt, or a tick, and appends what to do to `actions`.
    pub(super) fn on_event(&mut self, event: CallEvent, actions: &mut Vec<HedgeAction>) {
        use AttemptOutcome::{Failure, Success};
        let now = match &event {
            CallEvent::Ended(_, ended) => ended.at,
            CallEvent::Tick | CallEvent::Turn(..) => self.engine.timer.now(),
        };
        self.now = now;
        let event = match event {
            CallEvent::Tick => Event::Tick,
            CallEvent::Turn(attempt, slot) => {
                self.slots.turn(slot);
                Event::Turn(attempt)
            }
            CallEvent::Ended(attempt, ConcludedAttempt { outcome: Success(response), .. }) => {
                self.slots.responded(attempt, &response.head);
                if attempt == 0 {
                    self.request.plan.upstream.record_latency(now, now - self.call_trace.launch_of(0));
                }
                self.call_trace.ended(attempt, now, AttemptStatus::Won(response.head.status.as_u16()));
                self.success = Some(response);
                Event::Succeeded(attempt)
            }
            CallEvent::Ended(
                attempt,
                ConcludedAttempt { outcome: Failure { failure, cause, retry_after, response }, .. },
            ) => {
                match &response {
                    Some(response) => self.slots.responded(attempt, &response.head),
                    None => self.slots.failed(attempt, failure),
                }
                self.call_trace.ended(attempt, now, AttemptStatus::Failed(failure, cause));
                if response.is_some() {
                    self.last_response = response;
                }
                Event::Failed { attempt, failure, retry_after }
            }
        };
        let (request, clock, permits) = (self.request, self.engine.timer.clock(), &mut self.launch_permits);
        let (slots, without_slot) = (&mut self.slots, &mut self.without_slot);
        match &request.plan.budget {
            Some(budget) => {
                let budget = &mut *lock(budget);
                let mut budget = BudgetWithPermits { budget, request, clock, permits, slots, without_slot };
                self.hedge.on(now, event, &mut budget, actions);
            }
            None => {
                let budget = &mut Unlimited;
                let mut budget = BudgetWithPermits { budget, request, clock, permits, slots, without_slot };
                self.hedge.on(now, event, &mut budget, actions);
            }
        }
        // An attempt of this call may wait for the connection that a failed response holds.
        if !actions.iter().any(|action| matches!(action, HedgeAction::Finish(_))) {
            drop(self.last_response.take_if(|response| response.body.holds_limited_connection()));
        }
    }

    /// Wait for the turn of a retry.
    pub(super) fn turn(&self) -> Option<SlotFuture<'a>> {
        self.slots.slot()
    }

    /// Gives back what was acquired for attempts that are not launched after all.
    pub(super) fn release_unlaunched(&mut self) {
        self.slots.release_ready();
    }

    pub(super) fn on_attempt_cancelled(&mut self, attempt: u32) {
        self.slots.cancelled(attempt);
        let now = self.now;
        let timed_out = now - self.call_trace.launch_of(attempt) >= self.request.plan.policy.attempt_timeout;
        let (kind, cause) = match &self.upload {
            Some(upload) if upload.awaits_caller() => {
                (FailureKind::Request, "the request's body did not arrive within the attempt's timeout")
            }
            _ => (FailureKind::Timeout, "no response within the attempt's timeout"),
        };
        let timeout = AttemptStatus::Failed(AttemptFailure::Kind(kind), Some(cause.into()));
        self.call_trace.ended(attempt, now, if timed_out { timeout } else { AttemptStatus::Cancelled });
        if attempt == 0 {
            // A lower bound of its latency.
            self.request.plan.upstream.record_latency(now, now - self.call_trace.launch_of(0));
        }
    }

    pub(super) fn on_budget_exhausted(&mut self, reason: LaunchReason) {
        self.request.plan.counts.count_budget_exhausted();
        let limit = if self.without_slot > 0 {
            self.without_slot -= 1;
            UnsentLimit::Permits
        } else if self.slots.take_denial() {
            UnsentLimit::Rate
        } else {
            UnsentLimit::Budget(self.request.plan.policy.budget)
        };
        self.call_trace.unsent.add(reason, limit);
    }

    #[expect(clippy::result_large_err, reason = "a failure may have a response")]
    pub(super) fn finish(&mut self, verdict: CallVerdict) -> Result<CallResponse, CallFailure> {
        let reason = match verdict {
            CallVerdict::Won(_) => None,
            CallVerdict::Failed { .. } | CallVerdict::ClientClosed => Some(CallFailureReason::AllFailed),
            CallVerdict::DeadlineExceeded => Some(CallFailureReason::DeadlineExceeded),
        };
        self.record_outcome(match reason {
            None => CallOutcome::Won,
            Some(CallFailureReason::AllFailed) => CallOutcome::Failed,
            Some(_) => CallOutcome::DeadlineExceeded,
        });
        if let Some(permit) = &mut self.admission.route_permit {
            let outcome = match reason {
                Some(CallFailureReason::DeadlineExceeded) => PermitOutcome::Cancelled(AbandonReason::DeadlineExceeded),
                _ => PermitOutcome::Ended(admission::ServiceOutcome::Responded),
            };
            permit.set_outcome(outcome, Nanos::ZERO);
        }
        if reason == Some(CallFailureReason::AllFailed) && self.request.plan.policy.allows_extra_attempts() {
            self.call_trace.unsent.not_repeated = self.hedge.not_repeated();
        }
        let success = self.success.take();
        if success.is_some() && reason.is_some() {
            // It arrived after the deadline.
            self.request.plan.upstream.counts.cancelled();
            self.call_trace.revoke();
        }
        self.request.plan.counts.latencies.record(self.now - self.call_trace.began);
        self.request.plan.upstream.counts.count_ended(&self.call_trace);
        let call_trace = std::mem::take(&mut self.call_trace);
        let (timer, deadline) = (&self.engine.timer, self.start.deadline);
        let deadline = || (deadline < Nanos::NEVER).then(|| timer.sleep_until(deadline));
        if let (None, Some(mut response)) = (reason, success) {
            self.request.plan.upstream.counts.won();
            response.body.pass_on(&mut self.admission.route_permit, deadline);
            let UpstreamResponse { head, passed, body } = response;
            return Ok(CallResponse { head, passed, body, call_trace });
        }
        let mut last_response = self.last_response.take();
        if let Some(response) = &mut last_response {
            response.body.pass_on(&mut self.admission.route_permit, deadline);
        }
        Err(CallFailure { reason: reason.unwrap_or(CallFailureReason::AllFailed), last_response, call_trace })
    }

    fn record_outcome(&mut self, outcome: CallOutcome) {
        self.is_counted = true;
        self.request.plan.counts.ended(outcome);
    }
}

impl Drop for CallState<'_> {
    fn drop(&mut self) {
        if !self.is_counted {
            self.record_outcome(CallOutcome::ClientClosed);
            let mut call_trace = std::mem::take(&mut self.call_trace);
            call_trace.cancel_running(self.engine.timer.now());
            self.request.plan.upstream.counts.count_ended(&call_trace);
            (self.on_cancel)(call_trace);
        }
    }
}
