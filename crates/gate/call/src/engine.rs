//! Makes calls: runs the attempts that [`weir_resilience::hedge`] decides on until there is a response.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::admission::CallAdmission;
use super::attempt::{ConcludedAttempt, attempt};
use super::attempt_log::CallTrace;
use super::call_event::CallEvent;
use super::call_start::CallStart;
use super::counts::CallOutcome;
use super::direct_call::DirectCall;
use super::engine_state::EngineState;
use super::headers::AttemptHeaders;
use super::plan::CallPlan;
use super::request::CallRequest;
use super::response::{CallFailure, CallFailureReason, CallResponse};
use super::state::CallState;
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_machine::timer::Timer;
use weir_net::client::{Client, OutgoingBody};
use weir_resilience::admission::{CallArrival, Priority, Rejection, RejectionReason};
use weir_resilience::hedge::HedgeAction;

/// Engine of calls on one event loop: a current-thread runtime of tokio and a `LocalSet` in it.
///
/// A second attempt after 100 ms or after a failure, and a response within a second:
///
/// ```no_run
/// use std::sync::Arc;
///
/// use http::{HeaderMap, Method};
/// use weir_call::{CallEngine, CallPlan, CallRequest, Success, Upstream, UpstreamHost};
/// use weir_base::Nanos;
/// use weir_resilience::policy::{HedgeStage, Policy, StageTrigger};
/// use weir_resilience::upstream::hosts::{BalancePolicy, OutlierRule};
/// use weir_net::client::{Client, ConnectOptions, Options, Origin, OutgoingBody};
/// use weir_net::target::Target;
/// use weir_machine::{clock::Clock, timer::Timer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let after = StageTrigger::Time(Nanos::from_millis(100));
/// let stages = vec![HedgeStage { after, on_failure: true, attempts: 1 }];
/// let policy = Policy { deadline: Nanos::SECOND, stages, ..Policy::default() };
/// let target = Target::parse("http://localhost:8000/").map_err(|e| e.to_string())?;
/// let origin = Origin::new(&target, &ConnectOptions::default()).map_err(|e| e.to_string())?;
/// let hosts = vec![UpstreamHost { origin: Arc::new(origin), weight: 1 }];
/// let upstream = Upstream::new(hosts, BalancePolicy::RoundRobin, OutlierRule::default());
/// // Plans are shared by all threads; an engine belongs to one.
/// let plan = CallPlan::new(policy, Success::default(), Arc::new(upstream));
///
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// tokio::task::LocalSet::new().block_on(&runtime, async {
///     let (timer, driver) = Timer::new(Clock::starting_in(Nanos::ZERO))?;
///     tokio::task::spawn_local(driver);
///     let engine = CallEngine::new(Client::new(timer.clone(), Options::default()), timer, 1);
///
///     let headers = HeaderMap::new();
///     let request = CallRequest::new(&plan, &Method::GET, "/work", &headers);
///     match engine.call(&request, OutgoingBody::Empty).await {
///         Ok(response) => println!("{}\n{}", response.head.status, response.call_trace),
///         Err(failure) => println!("{:?}\n{}", failure.reason, failure.call_trace),
///     }
///     Ok(())
/// })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CallEngine {
    state: Rc<EngineState>,
}

impl CallEngine {
    /// An engine over a client and a timer of the same event loop; `seed` is that of backoff jitter.
    pub fn new(client: Client, timer: Timer, seed: u64) -> Self {
        let state = EngineState {
            client,
            timer,
            seed,
            headers: AttemptHeaders::default(),
            call_count: Cell::new(0),
            action_buffers: RefCell::default(),
        };
        Self { state: Rc::new(state) }
    }

    /// The client, which has the connections.
    pub fn client(&self) -> &Client {
        &self.state.client
    }

    /// The timer, which has the clock.
    pub fn timer(&self) -> &Timer {
        &self.state.timer
    }

    /// [`CallRequest::spread`] of the next call: all values are equally frequent, and successive ones differ (golden
    /// ratio sequence).
    pub fn spread(&self) -> u8 {
        const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;
        (self.state.call_count.get().wrapping_mul(GOLDEN_RATIO) >> 56) as u8
    }

    /// Rejection of a call whose priority is below the upstream's shedding threshold, before its body is read. The
    /// rejection is counted.
    ///
    /// [`Self::call`] decides on admission anyway, once the body has arrived. A server with a body to read asks here
    /// first, since under overload a call that is to be shed would otherwise cost the upload and its memory. `None` is
    /// not an admission: no permit is held while a caller sends, and the threshold can rise until then.
    pub fn shed_early(&self, plan: &CallPlan, priority: Priority, spread: u8, deadline: Nanos) -> Option<CallFailure> {
        let permits = plan.upstream.permits()?;
        let (now, arrival) = (self.timer().now(), CallArrival { deadline, priority, spread, connection: None });
        let rejection = permits.shed_early(self.timer().clock(), now, &arrival)?;
        self.state.next_number();
        Some(self.reject(plan, priority, now, rejection))
    }

    /// The failure of a rejected call; the rejection is counted.
    pub fn reject(&self, plan: &CallPlan, priority: Priority, began: Nanos, rejection: Rejection) -> CallFailure {
        plan.counts.rejected(rejection.reason, priority);
        let call_trace = CallTrace { began, rejection: Some((rejection, priority)), ..CallTrace::default() };
        CallFailure { reason: CallFailureReason::Rejected(rejection), last_response: None, call_trace }
    }

    /// Begins a call as a value, if its plan and its request allow that, and all permits are free; None leaves it to
    /// [`Self::resume`]. `plan` is the request's.
    pub fn begin_direct(
        &self,
        plan: &Arc<CallPlan>,
        request: &CallRequest<'_>,
        body: &OutgoingBody,
    ) -> Option<DirectCall> {
        DirectCall::begin(&self.state, plan, request, body)
    }

    /// Makes a call. Dropping the future cancels all its attempts.
    ///
    /// # Errors
    /// [`CallFailure`] without a success; it has the last response, if there was one.
    pub async fn call(&self, request: &CallRequest<'_>, body: OutgoingBody) -> Result<CallResponse, CallFailure> {
        self.call_with_cancel_hook(request, body, &|_| {}).await
    }

    /// As [`Self::call`]; if the future is dropped before the call's end, `on_cancel` gets the trace so far.
    ///
    /// # Errors
    /// See [`Self::call`].
    pub fn call_with_cancel_hook(
        &self,
        request: &CallRequest<'_>,
        body: OutgoingBody,
        on_cancel: &dyn Fn(CallTrace),
    ) -> impl Future<Output = Result<CallResponse, CallFailure>> {
        self.resume(None, request, body, on_cancel)
    }

    /// As [`Self::call_with_cancel_hook`], of a call that [`Self::begin_direct`] may have begun with the same request.
    ///
    /// # Errors
    /// See [`Self::call`].
    pub async fn resume(
        &self,
        begun: Option<Box<DirectCall>>,
        request: &CallRequest<'_>,
        body: OutgoingBody,
        on_cancel: &dyn Fn(CallTrace),
    ) -> Result<CallResponse, CallFailure> {
        let mut actions = self.state.action_buffer();
        // The first attempt is pinned here from the start, unlike the others: its future is large, and to move it later
        // would cost as much as all decisions about it. Nearly all calls have exactly one attempt.
        let (first_attempt, to_launch) = (FirstAttempt::default(), Cell::new(None));
        let mut call = if let Some(begun) = begun {
            let Some(running) = begun.into_running() else { return Err(CallFailure::after_end()) };
            actions.extend(running.wake_at.map(HedgeAction::WakeAt));
            let (call, first) = CallState::resume(&self.state, request, body, running, on_cancel);
            to_launch.set(Some(first));
            first_attempt.0.set(FirstAttemptState::Running);
            call
        } else {
            let start = CallStart::next(&self.state, request);
            self.state.next_number();
            let random = || 1.0 - SeededRng::new(!self.state.seed, start.number).unit();
            match CallAdmission::acquire(request, self.timer(), start, random, on_cancel).await {
                Ok(admission) => {
                    CallState::begin(&self.state, request, body, start, admission, on_cancel, &mut actions)
                }
                Err(rejection) => return Err(self.not_admitted(request, start, rejection)),
            }
        };
        let mut first = pin!(async {
            let Some(launched) = to_launch.take() else { return ConcludedAttempt::cancelled(self.timer()) };
            let mut first = pin!(attempt(launched));
            poll_fn(|cx| {
                if first_attempt.is_cancelled() {
                    Poll::Ready(ConcludedAttempt::cancelled(self.timer()))
                } else {
                    first.as_mut().poll(cx)
                }
            })
            .await
        });
        let mut others = Vec::new();
        let mut turns = Vec::new();
        let mut alarm = pin!(None);
        let verdict = loop {
            let mut verdict = None;
            for action in actions.drain(..) {
                match action {
                    HedgeAction::Launch { attempt: 0, reason } => {
                        to_launch.set(Some(call.launch(0, reason)));
                        first_attempt.0.set(FirstAttemptState::Running);
                    }
                    HedgeAction::Launch { attempt: number, reason } => {
                        others.push((number, Box::pin(attempt(call.launch(number, reason)))));
                    }
                    HedgeAction::AwaitTurn(attempt) => turns.extend(call.turn().map(|slot| (attempt, slot))),
                    HedgeAction::Cancel(0) => {
                        first_attempt.0.set(FirstAttemptState::Cancelled);
                        // The poll drops all that the attempt holds.
                        let _ = first.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                        first_attempt.0.set(FirstAttemptState::Idle);
                        call.on_attempt_cancelled(0);
                    }
                    HedgeAction::Cancel(attempt) => {
                        others.retain(|(other, _)| *other != attempt);
                        call.on_attempt_cancelled(attempt);
                    }
                    HedgeAction::BudgetExhausted { reason } => call.on_budget_exhausted(reason),
                    HedgeAction::WakeAt(at) => alarm.set(Some(self.timer().sleep_until(at))),
                    HedgeAction::Finish(reached) => verdict = Some(reached),
                }
            }
            call.release_unlaunched();
            if let Some(verdict) = verdict {
                break verdict;
            }
            let event = poll_fn(|cx| {
                if first_attempt.0.get() == FirstAttemptState::Running
                    && let Poll::Ready(outcome) = first.as_mut().poll(cx)
                {
                    first_attempt.0.set(FirstAttemptState::Idle);
                    return Poll::Ready(CallEvent::Ended(0, outcome));
                }
                for at in 0..others.len() {
                    if let Poll::Ready(outcome) = others[at].1.as_mut().poll(cx) {
                        return Poll::Ready(CallEvent::Ended(others.swap_remove(at).0, outcome));
                    }
                }
                for at in 0..turns.len() {
                    if let Poll::Ready(slot) = turns[at].1.as_mut().poll(cx) {
                        return Poll::Ready(CallEvent::Turn(turns.swap_remove(at).0, slot));
                    }
                }
                poll_optional(&mut alarm, cx).map(|()| CallEvent::Tick)
            })
            .await;
            call.on_event(event, &mut actions);
        };
        let ended = call.finish(verdict);
        self.state.recycle_actions(actions);
        ended
    }

    /// The failure of a call that was not admitted: its deadline may have passed meanwhile.
    fn not_admitted(&self, request: &CallRequest<'_>, start: CallStart, rejection: Rejection) -> CallFailure {
        let CallStart { began, deadline, .. } = start;
        if rejection.reason != RejectionReason::DeadlineExceeded || self.timer().now() < deadline {
            return self.reject(request.plan, request.priority, began, rejection);
        }
        request.plan.counts.ended(CallOutcome::DeadlineExceeded);
        let call_trace = CallTrace { began, ..CallTrace::default() };
        CallFailure { reason: CallFailureReason::DeadlineExceeded, last_response: None, call_trace }
    }
}

/// State of the first attempt, shared with its future.
#[derive(Default)]
struct FirstAttempt(Cell<FirstAttemptState>);

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum FirstAttemptState {
    /// Not launched yet, or ended.
    #[default]
    Idle,
    Running,
    /// Cancelled: the next poll drops all that it holds.
    Cancelled,
}

impl FirstAttempt {
    fn is_cancelled(&self) -> bool {
        self.0.get() == FirstAttemptState::Cancelled
    }
}

/// Polls a future, if there is one, and removes it when it is ready.
fn poll_optional<F: Future>(slot: &mut Pin<&mut Option<F>>, cx: &mut Context<'_>) -> Poll<F::Output> {
    let Some(future) = slot.as_mut().as_pin_mut() else { return Poll::Pending };
    let polled = future.poll(cx);
    if polled.is_ready() {
        slot.set(None);
    }
    polled
}
