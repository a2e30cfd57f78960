//! A call's journey: does what [`HedgedCall`] decides, until there is an answer.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use http::response::Parts;

use super::answer::{CallBody, CallFailure, CallFailureReason, CallResponse};
use super::ask::CallRequest;
use super::attempt::{AttemptBody, AttemptOutcome, LaunchedAttempt, attempt};
use super::counts::CallOutcome;
use super::entry::{BudgetWithPermits, CallAdmission};
use super::headers::AttemptHeaders;
use super::places::{CallPermit, PermitOutcome};
use super::plan::CallPlan;
use super::story::{AttemptStatus, CallTrace};
use super::upload::{UploadState, track_upload};
use super::upstream::BlameRule;
use crate::decide::Nanos;
use crate::decide::admit::{self, AbandonReason, CallArrival, Priority, Rejection};
use crate::decide::budget::Unlimited;
use crate::decide::dice::Dice;
use crate::decide::hedge::{CallVerdict, Event, HedgeAction, HedgedCall, LaunchReason, ResendRule};
use crate::decide::policy::{AttemptFailure, FailureKind};
use crate::http::client::{Client, OutgoingBody};
use crate::machine::timer::Timer;

/// Makes calls on one event loop, which is a thread's own: a current-thread runtime of tokio and a `LocalSet` in it.
///
/// A second copy after 100 ms or on a failure, and an answer within a second:
///
/// ```no_run
/// use std::sync::Arc;
///
/// use http::{HeaderMap, Method};
/// use weir::call::{Ask, Engine, Host, Plan, Success, Upstream};
/// use weir::decide::Nanos;
/// use weir::decide::hosts::{Balance, Health};
/// use weir::decide::policy::{After, Policy, Stage};
/// use weir::http::client::{Client, Options, Origin, OutBody, Reach};
/// use weir::http::target::Target;
/// use weir::machine::{clock::Clock, timer::Timer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stages = vec![Stage { after: After::Time(Nanos::from_millis(100)), on_failure: true, copies: 1 }];
/// let policy = Policy { deadline: Nanos::SECOND, stages, ..Policy::default() };
/// let target = Target::parse("http://localhost:8000/").map_err(|e| e.to_string())?;
/// let origin = Origin::new(&target, &Reach::default()).map_err(|e| e.to_string())?;
/// let hosts = vec![Host { origin: Arc::new(origin), weight: 1 }];
/// let upstream = Upstream::new(hosts, Balance::RoundRobin, Health::default());
/// // Plans are shared by all threads; an engine belongs to one.
/// let plan = Plan::new(policy, Success::default(), Arc::new(upstream));
///
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// tokio::task::LocalSet::new().block_on(&runtime, async {
///     let (timer, rings) = Timer::new(Clock::starting_in(Nanos::ZERO))?;
///     tokio::task::spawn_local(rings);
///     let engine = Engine::new(Client::new(timer.clone(), Options::default()), timer, 1);
///
///     let headers = HeaderMap::new();
///     match engine.call(&Ask::new(&plan, &Method::GET, "/work", &headers), OutBody::Empty).await {
///         Ok(answer) => println!("{}\n{}", answer.head.status, answer.story),
///         Err(failed) => println!("{:?}\n{}", failed.reason, failed.story),
///     }
///     Ok(())
/// })
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CallEngine {
    client: Client,
    timer: Timer,
    shared: Rc<EngineState>,
}

#[derive(Debug)]
struct EngineState {
    seed: u64,
    call_count: Cell<u64>,
    /// Buffers that calls hand on to one another.
    action_buffers: RefCell<Vec<Vec<HedgeAction>>>,
    headers: AttemptHeaders,
}

impl CallEngine {
    /// Calls go through `client`; `timer` is the same event loop's. Backoffs are drawn from dice of this seed.
    pub fn new(client: Client, timer: Timer, seed: u64) -> Self {
        let shared = EngineState {
            seed,
            call_count: Cell::new(0),
            action_buffers: RefCell::default(),
            headers: AttemptHeaders::default(),
        };
        Self { client, timer, shared: Rc::new(shared) }
    }

    /// The connections.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The clock and the alarm.
    pub fn timer(&self) -> &Timer {
        &self.timer
    }

    /// The next call's [`CallRequest::spread`]: all values come equally often, and no two neighbours are alike.
    pub fn spread(&self) -> u8 {
        const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;
        (self.shared.call_count.get().wrapping_mul(GOLDEN_RATIO) >> 56) as u8
    }

    /// Whether a call is refused at once, before its body is there: more come than the upstream can take, and others
    /// matter more. It is counted, and is over.
    pub fn shed_early(&self, plan: &CallPlan, priority: Priority, spread: u8, deadline: Nanos) -> Option<CallFailure> {
        let places = plan.upstream.permits()?;
        let (now, arrival) = (self.timer.now(), CallArrival { deadline, priority, spread });
        let refusal = places.shed_early(self.timer.clock(), now, &arrival)?;
        self.next_number();
        Some(self.reject(plan, priority, now, refusal))
    }

    /// The end of a call that is not made. It is counted.
    pub fn reject(&self, plan: &CallPlan, priority: Priority, began: Nanos, refusal: Rejection) -> CallFailure {
        plan.counts.rejected(refusal.reason, priority);
        let story = CallTrace { began, rejection: Some((refusal, priority)), ..CallTrace::default() };
        CallFailure { reason: CallFailureReason::Rejected(refusal), last_response: None, call_trace: story }
    }

    fn next_number(&self) -> u64 {
        self.shared.call_count.replace(self.shared.call_count.get().wrapping_add(1))
    }

    /// Makes a call. Dropping the future cancels all its attempts.
    ///
    /// # Errors
    /// [`CallFailure`], when there is no success; it may hold an answer all the same.
    pub async fn call(&self, ask: &CallRequest<'_>, body: OutgoingBody) -> Result<CallResponse, CallFailure> {
        self.call_with_cancel_hook(ask, body, &|_| {}).await
    }

    /// The same; if the future is dropped before the call's end, `gone` hears what has happened so far.
    ///
    /// # Errors
    /// See [`Self::call`].
    pub async fn call_with_cancel_hook(
        &self,
        ask: &CallRequest<'_>,
        body: OutgoingBody,
        gone: &dyn Fn(CallTrace),
    ) -> Result<CallResponse, CallFailure> {
        let (number, began) = (self.next_number(), self.timer.now());
        let deadline = (began + ask.plan.policy.deadline).min(ask.deadline);
        let roll = || 1.0 - Dice::new(!self.shared.seed, number).unit();
        let entry = match CallAdmission::acquire(ask, &self.timer, (began, deadline), roll, gone).await {
            Ok(entry) => entry,
            Err(refusal)
                if refusal.reason == admit::RejectionReason::DeadlineExceeded && self.timer.now() >= deadline =>
            {
                ask.plan.counts.ended(CallOutcome::DeadlineExceeded);
                return Err(CallFailure {
                    reason: CallFailureReason::DeadlineExceeded,
                    last_response: None,
                    call_trace: CallTrace { began, ..CallTrace::default() },
                });
            }
            Err(refusal) => return Err(self.reject(ask.plan, ask.priority, began, refusal)),
        };
        let mut actions = self.shared.action_buffers.borrow_mut().pop().unwrap_or_default();
        let mut journey = CallState::begin(self, ask, body, (number, began, deadline), entry, gone, &mut actions);
        // The first attempt lies here from the start, unlike the others: an attempt is large, and nearly all calls have
        // one. To be moved into its place later would cost as much as all that is decided about it.
        let (course, parcel) = (FirstAttempt::default(), Cell::new(None));
        let mut first = pin!(async {
            let Some(launched) = parcel.take() else { return AttemptOutcome::cancelled() };
            let mut first = pin!(attempt(launched));
            poll_fn(|cx| {
                if course.is_cancelled() { Poll::Ready(AttemptOutcome::cancelled()) } else { first.as_mut().poll(cx) }
            })
            .await
        });
        let mut others = Vec::new();
        let mut alarm = pin!(None);
        let verdict = loop {
            let mut verdict = None;
            for action in actions.drain(..) {
                match action {
                    HedgeAction::Launch { attempt: 0, reason: why } => {
                        parcel.set(Some(journey.launch(0, why)));
                        course.0.set(FirstAttemptState::Running);
                    }
                    HedgeAction::Launch { attempt: number, reason: why } => {
                        others.push((number, Box::pin(attempt(journey.launch(number, why)))));
                    }
                    HedgeAction::Cancel(0) => {
                        course.0.set(FirstAttemptState::Cancelled);
                        // It lets go of all that it has.
                        let _ = first.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                        course.0.set(FirstAttemptState::Idle);
                        journey.on_attempt_cancelled(0);
                    }
                    HedgeAction::Cancel(attempt) => {
                        others.retain(|(other, _)| *other != attempt);
                        journey.on_attempt_cancelled(attempt);
                    }
                    HedgeAction::BudgetExhausted { .. } => journey.on_budget_exhausted(),
                    HedgeAction::WakeAt(at) => alarm.set(Some(self.timer.sleep_until(at))),
                    HedgeAction::Finish(reached) => verdict = Some(reached),
                }
            }
            if let Some(verdict) = verdict {
                break verdict;
            }
            let event = poll_fn(|cx| {
                if course.0.get() == FirstAttemptState::Running
                    && let Poll::Ready(brought) = first.as_mut().poll(cx)
                {
                    course.0.set(FirstAttemptState::Idle);
                    return Poll::Ready(Some((0, brought)));
                }
                for at in 0..others.len() {
                    if let Poll::Ready(brought) = others[at].1.as_mut().poll(cx) {
                        return Poll::Ready(Some((others.swap_remove(at).0, brought)));
                    }
                }
                poll_optional(&mut alarm, cx).map(|()| None)
            })
            .await;
            journey.on_event(event, &mut actions);
        };
        let ended = journey.finish(verdict);
        self.shared.action_buffers.borrow_mut().push(actions);
        ended
    }
}

/// What the first attempt does.
#[derive(Default)]
struct FirstAttempt(Cell<FirstAttemptState>);

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum FirstAttemptState {
    /// Nothing: it is not there yet, or not any more.
    #[default]
    Idle,
    Running,
    /// It is to let go of all that it has.
    Cancelled,
}

impl FirstAttempt {
    fn is_cancelled(&self) -> bool {
        self.0.get() == FirstAttemptState::Cancelled
    }
}

/// Polls a future that may be there, and clears it when it is done.
fn poll_optional<F: Future>(place: &mut Pin<&mut Option<F>>, cx: &mut Context<'_>) -> Poll<F::Output> {
    let Some(future) = place.as_mut().as_pin_mut() else { return Poll::Pending };
    let polled = future.poll(cx);
    if polled.is_ready() {
        place.set(None);
    }
    polled
}

/// One call on its way.
struct CallState<'a> {
    engine: &'a CallEngine,
    request: &'a CallRequest<'a>,
    hedge: HedgedCall<'a>,
    deadline: Nanos,
    /// When the last event was. What is done about it is done then: an attempt that has its time by the decision's
    /// clock must have it by all others.
    now: Nanos,
    body: OutgoingBody,
    admission: CallAdmission,
    /// Places of attempts that are about to be launched.
    launch_permits: Vec<CallPermit>,
    /// Of a body that its caller sends meanwhile.
    upload: Option<UploadState>,
    /// The hosts that attempts of this call have gone to, as bits.
    attempted_hosts: u64,
    call_trace: CallTrace,
    success: Option<(Parts, AttemptBody)>,
    last_response: Option<(Parts, AttemptBody)>,
    is_counted: bool,
    /// Who hears of a call that nobody waits for any more.
    on_cancel: &'a dyn Fn(CallTrace),
}

impl<'a> CallState<'a> {
    fn begin(
        engine: &'a CallEngine,
        request: &'a CallRequest<'a>,
        body: OutgoingBody,
        (number, began, deadline): (u64, Nanos, Nanos),
        admission: CallAdmission,
        on_cancel: &'a dyn Fn(CallTrace),
        actions: &mut Vec<HedgeAction>,
    ) -> Self {
        let plan = request.plan;
        // The stages count from here: who has waited for a place wants no copies of what was not yet sent.
        let now = if admission.waited { engine.timer.now() } else { began };
        plan.count_call(now);
        let replay = match body {
            OutgoingBody::Stream(_) => ResendRule::Never,
            _ if request.upgrade => ResendRule::IfUnsent,
            _ => ResendRule::of(plan.policy.retryable_methods, request.method.as_str()),
        };
        let known = |share| plan.upstream.latency_quantile(now, share);
        let hedge = HedgedCall::start(
            &plan.policy,
            now,
            deadline,
            replay,
            known,
            Dice::new(engine.shared.seed, number),
            actions,
        );
        let call_trace = CallTrace { began, ..CallTrace::default() };
        let launch_permits = Vec::new();
        Self {
            engine,
            request,
            hedge,
            deadline,
            now,
            body,
            admission,
            launch_permits,
            upload: None,
            attempted_hosts: 0,
            call_trace,
            success: None,
            last_response: None,
            is_counted: false,
            on_cancel,
        }
    }

    /// Sends one more copy.
    fn launch(&mut self, number: u32, why: LaunchReason) -> LaunchedAttempt<'a> {
        let (engine, ask, now) = (self.engine, self.request, self.now);
        let policy = &ask.plan.policy;
        // A little less is all: who counts from when the caller asked is a little ahead of us.
        let missing = self.call_trace.began + policy.deadline - self.deadline;
        let all_the_time = number == 0 && missing <= Nanos(policy.deadline.0 / 10);
        let blamed_at = if all_the_time { self.deadline } else { Nanos::NEVER };
        let term = BlameRule {
            attempt_timeout_at: now + policy.attempt_timeout,
            host_blamed_at: blamed_at,
            deadline: self.deadline,
        };
        let leave = match number {
            0 => (self.admission.upstream_permit.take(), self.admission.breaker_permit.take()),
            _ => (self.launch_permits.pop(), None),
        };
        let mut occupied = ask.plan.upstream.acquire_host(&engine.timer, now, term, self.attempted_hosts, why, leave);
        self.attempted_hosts |= 1 << occupied.host;
        debug_assert_eq!(self.call_trace.attempts.len(), number as usize, "attempts are numbered as they are launched");
        self.call_trace.launched(why, occupied.origin(), now);
        let body = match &self.body {
            OutgoingBody::Empty => OutgoingBody::Empty,
            OutgoingBody::Bytes(bytes) => OutgoingBody::Bytes(bytes.clone()),
            OutgoingBody::Stream(_) => match std::mem::replace(&mut self.body, OutgoingBody::Empty) {
                OutgoingBody::Stream(body) => {
                    let (body, owes) = track_upload(body);
                    occupied.set_upload(owes.clone());
                    self.upload = Some(owes);
                    body
                }
                other => other,
            },
        };
        let left = if self.deadline == Nanos::NEVER { Nanos::NEVER } else { self.deadline - now };
        let headers = &engine.shared.headers;
        let more = headers.list(ask.plan, left, ask.trace.map(|trace| trace.of_attempt(number)));
        LaunchedAttempt {
            client: &engine.client,
            headers,
            request: ask,
            body,
            extra_headers: more,
            host_permit: occupied,
        }
    }

    /// An attempt has brought something, or it is time to look.
    fn on_event(&mut self, event: Option<(u32, AttemptOutcome)>, actions: &mut Vec<HedgeAction>) {
        let now = self.engine.timer.now();
        self.now = now;
        let event = match event {
            None => Event::Tick,
            Some((attempt, AttemptOutcome::Success(head, carried))) => {
                if attempt == 0 {
                    self.request.plan.upstream.record_latency(now, now - self.call_trace.launch_of(0));
                }
                self.call_trace.ended(attempt, now, AttemptStatus::Won(head.status.as_u16()));
                self.success = Some((head, carried));
                Event::Succeeded(attempt)
            }
            Some((attempt, AttemptOutcome::Failure { failure, cause, retry_after, response: answer })) => {
                self.call_trace.ended(attempt, now, AttemptStatus::Failed(failure, cause));
                if answer.is_some() {
                    self.last_response = answer;
                }
                Event::Failed { attempt, failure, retry_after }
            }
        };
        let (ask, clock, taken) = (self.request, self.engine.timer.clock(), &mut self.launch_permits);
        match &ask.plan.budget {
            Some(ledger) => {
                let purse = &mut *ledger.lock().unwrap_or_else(PoisonError::into_inner);
                self.hedge.on(
                    now,
                    event,
                    &mut BudgetWithPermits { budget: purse, request: ask, clock, permits: taken },
                    actions,
                );
            }
            None => self.hedge.on(
                now,
                event,
                &mut BudgetWithPermits { budget: &mut Unlimited, request: ask, clock, permits: taken },
                actions,
            ),
        }
        // An attempt of this call may wait for the very connection that an answer of no use holds.
        let holds = |(_, carried): &mut (Parts, AttemptBody)| matches!(carried, AttemptBody::Streaming(coming) if coming.is_limited());
        if !actions.iter().any(|action| matches!(action, HedgeAction::Finish(_))) {
            drop(self.last_response.take_if(holds));
        }
    }

    fn on_attempt_cancelled(&mut self, attempt: u32) {
        let now = self.now;
        let late = now - self.call_trace.launch_of(attempt) >= self.request.plan.policy.attempt_timeout;
        let timeout = match &self.upload {
            Some(upload) if upload.awaits_caller() => {
                (FailureKind::Request, "the request's body did not come within the attempt's time")
            }
            _ => (FailureKind::Timeout, "no answer within the attempt's time"),
        };
        let timeout = AttemptStatus::Failed(AttemptFailure::Kind(timeout.0), Some(timeout.1.into()));
        self.call_trace.ended(attempt, now, if late { timeout } else { AttemptStatus::Cancelled });
        if attempt == 0 {
            // It would have taken at least so long.
            self.request.plan.upstream.record_latency(now, now - self.call_trace.launch_of(0));
        }
    }

    fn on_budget_exhausted(&mut self) {
        self.request.plan.counts.count_budget_exhausted();
        self.call_trace.budget_exhausted += 1;
    }

    #[expect(clippy::result_large_err, reason = "without a success there may be an answer all the same")]
    fn finish(&mut self, verdict: CallVerdict) -> Result<CallResponse, CallFailure> {
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
        if let Some(place) = &mut self.admission.route_permit {
            let fate = match reason {
                Some(CallFailureReason::DeadlineExceeded) => PermitOutcome::Cancelled(AbandonReason::DeadlineExceeded),
                _ => PermitOutcome::Ended(admit::ServiceOutcome::Responded),
            };
            place.set_outcome(fate, Nanos::ZERO);
        }
        let success = self.success.take();
        if success.is_some() && reason.is_some() {
            // It came too late to be the answer.
            self.request.plan.upstream.counts.cancelled();
            self.call_trace.revoke();
        }
        let story = std::mem::take(&mut self.call_trace);
        if let (None, Some((head, carried))) = (reason, success) {
            self.request.plan.upstream.counts.won();
            return Ok(CallResponse { head, body: self.into_call_body(carried), call_trace: story });
        }
        let last = self.last_response.take().map(|(head, carried)| (head, self.into_call_body(carried)));
        Err(CallFailure {
            reason: reason.unwrap_or(CallFailureReason::AllFailed),
            last_response: last,
            call_trace: story,
        })
    }

    fn into_call_body(&mut self, carried: AttemptBody) -> CallBody {
        match carried {
            AttemptBody::Buffered(whole) => CallBody::buffered(whole),
            AttemptBody::Streaming(mut coming) => {
                coming.set_route_permit(self.admission.route_permit.take());
                if self.deadline < Nanos::NEVER {
                    coming.set_deadline(self.engine.timer.sleep_until(self.deadline));
                }
                CallBody::Streaming(coming)
            }
        }
    }

    fn record_outcome(&mut self, end: CallOutcome) {
        self.is_counted = true;
        self.request.plan.counts.ended(end);
    }
}

impl Drop for CallState<'_> {
    fn drop(&mut self) {
        if !self.is_counted {
            self.record_outcome(CallOutcome::ClientClosed);
            let mut story = std::mem::take(&mut self.call_trace);
            story.cancel_running(self.engine.timer.now());
            (self.on_cancel)(story);
        }
    }
}
