//! Where jobs are kept until they are delivered, and what became of them after.
//!
//! One trait, [`Store`], and three stores behind it: [`Memory`], which ends with its process, [`Sqlite`], a file, and
//! [`Redis`], on a server. All pass one suite of tests. Every answer that says that something is so ([`Ticket`]) comes when it is durable.
//!
//! Delivery is at least once. A claim makes a *lease*, and a job is marked as sent before its first byte leaves
//! ([`Store::mark`]; [`Step::Sent`] where the store cannot do that at once; [`Claim::sending`] for all of a claim). So after
//! a crash the jobs that the service may have are known: they are queued again with
//! [`maybe_sent`](super::Status::maybe_sent), the others as if nothing had happened. A record of a lease that is over
//! changes nothing.
//!
//! A store has one sender at a time, and as many who submit and inspect as there are. Not several senders that share by
//! leases of jobs: a key's limit is kept by the one process that knows what it sent when, so two senders in one file would
//! break it together, whoever held which job. Where keys are leased, too ([`SharedKeys`]), there may be several.

mod error;
mod filter;
mod inbox;
mod keys;
mod lane;
mod leases;
mod memory;
mod place;
mod reason;
mod redis;
mod sqlite;
#[cfg(test)]
mod suite;
mod ticket;
mod uses;
mod waiting;

use std::fmt::Debug;

use tokio::sync::watch;

pub use error::StoreError;
pub use filter::{Filter, Which};
pub use keys::{Beat, Beaten, SharedKeys, Taken};
pub use lane::{Lane, MOST_LANES};
pub use leases::Lease;
pub use memory::Memory;
pub use place::Place;
pub use redis::{Address, Redis};
pub use sqlite::{Options, Sqlite};
pub use ticket::Ticket;
pub use uses::KeyUse;

use super::job::{Answer, Attempt, Detail, Edit, Entry, Job, UnixMs};
use super::state::State;
use crate::decide::Nanos;

/// Where jobs are kept.
///
/// What reads ([`counts`](Self::counts), [`list`](Self::list), ...) answers at once, on the caller's thread. What
/// changes something answers by a [`Ticket`]. The time is an argument; only leases run on the store's own clock, which
/// no one can set.
pub trait Store: Send + Sync + Debug {
    /// Takes jobs in, in this order. The answer comes when all are durable; while the queue is full it waits.
    fn submit(&self, batch: Vec<Job>) -> Ticket<Vec<Receipt>>;

    /// Makes this handle the store's one sender, and takes back what a sender before it left leased. May block.
    ///
    /// # Errors
    /// [`StoreError::SenderElsewhere`]: there is one.
    fn start_sending(&self, now: UnixMs) -> Result<Recovered, StoreError>;

    /// Leases jobs, higher priorities first. Also ends the time of jobs that have expired and queues dead letters that
    /// are due.
    fn claim(&self, claim: Claim) -> Ticket<Claimed>;

    /// Notes what came of leased jobs, and what is to be known of keys, in one step.
    fn record(&self, record: Record) -> Ticket<Recorded>;

    /// Marks a leased job as sent, before its first byte leaves: at once, and so that the mark outlives this process. False:
    /// this store has no such marks, and [`Step::Sent`] has to be recorded.
    fn mark(&self, lease: Lease, at: UnixMs) -> bool;

    /// Takes such a mark back, as no byte has left after all. False: it stays.
    fn unmark(&self, lease: Lease) -> bool {
        let _ = lease;
        false
    }

    /// Has leases last `length` from now; those that are over already are left out of the answer.
    fn renew(&self, leases: &[Lease], length: Nanos) -> Vec<Lease>;

    /// How many jobs there are in each state.
    ///
    /// # Errors
    /// The file cannot be read; so with all that reads.
    fn counts(&self) -> Result<Counts, StoreError>;

    /// The queued jobs of each key hint; `None` are those that any key may send.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn hints(&self) -> Result<Vec<(Option<String>, u64)>, StoreError>;

    /// How many jobs, up to `most`, wait whose time is over before then.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn expiring(&self, before: UnixMs, most: usize) -> Result<usize, StoreError>;

    /// Jobs by number, the first `most` after `after` (0 for the first of all).
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn list(&self, filter: &Filter, after: u64, most: usize) -> Result<Vec<Entry>, StoreError>;

    /// All that is known of one job.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn inspect(&self, which: &Which) -> Result<Option<Detail>, StoreError>;

    /// Changes a job that is neither leased nor done. Says whether there was such a job.
    fn edit(&self, number: u64, edit: Edit, now: UnixMs) -> Ticket<bool>;

    /// Queues jobs of the filter again that are dead, in the graveyard or expired, with all their tries before them and
    /// `expires` in place of the end that they had, if it is given; not those whose time would be over. Says how many.
    fn retry(&self, filter: Filter, expires: Option<UnixMs>, now: UnixMs) -> Ticket<u64>;

    /// Removes jobs of the filter, but not leased ones. Says how many.
    fn purge(&self, filter: Filter) -> Ticket<u64>;

    /// What was noted of keys.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn keys(&self) -> Result<Vec<KeyNote>, StoreError>;

    /// Changes when jobs have become claimable, by any process.
    fn arrivals(&self) -> watch::Receiver<u64>;

    /// Changes when anything has changed, by any process.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Who sends from it now.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn sender(&self) -> Result<Sends, StoreError>;

    /// What its jobs say of keys. Looks at all jobs.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn key_uses(&self) -> Result<Vec<KeyUse>, StoreError>;

    /// Those of these jobs that have come to their end: for whoever waits for a job that another sender may send.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn ended(&self, numbers: &[u64]) -> Result<Vec<u64>, StoreError> {
        let mut ended = Vec::new();
        for number in numbers {
            let found = self.inspect(&Which::Number(*number))?;
            ended.extend(found.filter(|detail| !detail.entry.status.state.open()).map(|_| *number));
        }
        Ok(ended)
    }

    /// Its keys, if several senders share them. None: there is one sender, and all keys are its.
    fn shared_keys(&self) -> Option<&dyn SharedKeys> {
        None
    }

    /// Why it does not answer, while it does not and will be asked again.
    fn trouble(&self) -> Option<String> {
        None
    }
}

/// What becomes of a submitted job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It is in, with this number.
    Accepted(u64),
    /// A job of the same name was in already; this one is not.
    Known(u64, State),
}

impl Receipt {
    /// The number of the job that bears the name.
    pub const fn number(self) -> u64 {
        match self {
            Self::Accepted(number) | Self::Known(number, _) => number,
        }
    }
}

/// How much a queue holds of jobs that are still to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Jobs.
    pub jobs: u64,
    /// Bytes, as [`Job::bytes`] counts them.
    pub bytes: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { jobs: u64::MAX, bytes: u64::MAX }
    }
}

/// Which of two jobs of one priority goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The one that came first.
    #[default]
    FirstIn,
    /// The one that expires first; then the one that came first.
    Deadline,
}

impl Order {
    /// What to order by, before the number.
    fn rank(self, expires: Option<UnixMs>) -> i64 {
        match self {
            Self::FirstIn => 0,
            Self::Deadline => expires.map_or(i64::MAX, |at| at.0),
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::FirstIn => "first in",
            Self::Deadline => "deadline",
        }
    }
}

/// Which jobs to lease.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Now, on the wall clock.
    pub now: UnixMs,
    /// How long the leases last.
    pub lease: Nanos,
    /// How many jobs of which lane. One that has nothing to do is left out, and its jobs stand in nobody's way.
    pub wants: Vec<Want>,
    /// No further job once the leased ones have so many bytes.
    pub most_bytes: u64,
    /// They are about to be sent: after a crash they may have been. Saves a mark for each.
    pub sending: bool,
}

/// So many jobs of one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// Which.
    pub lane: Lane,
    /// At most so many.
    pub most: usize,
}

/// What came of a claim.
#[derive(Clone, Debug, Default)]
pub struct Claimed {
    /// In the order in which they are to be sent, want by want.
    pub jobs: Vec<(Lease, Entry)>,
    /// Jobs whose time was found to be over.
    pub expired: Vec<Entry>,
    /// When a job is due or expires next, if nothing changes before.
    pub next: Option<UnixMs>,
    /// Lanes in which there are more queued jobs; if there are many, others are told by the next claim.
    pub lanes: Vec<Lane>,
}

/// What came of leased jobs.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// In the order in which it happened.
    pub changes: Vec<Change>,
    /// What is to be known of keys from now on.
    pub keys: Vec<KeyNote>,
}

/// What came of one leased job.
#[derive(Clone, Debug)]
pub struct Change {
    /// Under which lease.
    pub lease: Lease,
    /// When.
    pub at: UnixMs,
    /// Why, in a few words.
    pub reason: String,
    /// What.
    pub step: Step,
    /// What was sent before it. Counts as a try, but not with [`Step::Sent`].
    pub attempt: Option<Attempt>,
    /// What the service said, if it is to be kept.
    pub answer: Option<Answer>,
}

/// A step in a job's life that its sender takes. All but [`Step::Sent`] end the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// About to be sent. Has to be durable before it is.
    Sent,
    /// Delivered.
    Done,
    /// Failed; to be tried again then.
    Dead {
        /// When.
        retry_at: UnixMs,
    },
    /// Failed, and not to be tried again.
    Graveyard,
    /// Its time is over.
    Expired,
    /// Back to the queue, surely unsent.
    Released,
}

impl Step {
    const fn state(self) -> State {
        match self {
            Self::Sent => State::Leased,
            Self::Done => State::Done,
            Self::Dead { .. } => State::Dead,
            Self::Graveyard => State::Graveyard,
            Self::Expired => State::Expired,
            Self::Released => State::Queued,
        }
    }
}

/// What came of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Changes that were not made, as their leases were over.
    pub stale: Vec<Lease>,
}

/// What a store was found to have been left with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Jobs that were leased, and are queued again.
    pub jobs: u64,
    /// Those of them that may have been sent.
    pub maybe_sent: u64,
}

/// What a sender keeps of a key: the times of its last sends, its highest nonce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyNote {
    /// The key's name, never the credential.
    pub key: String,
    /// As the sender writes it.
    pub note: String,
}

/// Who sends from a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sends {
    /// No one.
    Nobody,
    /// A process; its number, if it said so.
    Process(Option<u32>),
    /// Several share it: number and machine of each.
    Processes(Vec<String>),
}

/// How many jobs there are in each state, and how large they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    jobs: [u64; State::ALL.len()],
    bytes: [u64; State::ALL.len()],
}

impl Counts {
    /// Jobs in this state.
    pub const fn of(&self, state: State) -> u64 {
        self.jobs[state.index()]
    }

    /// The size of jobs in this state.
    pub const fn bytes_of(&self, state: State) -> u64 {
        self.bytes[state.index()]
    }

    /// Jobs that are still to be delivered.
    pub fn open(&self) -> u64 {
        State::ALL.into_iter().filter(|state| state.open()).map(|state| self.of(state)).sum()
    }

    /// The size of what is still to be delivered.
    pub fn open_bytes(&self) -> u64 {
        State::ALL.into_iter().filter(|state| state.open()).map(|state| self.bytes_of(state)).sum()
    }

    fn add(&mut self, state: State, bytes: u64) {
        self.jobs[state.index()] += 1;
        self.bytes[state.index()] += bytes;
    }

    fn remove(&mut self, state: State, bytes: u64) {
        // A person may have changed the file by hand.
        self.jobs[state.index()] = self.jobs[state.index()].saturating_sub(1);
        self.bytes[state.index()] = self.bytes[state.index()].saturating_sub(bytes);
    }

    fn shift(&mut self, from: State, to: State, bytes: u64) {
        self.remove(from, bytes);
        self.add(to, bytes);
    }

    fn has_room(&self, bounds: Bounds, bytes: u64) -> bool {
        self.open() < bounds.jobs && self.open_bytes().saturating_add(bytes) <= bounds.bytes
    }
}
