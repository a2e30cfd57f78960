//! A call's journey: does what [`Hedge`] decides, until there is an answer.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::PoisonError;
use std::task::{Context, Poll};

use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::answer::{Answer, AnswerBody, Coming, Failed, Reason};
use super::attempt::{Brought, Carried, attempt};
use super::counts::CallEnd;
use super::plan::Plan;
use super::story::{End, Story};
use crate::decide::Nanos;
use crate::decide::budget::Limitless;
use crate::decide::deadline::Form;
use crate::decide::dice::Dice;
use crate::decide::hedge::{Action, Event, Hedge, Replay, Verdict, Why};
use crate::decide::policy::{Failure, Kind};
use crate::http::client::{Client, OutBody};
use crate::machine::timer::Timer;

/// Makes calls on one event loop.
#[derive(Clone, Debug)]
pub struct Engine {
    client: Client,
    timer: Timer,
    shared: Rc<Shared>,
}

#[derive(Debug)]
struct Shared {
    seed: u64,
    calls: Cell<u64>,
    /// Buffers that calls hand on to one another.
    buffers: RefCell<Vec<Vec<Action>>>,
}

/// What a caller asks.
#[derive(Debug)]
pub struct Ask<'a> {
    /// What may be done for it.
    pub plan: &'a Plan,
    /// The method.
    pub method: &'a Method,
    /// Path and query.
    pub target: &'a str,
    /// Headers that concern the upstream; without any of the connection.
    pub headers: &'a HeaderMap,
    /// The caller's own deadline, on the engine's clock; the policy's may come earlier.
    pub deadline: Nanos,
    /// Whether the caller wants to switch protocols.
    pub upgrade: bool,
}

impl Engine {
    /// Calls go through `client`; `timer` is the same event loop's. Backoffs are drawn from dice of this seed.
    pub fn new(client: Client, timer: Timer, seed: u64) -> Self {
        let shared = Shared { seed, calls: Cell::new(0), buffers: RefCell::default() };
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

    /// Makes a call. Dropping the future cancels all its attempts.
    ///
    /// # Errors
    /// [`Failed`], when there is no success; it may hold an answer all the same.
    pub async fn call(&self, ask: &Ask<'_>, body: OutBody) -> Result<Answer, Failed> {
        let mut actions = self.shared.buffers.borrow_mut().pop().unwrap_or_default();
        let mut journey = Journey::begin(self, ask, body, &mut actions);
        let mut first = pin!(None);
        let mut others = Vec::new();
        let mut alarm = pin!(None);
        let verdict = loop {
            let mut verdict = None;
            for action in actions.drain(..) {
                match action {
                    Action::Launch { attempt: 0, why } => first.set(Some(journey.launch(0, why))),
                    Action::Launch { attempt, why } => others.push((attempt, Box::pin(journey.launch(attempt, why)))),
                    Action::Cancel(0) => {
                        first.set(None);
                        journey.cancelled(0);
                    }
                    Action::Cancel(attempt) => {
                        others.retain(|(other, _)| *other != attempt);
                        journey.cancelled(attempt);
                    }
                    Action::Suppressed { .. } => journey.suppressed(),
                    Action::WakeAt(at) => alarm.set(Some(self.timer.sleep_until(at))),
                    Action::Answer(reached) => verdict = Some(reached),
                }
            }
            if let Some(verdict) = verdict {
                break verdict;
            }
            let event = poll_fn(|cx| {
                if let Poll::Ready(brought) = poll_some(&mut first, cx) {
                    return Poll::Ready(Some((0, brought)));
                }
                for at in 0..others.len() {
                    if let Poll::Ready(brought) = others[at].1.as_mut().poll(cx) {
                        return Poll::Ready(Some((others.swap_remove(at).0, brought)));
                    }
                }
                poll_some(&mut alarm, cx).map(|()| None)
            })
            .await;
            journey.goes_on(event, &mut actions);
        };
        let ended = journey.end(verdict);
        self.shared.buffers.borrow_mut().push(actions);
        ended
    }
}

/// Polls a future that may be there, and clears it when it is done.
fn poll_some<F: Future>(place: &mut Pin<&mut Option<F>>, cx: &mut Context<'_>) -> Poll<F::Output> {
    let Some(future) = place.as_mut().as_pin_mut() else { return Poll::Pending };
    let polled = future.poll(cx);
    if polled.is_ready() {
        place.set(None);
    }
    polled
}

/// A length of time as a header has it.
fn written(form: Form, left: Nanos) -> Option<HeaderValue> {
    let mut text = String::new();
    form.write(left, &mut text).ok()?;
    HeaderValue::try_from(text).ok()
}

/// One call on its way.
struct Journey<'a> {
    engine: &'a Engine,
    ask: &'a Ask<'a>,
    hedge: Hedge<'a>,
    deadline: Nanos,
    body: OutBody,
    /// The hosts that attempts of this call have gone to, as bits.
    tried: u64,
    story: Story,
    success: Option<(Parts, Carried)>,
    last: Option<(Parts, Carried)>,
    counted: bool,
}

impl<'a> Journey<'a> {
    fn begin(engine: &'a Engine, ask: &'a Ask<'a>, body: OutBody, actions: &mut Vec<Action>) -> Self {
        let plan = ask.plan;
        let now = engine.timer.now();
        plan.began(now);
        let number = engine.shared.calls.get();
        engine.shared.calls.set(number + 1);
        let deadline = (now + plan.policy.deadline).min(ask.deadline);
        let replay = match body {
            OutBody::Stream(_) => Replay::Never,
            _ if ask.upgrade => Replay::Unsent,
            _ => Replay::of(plan.policy.repeat, ask.method.as_str()),
        };
        let known = |share| plan.upstream.quantile(now, share);
        let hedge =
            Hedge::start(&plan.policy, now, deadline, replay, known, Dice::new(engine.shared.seed, number), actions);
        let story = Story { began: now, ..Story::default() };
        Self { engine, ask, hedge, deadline, body, tried: 0, story, success: None, last: None, counted: false }
    }

    /// Sends one more copy.
    fn launch(&mut self, number: u32, why: Why) -> impl Future<Output = Brought> + use<'a> {
        let (engine, ask) = (self.engine, self.ask);
        let now = engine.timer.now();
        let late_at = now + ask.plan.policy.attempt_timeout;
        let occupied = ask.plan.upstream.occupy(&engine.timer, late_at, self.tried, why);
        self.tried |= 1 << occupied.host;
        debug_assert_eq!(self.story.attempts.len(), number as usize, "attempts are numbered as they are launched");
        self.story.launched(why, occupied.origin(), now);
        let body = match &self.body {
            OutBody::Empty => OutBody::Empty,
            OutBody::Bytes(bytes) => OutBody::Bytes(bytes.clone()),
            OutBody::Stream(_) => std::mem::replace(&mut self.body, OutBody::Empty),
        };
        let more = self.time_left(now);
        attempt(&engine.client, ask, body, more, occupied)
    }

    /// How much time is left, in headers.
    fn time_left(&self, now: Nanos) -> Vec<(HeaderName, HeaderValue)> {
        if self.deadline == Nanos::NEVER {
            return Vec::new();
        }
        let left = self.deadline - now;
        let headers = self.ask.plan.deadline_headers.iter();
        headers.filter_map(|(name, form)| Some((name.clone(), written(*form, left)?))).collect()
    }

    /// An attempt has brought something, or it is time to look.
    fn goes_on(&mut self, event: Option<(u32, Brought)>, actions: &mut Vec<Action>) {
        let now = self.engine.timer.now();
        let event = match event {
            None => Event::Tick,
            Some((attempt, Brought::Success(head, carried))) => {
                if attempt == 0 {
                    self.ask.plan.upstream.took(now, now - self.story.began);
                }
                self.story.ended(attempt, now, End::Won(head.status.as_u16()));
                self.success = Some((head, carried));
                Event::Succeeded(attempt)
            }
            Some((attempt, Brought::Failure { failure, cause, retry_after, answer })) => {
                self.story.ended(attempt, now, End::Failed(failure, cause));
                if answer.is_some() {
                    self.last = answer;
                }
                Event::Failed { attempt, failure, retry_after }
            }
        };
        match &self.ask.plan.ledger {
            Some(ledger) => {
                self.hedge.on(now, event, &mut *ledger.lock().unwrap_or_else(PoisonError::into_inner), actions);
            }
            None => self.hedge.on(now, event, &mut Limitless, actions),
        }
    }

    fn cancelled(&mut self, attempt: u32) {
        let now = self.engine.timer.now();
        let late = now - self.story.launch_of(attempt) >= self.ask.plan.policy.attempt_timeout;
        let timeout = End::Failed(Failure::Kind(Kind::Timeout), Some("no answer within the attempt's time".into()));
        self.story.ended(attempt, now, if late { timeout } else { End::Cancelled });
        if attempt == 0 {
            // It would have taken at least so long.
            self.ask.plan.upstream.took(now, now - self.story.began);
        }
    }

    fn suppressed(&mut self) {
        self.ask.plan.counts.suppressed();
        self.story.suppressed += 1;
    }

    fn end(mut self, verdict: Verdict) -> Result<Answer, Failed> {
        let reason = match verdict {
            Verdict::Won(_) => None,
            Verdict::Failed { .. } | Verdict::Gone => Some(Reason::AllFailed),
            Verdict::Late => Some(Reason::Late),
        };
        self.counted(match reason {
            None => CallEnd::Won,
            Some(Reason::AllFailed) => CallEnd::Failed,
            Some(Reason::Late) => CallEnd::Late,
        });
        let story = std::mem::take(&mut self.story);
        if let (None, Some((head, carried))) = (reason, self.success.take()) {
            self.ask.plan.upstream.counts.won();
            return Ok(Answer { head, body: self.carry(carried), story });
        }
        let last = self.last.take().map(|(head, carried)| (head, self.carry(carried)));
        Err(Failed { reason: reason.unwrap_or(Reason::AllFailed), last, story })
    }

    fn carry(&self, carried: Carried) -> AnswerBody {
        match carried {
            Carried::Whole(bytes) => AnswerBody::Whole(bytes),
            Carried::Coming(incoming, occupied) => {
                let deadline = (self.deadline < Nanos::NEVER).then(|| self.engine.timer.sleep_until(self.deadline));
                AnswerBody::Coming(Box::new(Coming { incoming, deadline, _occupied: occupied }))
            }
        }
    }

    fn counted(&mut self, end: CallEnd) {
        self.counted = true;
        self.ask.plan.counts.ended(end);
    }
}

impl Drop for Journey<'_> {
    fn drop(&mut self) {
        if !self.counted {
            self.counted(CallEnd::Gone);
        }
    }
}
