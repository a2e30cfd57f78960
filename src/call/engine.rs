//! A call's journey: does what [`Hedge`] decides, until there is an answer.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use http::response::Parts;

use super::answer::{Answer, AnswerBody, Failed, Reason};
use super::ask::Ask;
use super::attempt::{Brought, Carried, Launched, attempt};
use super::counts::CallEnd;
use super::entry::{Entry, Extras};
use super::headers::Headers;
use super::places::{Fate, Place};
use super::plan::Plan;
use super::story::{End, Story};
use super::upload::{Owes, watched};
use super::upstream::Term;
use crate::decide::Nanos;
use crate::decide::admit::{self, Arrival, GivenUp, Priority, Refusal};
use crate::decide::budget::Limitless;
use crate::decide::dice::Dice;
use crate::decide::hedge::{Action, Event, Hedge, Replay, Verdict, Why};
use crate::decide::policy::{Failure, Kind};
use crate::http::client::{Client, OutBody};
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
    headers: Headers,
}

impl Engine {
    /// Calls go through `client`; `timer` is the same event loop's. Backoffs are drawn from dice of this seed.
    pub fn new(client: Client, timer: Timer, seed: u64) -> Self {
        let shared = Shared { seed, calls: Cell::new(0), buffers: RefCell::default(), headers: Headers::default() };
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

    /// The next call's [`Ask::spread`]: all values come equally often, and no two neighbours are alike.
    pub fn spread(&self) -> u8 {
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        (self.shared.calls.get().wrapping_mul(GOLDEN) >> 56) as u8
    }

    /// Whether a call is refused at once, before its body is there: more come than the upstream can take, and others
    /// matter more. It is counted, and is over.
    pub fn turns_away(&self, plan: &Plan, priority: Priority, spread: u8, deadline: Nanos) -> Option<Failed> {
        let places = plan.upstream.places()?;
        let (now, arrival) = (self.timer.now(), Arrival { deadline, priority, spread });
        let refusal = places.turn_away(self.timer.clock(), now, &arrival)?;
        self.next_number();
        Some(self.refuse(plan, priority, now, refusal))
    }

    /// The end of a call that is not made. It is counted.
    pub fn refuse(&self, plan: &Plan, priority: Priority, began: Nanos, refusal: Refusal) -> Failed {
        plan.counts.refused(refusal.why, priority);
        let story = Story { began, refused: Some((refusal, priority)), ..Story::default() };
        Failed { reason: Reason::Refused(refusal), last: None, story }
    }

    fn next_number(&self) -> u64 {
        self.shared.calls.replace(self.shared.calls.get().wrapping_add(1))
    }

    /// Makes a call. Dropping the future cancels all its attempts.
    ///
    /// # Errors
    /// [`Failed`], when there is no success; it may hold an answer all the same.
    pub async fn call(&self, ask: &Ask<'_>, body: OutBody) -> Result<Answer, Failed> {
        self.call_telling(ask, body, &|_| {}).await
    }

    /// The same; if the future is dropped before the call's end, `gone` hears what has happened so far.
    ///
    /// # Errors
    /// See [`Self::call`].
    pub async fn call_telling(&self, ask: &Ask<'_>, body: OutBody, gone: &dyn Fn(Story)) -> Result<Answer, Failed> {
        let (number, began) = (self.next_number(), self.timer.now());
        let deadline = (began + ask.plan.policy.deadline).min(ask.deadline);
        let roll = || 1.0 - Dice::new(!self.shared.seed, number).unit();
        let entry = match Entry::of(ask, &self.timer, (began, deadline), roll, gone).await {
            Ok(entry) => entry,
            Err(refusal) if refusal.why == admit::Why::Late && self.timer.now() >= deadline => {
                ask.plan.counts.ended(CallEnd::Late);
                return Err(Failed { reason: Reason::Late, last: None, story: Story { began, ..Story::default() } });
            }
            Err(refusal) => return Err(self.refuse(ask.plan, ask.priority, began, refusal)),
        };
        let mut actions = self.shared.buffers.borrow_mut().pop().unwrap_or_default();
        let mut journey = Journey::begin(self, ask, body, (number, began, deadline), entry, gone, &mut actions);
        // The first attempt lies here from the start, unlike the others: an attempt is large, and nearly all calls have
        // one. To be moved into its place later would cost as much as all that is decided about it.
        let (course, parcel) = (Course::default(), Cell::new(None));
        let mut first = pin!(async {
            let Some(launched) = parcel.take() else { return Brought::nothing() };
            let mut first = pin!(attempt(launched));
            poll_fn(|cx| if course.is_cancelled() { Poll::Ready(Brought::nothing()) } else { first.as_mut().poll(cx) })
                .await
        });
        let mut others = Vec::new();
        let mut alarm = pin!(None);
        let verdict = loop {
            let mut verdict = None;
            for action in actions.drain(..) {
                match action {
                    Action::Launch { attempt: 0, why } => {
                        parcel.set(Some(journey.launch(0, why)));
                        course.0.set(Way::Runs);
                    }
                    Action::Launch { attempt: number, why } => {
                        others.push((number, Box::pin(attempt(journey.launch(number, why)))));
                    }
                    Action::Cancel(0) => {
                        course.0.set(Way::Cancelled);
                        // It lets go of all that it has.
                        let _ = first.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                        course.0.set(Way::Rests);
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
                if course.0.get() == Way::Runs
                    && let Poll::Ready(brought) = first.as_mut().poll(cx)
                {
                    course.0.set(Way::Rests);
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

/// What the first attempt does.
#[derive(Default)]
struct Course(Cell<Way>);

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Way {
    /// Nothing: it is not there yet, or not any more.
    #[default]
    Rests,
    Runs,
    /// It is to let go of all that it has.
    Cancelled,
}

impl Course {
    fn is_cancelled(&self) -> bool {
        self.0.get() == Way::Cancelled
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

/// One call on its way.
struct Journey<'a> {
    engine: &'a Engine,
    ask: &'a Ask<'a>,
    hedge: Hedge<'a>,
    deadline: Nanos,
    /// When the last event was. What is done about it is done then: an attempt that has its time by the decision's
    /// clock must have it by all others.
    now: Nanos,
    body: OutBody,
    entry: Entry,
    /// Places of attempts that are about to be launched.
    taken: Vec<Place>,
    /// Of a body that its caller sends meanwhile.
    upload: Option<Owes>,
    /// The hosts that attempts of this call have gone to, as bits.
    tried: u64,
    story: Story,
    success: Option<(Parts, Carried)>,
    last: Option<(Parts, Carried)>,
    counted: bool,
    /// Who hears of a call that nobody waits for any more.
    gone: &'a dyn Fn(Story),
}

impl<'a> Journey<'a> {
    fn begin(
        engine: &'a Engine,
        ask: &'a Ask<'a>,
        body: OutBody,
        (number, began, deadline): (u64, Nanos, Nanos),
        entry: Entry,
        gone: &'a dyn Fn(Story),
        actions: &mut Vec<Action>,
    ) -> Self {
        let plan = ask.plan;
        // The stages count from here: who has waited for a place wants no copies of what was not yet sent.
        let now = if entry.waited { engine.timer.now() } else { began };
        plan.began(now);
        let replay = match body {
            OutBody::Stream(_) => Replay::Never,
            _ if ask.upgrade => Replay::Unsent,
            _ => Replay::of(plan.policy.repeat, ask.method.as_str()),
        };
        let known = |share| plan.upstream.quantile(now, share);
        let hedge =
            Hedge::start(&plan.policy, now, deadline, replay, known, Dice::new(engine.shared.seed, number), actions);
        let story = Story { began, ..Story::default() };
        let taken = Vec::new();
        Self {
            engine,
            ask,
            hedge,
            deadline,
            now,
            body,
            entry,
            taken,
            upload: None,
            tried: 0,
            story,
            success: None,
            last: None,
            counted: false,
            gone,
        }
    }

    /// Sends one more copy.
    fn launch(&mut self, number: u32, why: Why) -> Launched<'a> {
        let (engine, ask, now) = (self.engine, self.ask, self.now);
        let policy = &ask.plan.policy;
        // A little less is all: who counts from when the caller asked is a little ahead of us.
        let missing = self.story.began + policy.deadline - self.deadline;
        let all_the_time = number == 0 && missing <= Nanos(policy.deadline.0 / 10);
        let blamed_at = if all_the_time { self.deadline } else { Nanos::NEVER };
        let term = Term { late_at: now + policy.attempt_timeout, blamed_at, deadline: self.deadline };
        let leave = match number {
            0 => (self.entry.upstream.take(), self.entry.pass.take()),
            _ => (self.taken.pop(), None),
        };
        let mut occupied = ask.plan.upstream.occupy(&engine.timer, now, term, self.tried, why, leave);
        self.tried |= 1 << occupied.host;
        debug_assert_eq!(self.story.attempts.len(), number as usize, "attempts are numbered as they are launched");
        self.story.launched(why, occupied.origin(), now);
        let body = match &self.body {
            OutBody::Empty => OutBody::Empty,
            OutBody::Bytes(bytes) => OutBody::Bytes(bytes.clone()),
            OutBody::Stream(_) => match std::mem::replace(&mut self.body, OutBody::Empty) {
                OutBody::Stream(body) => {
                    let (body, owes) = watched(body);
                    occupied.uploads(owes.clone());
                    self.upload = Some(owes);
                    body
                }
                other => other,
            },
        };
        let left = if self.deadline == Nanos::NEVER { Nanos::NEVER } else { self.deadline - now };
        let headers = &engine.shared.headers;
        let more = headers.list(ask.plan, left, ask.trace.map(|trace| trace.of_attempt(number)));
        Launched { client: &engine.client, headers, ask, body, more, occupied }
    }

    /// An attempt has brought something, or it is time to look.
    fn goes_on(&mut self, event: Option<(u32, Brought)>, actions: &mut Vec<Action>) {
        let now = self.engine.timer.now();
        self.now = now;
        let event = match event {
            None => Event::Tick,
            Some((attempt, Brought::Success(head, carried))) => {
                if attempt == 0 {
                    self.ask.plan.upstream.took(now, now - self.story.launch_of(0));
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
        let (ask, clock, taken) = (self.ask, self.engine.timer.clock(), &mut self.taken);
        match &ask.plan.ledger {
            Some(ledger) => {
                let purse = &mut *ledger.lock().unwrap_or_else(PoisonError::into_inner);
                self.hedge.on(now, event, &mut Extras { purse, ask, clock, taken }, actions);
            }
            None => self.hedge.on(now, event, &mut Extras { purse: &mut Limitless, ask, clock, taken }, actions),
        }
        // An attempt of this call may wait for the very connection that an answer of no use holds.
        let holds =
            |(_, carried): &mut (Parts, Carried)| matches!(carried, Carried::Coming(coming) if coming.is_limited());
        if !actions.iter().any(|action| matches!(action, Action::Answer(_))) {
            drop(self.last.take_if(holds));
        }
    }

    fn cancelled(&mut self, attempt: u32) {
        let now = self.now;
        let late = now - self.story.launch_of(attempt) >= self.ask.plan.policy.attempt_timeout;
        let timeout = match &self.upload {
            Some(upload) if upload.more() => {
                (Kind::Request, "the request's body did not come within the attempt's time")
            }
            _ => (Kind::Timeout, "no answer within the attempt's time"),
        };
        let timeout = End::Failed(Failure::Kind(timeout.0), Some(timeout.1.into()));
        self.story.ended(attempt, now, if late { timeout } else { End::Cancelled });
        if attempt == 0 {
            // It would have taken at least so long.
            self.ask.plan.upstream.took(now, now - self.story.launch_of(0));
        }
    }

    fn suppressed(&mut self) {
        self.ask.plan.counts.suppressed();
        self.story.suppressed += 1;
    }

    #[expect(clippy::result_large_err, reason = "without a success there may be an answer all the same")]
    fn end(&mut self, verdict: Verdict) -> Result<Answer, Failed> {
        let reason = match verdict {
            Verdict::Won(_) => None,
            Verdict::Failed { .. } | Verdict::Gone => Some(Reason::AllFailed),
            Verdict::Late => Some(Reason::Late),
        };
        self.counted(match reason {
            None => CallEnd::Won,
            Some(Reason::AllFailed) => CallEnd::Failed,
            Some(_) => CallEnd::Late,
        });
        if let Some(place) = &mut self.entry.route {
            let fate = match reason {
                Some(Reason::Late) => Fate::GivenUp(GivenUp::Late),
                _ => Fate::Ended(admit::End::Answered),
            };
            place.ends(fate, Nanos::ZERO);
        }
        let success = self.success.take();
        if success.is_some() && reason.is_some() {
            // It came too late to be the answer.
            self.ask.plan.upstream.counts.cancelled();
            self.story.revoke();
        }
        let story = std::mem::take(&mut self.story);
        if let (None, Some((head, carried))) = (reason, success) {
            self.ask.plan.upstream.counts.won();
            return Ok(Answer { head, body: self.carry(carried), story });
        }
        let last = self.last.take().map(|(head, carried)| (head, self.carry(carried)));
        Err(Failed { reason: reason.unwrap_or(Reason::AllFailed), last, story })
    }

    fn carry(&mut self, carried: Carried) -> AnswerBody {
        match carried {
            Carried::Whole(whole) => AnswerBody::whole(whole),
            Carried::Coming(mut coming) => {
                coming.keeps(self.entry.route.take());
                if self.deadline < Nanos::NEVER {
                    coming.ends_with(self.engine.timer.sleep_until(self.deadline));
                }
                AnswerBody::Coming(coming)
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
            let mut story = std::mem::take(&mut self.story);
            story.left(self.engine.timer.now());
            (self.gone)(story);
        }
    }
}
