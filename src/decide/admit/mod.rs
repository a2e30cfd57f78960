//! Whether a call may go to its upstream now, waits for a place, or is refused.
//!
//! ```text
//!             arrive ──► rank below the bar? ──► refused at once
//!                              │
//!                        a place free? ──yes──► runs ──► ended: a sample for the limit
//!                              │ no                        │
//!                        in time, and room to wait? ──no──►│ refused at once
//!                              │ yes                       │
//!                           waits ◄──── hand over ─────────┘
//! ```
//!
//! - [`Room`]: places and who is in them, for all threads without a lock
//! - [`Adaptive`]: how many places there should be, from how long things take
//! - `line`: who waits, in which order, and for how long
//! - `bar`: below which priority calls are refused at once
//! - `ghosts`: what was given up, and may still be at work
//!
//! [`Admission`] puts them together. A call that a free place takes in touches the [`Room`] alone.

mod bar;
mod ghosts;
pub mod limit;
mod line;
#[cfg(test)]
mod oracle;
mod pulse;
mod room;
mod silence;
mod terms;
#[cfg(test)]
mod tests;
mod usual;

use std::fmt;
use std::sync::Arc;

use self::bar::Bar;
use self::ghosts::Ghosts;
pub use self::limit::Adaptive;
use self::line::Line;
pub use self::pulse::{Lost, Pulse};
pub use self::room::Room;
use self::silence::Silence;
pub use self::terms::{LimitTerms, Terms};
use self::usual::{Flow, Usual};
use super::Nanos;

/// How much a call matters. Under pressure the lowest go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Work that can be done another time.
    Low,
    /// What nobody has said anything of.
    #[default]
    Normal,
    /// Somebody waits for it.
    High,
    /// The service is down if this is.
    Critical,
}

impl Priority {
    /// From the lowest to the highest.
    pub const ALL: [Self; 4] = [Self::Low, Self::Normal, Self::High, Self::Critical];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }

    /// Its place in [`Self::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// Why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// More comes than the upstream can take, and others matter more.
    Shed,
    /// There is no place, and those who wait are as many as can have one soon.
    Full,
    /// It could not be answered in time.
    Late,
    /// It has waited for as long as one may.
    Waited,
    /// The caller has used up its own rate.
    Rate,
    /// The upstream has failed too often of late.
    Broken,
    /// The upstream refuses a part of its calls, so that part is not sent.
    Throttled,
}

impl Why {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Shed, Self::Full, Self::Late, Self::Waited, Self::Rate, Self::Broken, Self::Throttled];

    /// In a word, for metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shed => "shed",
            Self::Full => "full",
            Self::Late => "late",
            Self::Waited => "waited",
            Self::Rate => "rate",
            Self::Broken => "broken",
            Self::Throttled => "throttled",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A call is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub why: Why,
    /// After so long it may be worth another try.
    pub retry_after: Nanos,
}

/// What a call tells of itself.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When its answer is due; [`Nanos::NEVER`] if nobody says.
    pub deadline: Nanos,
    /// How much it matters.
    pub priority: Priority,
    /// Anything that spreads calls evenly: of equal priorities the bar lets those with a high one in first, so that it can
    /// refuse a part of them.
    pub spread: u8,
}

impl Arrival {
    /// What the bar is compared with: by priority, then by spread.
    pub fn rank(&self) -> u32 {
        (self.priority as u32) << 8 | u32::from(self.spread)
    }
}

/// A call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// What becomes of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has a place; who has one gives it back by [`Room::leave`].
    Run,
    /// It waits. [`Admission::overdue`] is to be asked at that time, if it still does.
    Wait(Ticket, Nanos),
    /// It is not taken.
    Refuse(Refusal),
}

/// What becomes of one that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It has a place now.
    Run(Ticket),
    /// It has waited for nothing.
    Refuse(Ticket, Refusal),
}

/// How one that was in has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With an answer: its time says how long answers take.
    Answered,
    /// The upstream said that it is overloaded: 429, 503.
    Overloaded,
    /// It failed otherwise: that says nothing.
    Failed,
}

/// Why one that was in is not waited for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// It has had all the time that there was: answers take so long, at least.
    Late,
    /// Nobody wants it any more.
    Unwanted,
}

/// One that was in.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When it got its place.
    pub began: Nanos,
    /// How many were in then, itself included.
    pub beside: u32,
    /// How late our own process was when it found the end of it ([`Pulse::lag`]): that part of the time is ours.
    pub lag: Nanos,
    /// How long its answer lay there unread, because its caller did not ask for more of it.
    pub idle: Nanos,
}

/// While ghosts have the places, one more is let in this often: while nobody was ever answered, and once it is known how
/// long that takes, if that is less. Twenty a second are next to no load.
const TRY: Nanos = Nanos::from_millis(5);
const TRY_KNOWN: Nanos = Nanos::from_millis(50);
/// A sample is left out if its caller's reading took more than one part in N of the response time.
const IDLE_PART: u64 = 8;

/// Everything about those that do not get in at once, and about the limit. One for each upstream.
#[derive(Debug)]
pub struct Admission {
    room: Arc<Room>,
    limit: Option<Adaptive>,
    usual: Usual,
    line: Line,
    bar: Bar,
    ghosts: Ghosts,
    silence: Silence,
    /// The pauses of our own process, together.
    paused: Nanos,
    /// When a call was let in though all places are those of ghosts.
    tried: Nanos,
}

impl Admission {
    /// Nobody is in.
    pub fn new(terms: &Terms, now: Nanos) -> Self {
        let (limit, places) = match &terms.limit {
            LimitTerms::Fixed(places) => (None, *places),
            LimitTerms::Adaptive(options) => {
                let adaptive = Adaptive::new(options.clone(), now);
                let places = adaptive.limit();
                (Some(adaptive), places)
            }
        };
        let line = Line::new(terms.patience, terms.haste, terms.queue);
        Self {
            room: Arc::new(Room::new(places)),
            limit,
            usual: Usual::new(now),
            line,
            bar: Bar::new(now),
            ghosts: Ghosts::default(),
            silence: Silence::new(now),
            paused: Nanos::ZERO,
            tried: now,
        }
    }

    /// What all threads look at.
    pub fn room(&self) -> &Arc<Room> {
        &self.room
    }

    /// The limit's own knowledge, if it is found out.
    pub fn adaptive(&self) -> Option<&Adaptive> {
        self.limit.as_ref()
    }

    /// The process that decides has lost so much time by its own lateness, ever ([`Lost`]).
    pub fn paused(&mut self, ever: Nanos) {
        self.paused = self.paused.max(ever);
    }

    /// A call that did not get in by [`Room::enter`]. `actions` get what becomes of others by it.
    pub fn arrive(&mut self, now: Nanos, call: &Arrival, actions: &mut Vec<Action>) -> Verdict {
        let flow = self.flow(now);
        self.bar.set(now, &self.room, &flow, self.line.is_overloaded());
        if self.is_haunted(now, call, &flow) {
            self.tried = now;
            self.room.force();
            return Verdict::Run;
        }
        if self.room.sheds(call.rank()) {
            return Verdict::Refuse(Refusal { why: Why::Shed, retry_after: self.retry_after(&flow) });
        }
        self.line.drop_overdue(now, &flow, self.too_many(), &self.bar, actions);
        let verdict = self.line.arrive(now, call, &flow, &self.room, &self.bar, actions);
        self.tell_room();
        verdict
    }

    /// One that was in has ended, and has given its place back by [`Room::leave`]. May be left out for some, and for
    /// those that the room [spares](Room::spares).
    pub fn ended(&mut self, now: Nanos, sample: &Sample, end: End, actions: &mut Vec<Action>) {
        let took = self.took(now, sample);
        if end == End::Answered {
            if let Some(took) = took {
                self.usual.took(now, took);
            }
            self.room.give_back(self.ghosts.answered(now, sample.began));
        }
        let took = match end {
            End::Answered => took,
            End::Overloaded => Some(Nanos::NEVER),
            End::Failed => None,
        };
        self.learn(now, sample, took, false);
        self.hand_over(now, actions);
    }

    /// One that was in is cancelled. It gives its place back by this, and not by [`Room::leave`].
    pub fn given_up(&mut self, now: Nanos, sample: &Sample, why: GivenUp, actions: &mut Vec<Action>) {
        // Where the limit was set by somebody it is one of attempts of ours, whatever the upstream makes of them.
        let free = if self.limit.is_some() { self.ghosts.add(sample.began) } else { 1 };
        let took = self.took(now, sample);
        self.room.give_back(free);
        self.room.gave_up();
        self.learn(now, sample, took.filter(|_| why == GivenUp::Late), true);
        self.hand_over(now, actions);
    }

    /// How long one has been in; what our own process or a stall of the upstream's host has added is not its time. None
    /// if its caller read it slowly: that says nothing of the upstream.
    fn took(&mut self, now: Nanos, sample: &Sample) -> Option<Nanos> {
        let _ = self.flow(now);
        let silent = self.silence.since(sample.began - self.paused);
        let all = now - sample.began;
        (sample.idle.0 <= all.0 / IDLE_PART).then(|| all - sample.lag - silent)
    }

    fn learn(&mut self, now: Nanos, sample: &Sample, took: Option<Nanos>, late: bool) {
        if let (Some(limit), Some(took)) = (&mut self.limit, took) {
            limit.learn(now, sample, took, late, &self.room);
            self.room.set_limit(limit.limit());
        }
    }

    /// Gives free places to those that wait.
    pub fn hand_over(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let flow = self.flow(now);
        self.bar.set(now, &self.room, &flow, self.line.is_overloaded());
        self.line.drop_overdue(now, &flow, self.too_many(), &self.bar, actions);
        while self.line.len() > 0 && self.room.take() {
            match self.line.next(now, &flow, self.room.bar() > 0) {
                Some(ticket) => actions.push(Action::Run(ticket)),
                None => self.room.give_back(1),
            }
        }
        self.tell_room();
    }

    /// Looks at one that waits: a refusal, or when to look again; none if it waits no more.
    pub fn overdue(&mut self, now: Nanos, ticket: Ticket) -> Option<Result<Nanos, Refusal>> {
        let flow = self.flow(now);
        let found = self.line.overdue(now, ticket, &flow, &self.bar);
        self.tell_room();
        found
    }

    /// One that waits does not want to any more.
    pub fn withdraw(&mut self, ticket: Ticket) {
        self.line.withdraw(ticket);
        self.tell_room();
    }

    /// Whether it is time to find out, by this call, if the upstream is still at work on what was given up.
    fn is_haunted(&self, now: Nanos, call: &Arrival, flow: &Flow) -> bool {
        let ghosts = self.ghosts.len() as u32;
        let every = if flow.service == Nanos::ZERO { TRY } else { flow.service.max(TRY_KNOWN) };
        // A call whose own time is over before an answer can be there would find out nothing.
        let in_time = call.deadline - now > flow.service;
        ghosts > 0 && ghosts * 2 >= self.room.limit() && in_time && now - self.tried >= every
    }

    /// What a refusal by anybody else should name: about how long it takes until things have moved on.
    fn retry_after(&self, flow: &Flow) -> Nanos {
        Nanos::SECOND.max(Nanos(flow.service.0.saturating_mul(2)))
    }

    fn too_many(&self) -> u32 {
        self.room.in_flight().saturating_sub(self.room.limit())
    }

    fn flow(&mut self, now: Nanos) -> Flow {
        let own = now - self.paused;
        self.silence.look(own, self.room.left(), self.room.in_flight(), &self.usual);
        self.line.lost(self.paused + self.silence.forgiven() + self.silence.lasts(own, &self.usual));
        self.usual.count(self.line.own(now), &self.room);
        self.usual.flow(self.room.limit())
    }

    fn tell_room(&self) {
        self.room.set_waiting(self.line.len());
    }
}
