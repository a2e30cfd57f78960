//! Calls as values: a call whose first attempt succeeds at once needs no future.
//!
//! Permits, breaker, budget, the decisions about attempts, the host and the bytes of both ends are those of any call. What
//! is left out is the way between them: a call that does not end with the first response, whole and in time, goes on as
//! a future, from where it is ([`CallEngine::resume`](super::CallEngine::resume)). It is begun only if nothing about it
//! has to be waited for.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::admission::CallAdmission;
use super::call_start::CallStart;
use super::counts::{CallCounts, CallOutcome};
use super::engine_state::EngineState;
use super::host_permit::{BlameRule, HostChoice, HostPermit};
use super::permits::PermitOutcome;
use super::plan::CallPlan;
use super::request::CallRequest;
use weir_base::Nanos;
use weir_machine::timer::Sleep;
use weir_net::client::{BegunExchange, CompleteResponse, OutgoingBody, OutgoingRequest};
use weir_resilience::admission::ServiceOutcome;
use weir_resilience::hedge::{Event, HedgeAction, HedgedCall, LaunchReason, ResendRule};
use weir_retry::grpc::Codes;
use weir_retry::retry_budget::Unlimited;

/// A call whose first attempt is on its way. Dropping it cancels the call.
#[derive(Debug)]
pub struct DirectCall {
    engine: Rc<EngineState>,
    plan: Arc<CallPlan>,
    /// None once the call has ended.
    running: Option<RunningCall>,
    /// Wait for the time of [`RunningCall::wake_at`].
    alarm: Option<Sleep>,
    /// Counts a caller that disconnects; the last field, since it is dropped last.
    uncounted: UncountedCall,
}

/// What a call in flight has.
#[derive(Debug)]
pub(super) struct RunningCall {
    pub(super) start: CallStart,
    /// Launch of the first attempt.
    pub(super) launched: Nanos,
    pub(super) hedge: HedgedCall<'static>,
    /// When the decisions want to be asked, at the latest at the deadline.
    pub(super) wake_at: Option<Nanos>,
    pub(super) admission: CallAdmission,
    pub(super) host_permit: HostPermit,
    /// None if no connection was idle.
    pub(super) exchange: Option<BegunExchange>,
}

/// Counter of a call that may end without an outcome.
#[derive(Debug)]
struct UncountedCall(Option<Arc<CallCounts>>);

impl Drop for UncountedCall {
    fn drop(&mut self) {
        self.0.iter().for_each(|counts| counts.ended(CallOutcome::ClientClosed));
    }
}

impl DirectCall {
    /// Begins a call, if its plan and its request allow that, and all permits are free. `plan` is the request's.
    pub(super) fn begin(
        engine: &Rc<EngineState>,
        plan: &Arc<CallPlan>,
        request: &CallRequest<'_>,
        body: &OutgoingBody,
    ) -> Option<Self> {
        debug_assert!(std::ptr::eq(&**plan, request.plan), "the plan is the request's");
        let is_plain = !request.upgrade && request.trace.is_none() && plan.success.is_of_head();
        let body = match body {
            OutgoingBody::Empty => OutgoingBody::Empty,
            OutgoingBody::Bytes(bytes) => OutgoingBody::Bytes(bytes.clone()),
            OutgoingBody::Stream(_) => return None,
        };
        let start = CallStart::next(engine, request);
        if !is_plain || start.began >= start.deadline {
            return None;
        }
        let mut admission = CallAdmission::try_acquire(request, &engine.timer, start)?;
        engine.next_number();
        let resend = ResendRule::of(plan.policy.retryable_methods, request.method.as_str());
        let (now, mut actions) = (start.began, engine.action_buffer());
        let hedge = start.begin(engine, (plan, Arc::clone(&plan.policy)), now, resend, &mut actions);
        // The first action launches the first attempt, before the deadline.
        let wake_at = actions.drain(..).find_map(|action| match action {
            HedgeAction::WakeAt(at) => Some(at),
            _ => None,
        });
        engine.recycle_actions(actions);
        let blame_rule = BlameRule::of(&plan.policy, &start, 0, now);
        let permits = (admission.upstream_permit.take(), admission.breaker_permit.take());
        let choice = HostChoice { avoid: 0, key: request.key };
        let (upstream, first) = (&plan.upstream, LaunchReason::First);
        let host_permit = HostPermit::acquire(upstream, &engine.timer, now, blame_rule, choice, first, permits);
        let exchange = begin_exchange(engine, request, body, start.remaining(now), &host_permit);
        Some(Self {
            engine: Rc::clone(engine),
            plan: Arc::clone(plan),
            running: Some(RunningCall { start, launched: now, hedge, wake_at, admission, host_permit, exchange }),
            alarm: wake_at.map(|at| engine.timer.sleep_until(at)),
            uncounted: UncountedCall(Some(Arc::clone(&plan.counts))),
        })
    }

    /// The response, if the first attempt succeeds with one that comes whole and in time. After None the call is to go on
    /// as a future.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<CompleteResponse>> {
        let Some(running) = &mut self.running else { return Poll::Ready(None) };
        let (timer, success) = (&self.engine.timer, &self.plan.success);
        let Some(exchange) = &mut running.exchange else { return Poll::Ready(None) };
        let mut now = Nanos::ZERO;
        let polled = exchange.poll_whole(cx, |head| {
            now = timer.now();
            now <= running.start.deadline
                && success.check_head(head.status, &head.headers).is_ok()
                && success.codes(&head.headers) == Codes::NONE
        });
        match polled {
            Poll::Ready(Some(response)) => {
                self.succeeded(response.head.status.as_u16(), now);
                Poll::Ready(Some(response))
            }
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => match self.alarm.as_mut().map(|alarm| Pin::new(alarm).poll(cx)) {
                Some(Poll::Ready(())) => Poll::Ready(None),
                Some(Poll::Pending) | None => Poll::Pending,
            },
        }
    }

    /// Ends the call with the first attempt's success.
    fn succeeded(&mut self, status: u16, now: Nanos) {
        let Some(running) = &mut self.running else { return };
        let RunningCall { start, launched, hedge, admission, host_permit, .. } = running;
        host_permit.response_started(status);
        host_permit.succeeded();
        host_permit.complete();
        host_permit.end(now);
        let (counts, upstream) = (&self.plan.counts, &self.plan.upstream);
        upstream.record_latency(now, now - *launched);
        let mut actions = self.engine.action_buffer();
        hedge.on(now, Event::Succeeded(0), &mut Unlimited, &mut actions);
        debug_assert!(matches!(actions[..], [HedgeAction::Finish(_)]), "{actions:?}");
        actions.clear();
        self.engine.recycle_actions(actions);
        self.uncounted.0 = None;
        counts.ended(CallOutcome::Won);
        if let Some(permit) = &mut admission.route_permit {
            permit.set_outcome(PermitOutcome::Ended(ServiceOutcome::Responded), Nanos::ZERO);
        }
        counts.latencies.record(now - start.began);
        upstream.counts.latencies.record(now - *launched);
        upstream.counts.won();
        // Its permits are free, and its connection is another call's.
        (self.running, self.alarm) = (None, None);
    }

    /// What the call has, for its future.
    pub(super) fn into_running(mut self) -> Option<RunningCall> {
        self.uncounted.0 = None;
        self.running
    }
}

/// Begins the first attempt, if a connection is idle.
fn begin_exchange(
    engine: &EngineState,
    request: &CallRequest<'_>,
    body: OutgoingBody,
    remaining: Nanos,
    host_permit: &HostPermit,
) -> Option<BegunExchange> {
    let origin = host_permit.origin();
    if origin.names_clients() {
        return None;
    }
    let headers = &engine.headers;
    let extra_headers = headers.list(request.plan, remaining, None);
    let outgoing = OutgoingRequest {
        method: request.method,
        target: request.target,
        headers: request.headers,
        extra_headers: &extra_headers,
        body,
        upgrade: false,
        wire: request.wire,
    };
    let begun = engine.client.begin(origin, outgoing);
    headers.recycle(extra_headers);
    begun
}
