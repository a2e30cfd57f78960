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
//! - [`Slots`]: places and who is in them, for all threads without a lock
//! - [`AdaptiveLimit`]: how many places there should be, from how long things take
//! - `line`: who waits, in which order, and for how long
//! - `bar`: below which priority calls are refused at once
//! - `ghosts`: what was given up, and may still be at work
//!
//! [`Admission`] puts them together. A call that a free place takes in touches the [`Slots`] alone.

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

use self::bar::ShedThreshold;
use self::ghosts::AbandonedCalls;
pub use self::limit::AdaptiveLimit;
use self::line::CallQueue;
pub use self::pulse::{PauseTotal, Pulse};
pub use self::room::Slots;
use self::silence::StallAllowance;
pub use self::terms::{AdmissionConfig, ConcurrencyLimitConfig};
use self::usual::{ServiceFlow, ServiceRate};
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
pub enum RejectionReason {
    /// More comes than the upstream can take, and others matter more.
    Shed,
    /// There is no place, and those who wait are as many as can have one soon.
    QueueFull,
    /// It could not be answered in time.
    DeadlineExceeded,
    /// It has waited for as long as one may.
    QueueTimeout,
    /// The caller has used up its own rate.
    RateLimited,
    /// The upstream has failed too often of late.
    CircuitOpen,
    /// The upstream refuses a part of its calls, so that part is not sent.
    Throttled,
}

impl RejectionReason {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Shed,
        Self::QueueFull,
        Self::DeadlineExceeded,
        Self::QueueTimeout,
        Self::RateLimited,
        Self::CircuitOpen,
        Self::Throttled,
    ];

    /// In a word, for metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shed => "shed",
            Self::QueueFull => "queue_full",
            Self::DeadlineExceeded => "deadline_too_short",
            Self::QueueTimeout => "queue_timeout",
            Self::RateLimited => "rate_limited",
            Self::CircuitOpen => "circuit_open",
            Self::Throttled => "throttled",
        }
    }
}

impl fmt::Display for RejectionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A call is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Why.
    pub reason: RejectionReason,
    /// After so long it may be worth another try.
    pub retry_after: Nanos,
}

/// What a call tells of itself.
#[derive(Clone, Copy, Debug)]
pub struct CallArrival {
    /// When its answer is due; [`Nanos::NEVER`] if nobody says.
    pub deadline: Nanos,
    /// How much it matters.
    pub priority: Priority,
    /// Anything that spreads calls evenly: of equal priorities the bar lets those with a high one in first, so that it can
    /// refuse a part of them.
    pub spread: u8,
}

impl CallArrival {
    /// What the bar is compared with: by priority, then by spread.
    pub fn rank(&self) -> u32 {
        (self.priority as u32) << 8 | u32::from(self.spread)
    }
}

/// A call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueTicket(pub u64);

/// What becomes of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionVerdict {
    /// It has a place; who has one gives it back by [`Slots::release`].
    Run,
    /// It waits. [`Admission::recheck`] is to be asked at that time, if it still does.
    Wait(QueueTicket, Nanos),
    /// It is not taken.
    Reject(Rejection),
}

/// What becomes of one that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueAction {
    /// It has a place now.
    Run(QueueTicket),
    /// It has waited for nothing.
    Reject(QueueTicket, Rejection),
}

/// How one that was in has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceOutcome {
    /// With an answer: its time says how long answers take.
    Responded,
    /// The upstream said that it is overloaded: 429, 503.
    Overloaded,
    /// It failed otherwise: that says nothing.
    Failed,
}

/// Why one that was in is not waited for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbandonReason {
    /// It has had all the time that there was: answers take so long, at least.
    DeadlineExceeded,
    /// Nobody wants it any more.
    Unwanted,
}

/// One that was in.
#[derive(Clone, Copy, Debug)]
pub struct ServiceSample {
    /// When it got its place.
    pub started: Nanos,
    /// How many were in then, itself included.
    pub in_flight_at_start: u32,
    /// How late our own process was when it found the end of it ([`Pulse::lag`]): that part of the time is ours.
    pub lag: Nanos,
    /// How long its answer lay there unread, because its caller did not ask for more of it.
    pub read_delay: Nanos,
}

/// While ghosts have the places, one more is let in this often: while nobody was ever answered, and once it is known how
/// long that takes, if that is less. Twenty a second are next to no load.
const INITIAL_PROBE_INTERVAL: Nanos = Nanos::from_millis(5);
const MIN_PROBE_INTERVAL: Nanos = Nanos::from_millis(50);
/// A sample is left out if its caller's reading took more than one part in N of the response time.
const MAX_READ_DELAY_DIVISOR: u64 = 8;

/// Everything about those that do not get in at once, and about the limit. One for each upstream.
#[derive(Debug)]
pub struct Admission {
    slots: Arc<Slots>,
    limit: Option<AdaptiveLimit>,
    service_rate: ServiceRate,
    queue: CallQueue,
    shed_threshold: ShedThreshold,
    abandoned: AbandonedCalls,
    stall: StallAllowance,
    /// The pauses of our own process, together.
    total_pause: Nanos,
    /// When a call was let in though all places are those of ghosts.
    probed_at: Nanos,
}

impl Admission {
    /// Nobody is in.
    pub fn new(terms: &AdmissionConfig, now: Nanos) -> Self {
        let (limit, places) = match &terms.limit {
            ConcurrencyLimitConfig::Fixed(places) => (None, *places),
            ConcurrencyLimitConfig::Adaptive(options) => {
                let adaptive = AdaptiveLimit::new(options.clone(), now);
                let places = adaptive.limit();
                (Some(adaptive), places)
            }
        };
        let queue = CallQueue::new(terms.max_queue_wait, terms.overload_queue_wait, terms.max_queued);
        Self {
            slots: Arc::new(Slots::new(places)),
            limit,
            service_rate: ServiceRate::new(now),
            queue,
            shed_threshold: ShedThreshold::new(now),
            abandoned: AbandonedCalls::default(),
            stall: StallAllowance::new(now),
            total_pause: Nanos::ZERO,
            probed_at: now,
        }
    }

    /// What all threads look at.
    pub fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    /// The limit's own knowledge, if it is found out.
    pub fn adaptive(&self) -> Option<&AdaptiveLimit> {
        self.limit.as_ref()
    }

    /// The process that decides has lost so much time by its own lateness, ever ([`PauseTotal`]).
    pub fn set_total_pause(&mut self, ever: Nanos) {
        self.total_pause = self.total_pause.max(ever);
    }

    /// A call that did not get in by [`Slots::try_acquire`]. `actions` get what becomes of others by it.
    pub fn arrive(&mut self, now: Nanos, call: &CallArrival, actions: &mut Vec<QueueAction>) -> AdmissionVerdict {
        let flow = self.flow(now);
        self.shed_threshold.update(now, &self.slots, &flow, self.queue.is_overloaded());
        if self.should_probe(now, call, &flow) {
            self.probed_at = now;
            self.slots.force_acquire();
            return AdmissionVerdict::Run;
        }
        if self.slots.sheds(call.rank()) {
            return AdmissionVerdict::Reject(Rejection {
                reason: RejectionReason::Shed,
                retry_after: self.retry_after(&flow),
            });
        }
        self.queue.reject_overdue(now, &flow, self.excess_in_flight(), &self.shed_threshold, actions);
        let verdict = self.queue.arrive(now, call, &flow, &self.slots, &self.shed_threshold, actions);
        self.publish_waiting();
        verdict
    }

    /// One that was in has ended, and has given its place back by [`Slots::release`]. May be left out for some, and for
    /// those that the room [spares](Slots::can_skip_sample).
    pub fn ended(&mut self, now: Nanos, sample: &ServiceSample, end: ServiceOutcome, actions: &mut Vec<QueueAction>) {
        let took = self.service_time(now, sample);
        if end == ServiceOutcome::Responded {
            if let Some(took) = took {
                self.service_rate.record(now, took);
            }
            self.slots.release_many(self.abandoned.responded(now, sample.started));
        }
        let took = match end {
            ServiceOutcome::Responded => took,
            ServiceOutcome::Overloaded => Some(Nanos::NEVER),
            ServiceOutcome::Failed => None,
        };
        self.learn(now, sample, took, false);
        self.grant_slots(now, actions);
    }

    /// One that was in is cancelled. It gives its place back by this, and not by [`Slots::release`].
    pub fn abandoned(
        &mut self,
        now: Nanos,
        sample: &ServiceSample,
        why: AbandonReason,
        actions: &mut Vec<QueueAction>,
    ) {
        // Where the limit was set by somebody it is one of attempts of ours, whatever the upstream makes of them.
        let free = if self.limit.is_some() { self.abandoned.add(sample.started) } else { 1 };
        let took = self.service_time(now, sample);
        self.slots.release_many(free);
        self.slots.count_abandoned();
        self.learn(now, sample, took.filter(|_| why == AbandonReason::DeadlineExceeded), true);
        self.grant_slots(now, actions);
    }

    /// How long one has been in; what our own process or a stall of the upstream's host has added is not its time. None
    /// if its caller read it slowly: that says nothing of the upstream.
    fn service_time(&mut self, now: Nanos, sample: &ServiceSample) -> Option<Nanos> {
        let _ = self.flow(now);
        let silent = self.stall.forgiven_since(sample.started - self.total_pause);
        let all = now - sample.started;
        (sample.read_delay.0 <= all.0 / MAX_READ_DELAY_DIVISOR).then(|| all - sample.lag - silent)
    }

    fn learn(&mut self, now: Nanos, sample: &ServiceSample, took: Option<Nanos>, late: bool) {
        if let (Some(limit), Some(took)) = (&mut self.limit, took) {
            limit.learn(now, sample, took, late, &self.slots);
            self.slots.set_limit(limit.limit());
        }
    }

    /// Gives free places to those that wait.
    pub fn grant_slots(&mut self, now: Nanos, actions: &mut Vec<QueueAction>) {
        let flow = self.flow(now);
        self.shed_threshold.update(now, &self.slots, &flow, self.queue.is_overloaded());
        self.queue.reject_overdue(now, &flow, self.excess_in_flight(), &self.shed_threshold, actions);
        while self.queue.len() > 0 && self.slots.try_take() {
            match self.queue.pop_next(now, &flow, self.slots.shed_threshold() > 0) {
                Some(ticket) => actions.push(QueueAction::Run(ticket)),
                None => self.slots.release_many(1),
            }
        }
        self.publish_waiting();
    }

    /// Looks at one that waits: a refusal, or when to look again; none if it waits no more.
    pub fn recheck(&mut self, now: Nanos, ticket: QueueTicket) -> Option<Result<Nanos, Rejection>> {
        let flow = self.flow(now);
        let found = self.queue.recheck(now, ticket, &flow, &self.shed_threshold);
        self.publish_waiting();
        found
    }

    /// One that waits does not want to any more.
    pub fn withdraw(&mut self, ticket: QueueTicket) {
        self.queue.withdraw(ticket);
        self.publish_waiting();
    }

    /// Whether it is time to find out, by this call, if the upstream is still at work on what was given up.
    fn should_probe(&self, now: Nanos, call: &CallArrival, flow: &ServiceFlow) -> bool {
        let ghosts = self.abandoned.len() as u32;
        let every = if flow.service_time == Nanos::ZERO {
            INITIAL_PROBE_INTERVAL
        } else {
            flow.service_time.max(MIN_PROBE_INTERVAL)
        };
        // A call whose own time is over before an answer can be there would find out nothing.
        let in_time = call.deadline - now > flow.service_time;
        ghosts > 0 && ghosts * 2 >= self.slots.limit() && in_time && now - self.probed_at >= every
    }

    /// What a refusal by anybody else should name: about how long it takes until things have moved on.
    fn retry_after(&self, flow: &ServiceFlow) -> Nanos {
        Nanos::SECOND.max(Nanos(flow.service_time.0.saturating_mul(2)))
    }

    fn excess_in_flight(&self) -> u32 {
        self.slots.in_flight().saturating_sub(self.slots.limit())
    }

    fn flow(&mut self, now: Nanos) -> ServiceFlow {
        let own = now - self.total_pause;
        self.stall.observe(own, self.slots.departures(), self.slots.in_flight(), &self.service_rate);
        self.queue
            .exclude_time(self.total_pause + self.stall.forgiven() + self.stall.current_stall(own, &self.service_rate));
        self.service_rate.update(self.queue.active_time(now), &self.slots);
        self.service_rate.flow(self.slots.limit())
    }

    fn publish_waiting(&self) {
        self.slots.set_waiting(self.queue.len());
    }
}
