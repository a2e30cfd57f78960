//! A pile of jobs, a ring of keys: which job is sent now, by which key, and what becomes of it.
//!
//! ```text
//!             Submitted
//!                 │
//!                 ▼      a key may send, and it arrives in time
//!   ┌────────► queued ──────────────────────────────► leased ──► done
//!   │             │                                      │
//!   │ due, and    │ no longer                            │ refused, failed,
//!   │ the budget  │ in time      the next try would      │ no answer in time
//!   │ allows it   ▼              be too late             ▼
//!   │          expired ◄─────────────────────────────── ? ──► graveyard
//!   │             │ may be renewed                       │    its tries are used up,
//!   │             │                                      │    or another would not help
//!   └─────────────┴─────────────── dead letters ◄────────┘
//! ```
//!
//! [`Dispatch`] decides; an edge moves bytes and keeps rows. The contract:
//!
//! - The edge tells what happens with [`Dispatch::on`], and does what it is told, in order. Each job that was submitted
//!   gets exactly one of [`Action::Done`], [`Action::Expire`], [`Action::Bury`], or is [withdrawn](Event::Withdrawn).
//! - What has to be on disk before a request leaves is told before its [`Action::Send`]; that a job is sent has to be,
//!   too, if a crash is to be told from a job that waits. After one, such jobs are submitted with `maybe_sent`.
//! - [`Event::Left`] is said when the request's bytes go out, not when a connection is looked for: the bound on the way
//!   in counts from there. Until then nothing else that depends on its arrival is sent by that key.
//! - Each [`Action::Send`] is followed by one [`Event::Answered`] or [`Event::Failed`] with its number, unless it was
//!   cancelled. What is said of another attempt is ignored.
//! - A timer: there is an [`Event::Tick`] at the last [`Action::WakeAt`], or as soon after it as the clock allows. Ticks
//!   too many do no harm; a late one only costs time.
//!
//! Who goes first: jobs stand in line by deadline or as they came, and the first goes by the key that can send it first.
//! A job that is too heavy for the moment is waited for: else light ones would pass it for ever. A job that failed
//! keeps its place. A job that names a key stands in that key's own line (`turns`), in the way of nobody but those who
//! come after it and could go by that key.
//!
//! Whose fault it is: a refusal for rate and a nonce that was overtaken are about the key, which holds still for as long
//! as it was told; the job may go by another one. A key that is blocked or not known is used no more, until somebody
//! says that it can be. 503 with a Retry-After is about the service, and all keys hold still. What was never sent costs
//! no try.

mod fate;
#[cfg(test)]
mod fates;
mod keyring;
#[cfg(test)]
mod life;
#[cfg(test)]
mod lines;
mod owned;
mod queue;
#[cfg(test)]
mod rates;
mod rules;
mod turns;
#[cfg(test)]
mod world;

use std::collections::VecDeque;

use self::keyring::Keyring;
use self::queue::{Job, Queue, State};
pub use self::rules::{MaybeSent, Order, Renew, Rules};
use self::turns::Heads;
use super::Nanos;
use super::budget::Ledger;
use super::dice::Dice;
use super::feedback::Feedback;
use super::policy::Kind;
use super::window::History;

/// A job's number, given by the edge.
pub type JobId = u64;

/// What is to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// It is not sent if it could arrive after this; NEVER: it does not expire.
    pub expires: Nanos,
    /// What it counts in windows that go by weight.
    pub weight: u64,
    /// Higher goes first.
    pub priority: i32,
    /// Tries that are used up already.
    pub tries: u32,
    /// It was on its way when an earlier process ended, and nobody knows what became of it.
    pub maybe_sent: bool,
    /// The one key that may send it; None: any. As long as that key is of no use it waits, and if there is no such key
    /// for ever: who knows better withdraws it.
    pub key: Option<u32>,
}

impl Default for Asked {
    fn default() -> Self {
        Self { expires: Nanos::NEVER, weight: 1, priority: 0, tries: 0, maybe_sent: false, key: None }
    }
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A job is there; one whose number is taken is ignored.
    Submitted(JobId, Asked),
    /// This attempt's bytes go out.
    Left(JobId, u32),
    /// This attempt was answered.
    Answered(JobId, u32, Meaning, &'a Feedback),
    /// This attempt has no answer, and will have none.
    Failed(JobId, u32, Kind),
    /// The job is not wanted any more; one that is leased is done with, whatever comes of it.
    Withdrawn(JobId),
    /// This key can be used again.
    Usable(u32),
    /// Time has passed.
    Tick,
}

/// What an answer means. The edge knows the service; [`Meaning::of`] is the custom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// It is done.
    Done,
    /// Too many requests; the key may send later.
    Refused,
    /// Its nonce was not above the last one's.
    Overtaken,
    /// The service does not know the key.
    Unauthorized,
    /// The service does not want to hear of the key again.
    Blocked,
    /// It failed, with this status.
    Failed(u16),
}

impl Meaning {
    /// By status alone: 2xx, 401 and 429 are what they say, all others have failed.
    pub const fn of(status: u16) -> Self {
        match status {
            200..=299 => Self::Done,
            401 => Self::Unauthorized,
            429 => Self::Refused,
            _ => Self::Failed(status),
        }
    }
}

/// Why a job did not get on, or a key is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The answer meant this.
    Answer(Meaning),
    /// There was no answer.
    Kind(Kind),
    /// It weighs more than a window holds.
    TooHeavy,
    /// It may have been sent before a crash, and is not to be sent twice.
    MaybeSent,
    /// Its time went by before it was ever sent.
    Late,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Keep this as the key's high-water mark of nonces.
    Keep {
        /// Which key.
        key: u32,
        /// No nonce above it will be sent before the next mark.
        high_water: u64,
    },
    /// Send it.
    Send {
        /// What.
        job: JobId,
        /// With which key.
        key: u32,
        /// Its number among the job's.
        attempt: u32,
        /// The number to send with it.
        nonce: u64,
        /// An earlier attempt may have been done.
        again: bool,
    },
    /// Drop this attempt, whose time is up.
    Cancel {
        /// Of which job.
        job: JobId,
        /// Its number.
        attempt: u32,
    },
    /// It is done. The end.
    Done(JobId),
    /// It is among the dead letters.
    Dead {
        /// Which.
        job: JobId,
        /// Until then at least.
        until: Nanos,
        /// What it died of.
        why: Why,
    },
    /// It is due, and queued once more.
    Requeue(JobId),
    /// It has a new TTL.
    Renew {
        /// Which.
        job: JobId,
        /// When that is over.
        expires: Nanos,
    },
    /// It expired. The end.
    Expire {
        /// Which.
        job: JobId,
        /// What it died of before, if it was sent at all.
        why: Why,
    },
    /// It goes to the graveyard. The end.
    Bury {
        /// Which.
        job: JobId,
        /// What it died of.
        why: Why,
    },
    /// This key is used no more.
    Unusable {
        /// Which.
        key: u32,
        /// What was said of it.
        why: Why,
    },
    /// Send an [`Event::Tick`] then, and not at the instant that was named before; it is never [`Nanos::NEVER`].
    WakeAt(Nanos),
}

/// Jobs and keys: events and the time go in, actions come out.
///
/// An event costs the logarithm of the jobs and of the keys, and what the windows of one key cost. Time may stand still
/// between two events; one before the latest counts as the latest.
#[derive(Clone, Debug)]
pub struct Dispatch {
    rules: Rules,
    keys: Keyring,
    queue: Queue,
    heads: Heads,
    ledger: Option<Ledger>,
    seed: u64,
    /// All attempts in the order of sending; some behind the first have ended.
    out: VecDeque<(Nanos, JobId, u32)>,
    leased: usize,
    armed: Nanos,
    latest: Nanos,
}

impl Dispatch {
    /// No jobs yet, and so many keys, numbered from 0. The seed spreads the waits of jobs that failed together.
    pub fn new(rules: Rules, keys: u32, seed: u64) -> Self {
        Self {
            keys: Keyring::new(&rules, keys),
            queue: Queue::new(keys),
            heads: Heads::new(keys),
            ledger: rules.budget.map(Ledger::new),
            seed,
            out: VecDeque::new(),
            leased: 0,
            armed: Nanos::NEVER,
            latest: Nanos::ZERO,
            rules,
        }
    }

    /// Goes on with a key, `since` after its history was written ([`super::window::Windows::resume`]); nonces are above
    /// the mark. To be called before any event.
    pub fn resume(&mut self, now: Nanos, key: u32, high_water: u64, history: &History, since: Nanos) {
        self.keys.with(key, |key| {
            key.nonces = super::nonce::Nonces::above(high_water);
            key.windows.resume(now, history, since);
        });
    }

    /// What a key leaves to whoever goes on with it.
    pub fn history(&mut self, now: Nanos, key: u32) -> Option<History> {
        self.keys.with(key, |key| key.windows.history(now))
    }

    /// How many jobs are queued, dead letters, and leased.
    pub fn sizes(&self) -> (usize, usize, usize) {
        let (queued, dead, _) = self.queue.sizes();
        (queued, dead, self.leased)
    }

    /// How many jobs are queued that any key may send, or only this one.
    pub fn queued(&self, key: Option<u32>) -> usize {
        self.queue.length(key)
    }

    /// How many keys can be used.
    pub fn usable_keys(&self) -> usize {
        self.keys.usable()
    }

    /// How many requests per second a key may send, as far as its limits are believed; 0 if it is of no use.
    pub fn allowed_per_s(&self, key: u32) -> f64 {
        self.keys.get(key).filter(|key| key.usable).map_or(0.0, |key| key.windows.rate_per_s())
    }

    /// The bound on the way in that holds now; None: only answers tell.
    pub fn way_in(&self) -> Option<Nanos> {
        self.keys.bound()
    }

    /// Something happened, or time has passed.
    pub fn on(&mut self, now: Nanos, event: Event<'_>, actions: &mut Vec<Action>) {
        self.latest = self.latest.max(now);
        let now = self.latest;
        match event {
            Event::Submitted(id, asked) => self.submit(now, id, asked, actions),
            Event::Left(id, attempt) => {
                if let Some(State::Leased { key, slot, .. }) = self.lease(id, attempt) {
                    self.keys.with(key, |key| key.windows.left(slot, now));
                }
            }
            Event::Answered(id, attempt, meaning, feedback) => {
                self.answered(now, (id, attempt), meaning, feedback, actions);
            }
            Event::Failed(id, attempt, kind) => self.failed(now, (id, attempt), kind, actions),
            Event::Withdrawn(id) => self.withdraw(now, id),
            Event::Usable(key) => drop(self.keys.with(key, |key| key.usable = true)),
            Event::Tick => self.armed = Nanos::NEVER,
        }
        self.pass(now, actions);
        self.arm(now, actions);
    }

    fn submit(&mut self, now: Nanos, id: JobId, asked: Asked, actions: &mut Vec<Action>) {
        if !self.queue.submit(now, id, asked, &self.rules) {
            return;
        }
        let fits = self.keys.get(0).is_none_or(|key| key.windows.fits(asked.weight));
        if !fits {
            self.bury(id, Why::TooHeavy, actions);
        } else if asked.maybe_sent && self.rules.maybe_sent == MaybeSent::Bury {
            self.bury(id, Why::MaybeSent, actions);
        } else if let Some(ledger) = &mut self.ledger {
            ledger.call(now);
        }
    }

    fn bury(&mut self, id: JobId, why: Why, actions: &mut Vec<Action>) {
        if self.queue.take(id).is_some() {
            actions.push(Action::Bury { job: id, why });
        }
    }

    fn withdraw(&mut self, now: Nanos, id: JobId) {
        if let Some(State::Leased { key, slot, .. }) = self.queue.take(id).map(|job| job.state) {
            self.leased -= 1;
            self.keys.with(key, |key| key.windows.gave_up(slot, now));
        }
    }

    fn lease(&self, id: JobId, attempt: u32) -> Option<State> {
        let job = self.queue.get(id).filter(|job| job.attempts == attempt)?;
        Some(job.state).filter(|state| matches!(state, State::Leased { .. }))
    }

    /// What has become due by now, and what can be sent.
    fn pass(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        while let Some((sent, id, attempt)) = self.out.front().copied() {
            if self.lease(id, attempt).is_some() {
                if now - sent < self.rules.attempt_timeout {
                    self.keys.way_in.out_for(now - sent);
                    break;
                }
                actions.push(Action::Cancel { job: id, attempt });
                self.failed(now, (id, attempt), Kind::Timeout, actions);
            }
            self.out.pop_front();
        }
        self.keys.set_way_in(now);
        while let Some((until, id)) = self.queue.first_dead()
            && until <= now
        {
            self.requeue(now, id, actions);
        }
        while let Some((expires, id)) = self.queue.first_expiring()
            && self.is_late(now, expires)
        {
            let Some(job) = self.queue.take(id) else { break };
            self.expire(now, id, job, actions);
        }
        while self.leased < self.rules.in_flight.max(1)
            && let (Some((id, key)), _) = self.turn(now)
        {
            self.send(now, id, key, actions);
        }
    }

    /// Whether what is sent then may arrive when it is of no use any more.
    fn is_late(&self, at: Nanos, expires: Nanos) -> bool {
        expires < at + self.keys.bound().unwrap_or_default()
    }

    fn send(&mut self, now: Nanos, id: JobId, key: u32, actions: &mut Vec<Action>) {
        let Some(mut job) = self.queue.take(id) else { return };
        let since_1970 = self.rules.epoch + now;
        let sent = self.keys.with(key, |key| {
            let slot = key.windows.sent(now, job.asked.weight);
            (slot, key.nonces.next(since_1970), key.nonces.raise())
        });
        let Some((slot, nonce, high_water)) = sent else { return };
        self.keys.used(key);
        if let Some(high_water) = high_water {
            actions.push(Action::Keep { key, high_water });
        }
        job.attempts += 1;
        job.state = State::Leased { key, slot, sent: now };
        actions.push(Action::Send { job: id, key, attempt: job.attempts, nonce, again: job.again });
        self.out.push_back((now, id, job.attempts));
        self.leased += 1;
        self.queue.put(id, job);
    }

    fn arm(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        let next = self.turn(now).1;
        let is_full = self.leased >= self.rules.in_flight.max(1);
        let mut at = if is_full { Nanos::NEVER } else { next };
        at = at.min(self.queue.first_dead().map_or(Nanos::NEVER, |(until, _)| until));
        if let Some((expires, _)) = self.queue.first_expiring() {
            // It can still be sent at the very last instant.
            at = at.min(expires - self.keys.bound().unwrap_or_default() + Nanos(1));
        }
        at = at.min(self.out.front().map_or(Nanos::NEVER, |(sent, ..)| *sent + self.rules.attempt_timeout));
        if at != self.armed && at != Nanos::NEVER {
            self.armed = at;
            actions.push(Action::WakeAt(at));
        }
    }

    /// Dice for one job.
    fn dice(&self, id: JobId) -> Dice {
        Dice::new(self.seed, id)
    }
}
