//! Where jobs are kept until they are delivered, and what became of them after.
//!
//! One trait, [`Store`], and three stores behind it: [`MemoryStore`], which ends with its process, [`SqliteStore`], a file, and
//! [`RedisStore`], on a server. All pass one suite of tests. Every answer that says that something is so ([`StoreFuture`]) comes when it is durable.
//!
//! Delivery is at least once. A claim makes a *lease*, and a job is marked as sent before its first byte leaves
//! ([`Store::mark_sent`]; [`JobStep::Sent`] where the store cannot do that at once; [`ClaimRequest::marks_sent`] for all of a claim). So after
//! a crash the jobs that the service may have are known: they are queued again with
//! [`maybe_sent`](super::JobStatus::maybe_sent), the others as if nothing had happened. A record of a lease that is over
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
pub use filter::{JobFilter, JobSelector};
pub use keys::{AcquiredKey, Heartbeat, HeartbeatReply, SharedKeys};
pub use lane::{JobLane, MAX_CLAIM_LANES};
pub use leases::JobLease;
pub use memory::MemoryStore;
pub use place::StoreUrl;
pub use redis::{QueueAddress, RedisStore};
pub use sqlite::{Options, SqliteStore};
pub use ticket::StoreFuture;
pub use uses::KeyUsage;

use super::job::{Job, JobDetail, JobEdit, JobEntry, StoredAttempt, StoredResponse, UnixMs};
use super::state::State;
use crate::decide::Nanos;

/// Where jobs are kept.
///
/// What reads ([`counts`](Self::counts), [`list`](Self::list), ...) answers at once, on the caller's thread. What
/// changes something answers by a [`StoreFuture`]. The time is an argument; only leases run on the store's own clock, which
/// no one can set.
pub trait Store: Send + Sync + Debug {
    /// Takes jobs in, in this order. The answer comes when all are durable; while the queue is full it waits.
    fn submit(&self, batch: Vec<Job>) -> StoreFuture<Vec<Receipt>>;

    /// Makes this handle the store's one sender, and takes back what a sender before it left leased. May block.
    ///
    /// # Errors
    /// [`StoreError::AnotherSender`]: there is one.
    fn start_sending(&self, now: UnixMs) -> Result<Recovery, StoreError>;

    /// Leases jobs, higher priorities first. Also ends the time of jobs that have expired and queues dead letters that
    /// are due.
    fn claim(&self, claim: ClaimRequest) -> StoreFuture<ClaimReply>;

    /// Notes what came of leased jobs, and what is to be known of keys, in one step.
    fn record(&self, record: RecordRequest) -> StoreFuture<RecordReply>;

    /// Marks a leased job as sent, before its first byte leaves: at once, and so that the mark outlives this process. False:
    /// this store has no such marks, and [`JobStep::Sent`] has to be recorded.
    fn mark_sent(&self, lease: JobLease, at: UnixMs) -> bool;

    /// Takes such a mark back, as no byte has left after all. False: it stays.
    fn unmark_sent(&self, lease: JobLease) -> bool {
        let _ = lease;
        false
    }

    /// Has leases last `length` from now; those that are over already are left out of the answer.
    fn renew(&self, leases: &[JobLease], length: Nanos) -> Vec<JobLease>;

    /// How many jobs there are in each state.
    ///
    /// # Errors
    /// The file cannot be read; so with all that reads.
    fn counts(&self) -> Result<JobCounts, StoreError>;

    /// The queued jobs of each key hint; `None` are those that any key may send.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn queued_by_key(&self) -> Result<Vec<(Option<String>, u64)>, StoreError>;

    /// How many jobs, up to `most`, wait whose time is over before then.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn expiring(&self, before: UnixMs, most: usize) -> Result<usize, StoreError>;

    /// Jobs by number, the first `most` after `after` (0 for the first of all).
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn list(&self, filter: &JobFilter, after: u64, most: usize) -> Result<Vec<JobEntry>, StoreError>;

    /// All that is known of one job.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn inspect(&self, which: &JobSelector) -> Result<Option<JobDetail>, StoreError>;

    /// Changes a job that is neither leased nor done. Says whether there was such a job.
    fn edit(&self, number: u64, edit: JobEdit, now: UnixMs) -> StoreFuture<bool>;

    /// Queues jobs of the filter again that are dead, in the graveyard or expired, with all their tries before them and
    /// `expires` in place of the end that they had, if it is given; not those whose time would be over. Says how many.
    fn retry(&self, filter: JobFilter, expires: Option<UnixMs>, now: UnixMs) -> StoreFuture<u64>;

    /// Removes jobs of the filter, but not leased ones. Says how many.
    fn purge(&self, filter: JobFilter) -> StoreFuture<u64>;

    /// What was noted of keys.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn key_states(&self) -> Result<Vec<StoredKeyState>, StoreError>;

    /// Changes when jobs have become claimable, by any process.
    fn arrivals(&self) -> watch::Receiver<u64>;

    /// Changes when anything has changed, by any process.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Who sends from it now.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn active_senders(&self) -> Result<ActiveSenders, StoreError>;

    /// What its jobs say of keys. Looks at all jobs.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn key_usage(&self) -> Result<Vec<KeyUsage>, StoreError>;

    /// Those of these jobs that have come to their end: for whoever waits for a job that another sender may send.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn ended(&self, numbers: &[u64]) -> Result<Vec<u64>, StoreError> {
        let mut ended = Vec::new();
        for number in numbers {
            let found = self.inspect(&JobSelector::Number(*number))?;
            ended.extend(found.filter(|detail| !detail.entry.status.state.is_open()).map(|_| *number));
        }
        Ok(ended)
    }

    /// Its keys, if several senders share them. None: there is one sender, and all keys are its.
    fn shared_keys(&self) -> Option<&dyn SharedKeys> {
        None
    }

    /// Why it does not answer, while it does not and will be asked again.
    fn unreachable_reason(&self) -> Option<String> {
        None
    }
}

/// What becomes of a submitted job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// It is in, with this number.
    Accepted(u64),
    /// A job of the same name was in already; this one is not.
    Duplicate(u64, State),
}

impl Receipt {
    /// The number of the job that bears the name.
    pub const fn number(self) -> u64 {
        match self {
            Self::Accepted(number) | Self::Duplicate(number, _) => number,
        }
    }
}

/// How much a queue holds of jobs that are still to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBounds {
    /// Jobs.
    pub jobs: u64,
    /// Bytes, as [`Job::bytes`] counts them.
    pub bytes: u64,
}

impl Default for QueueBounds {
    fn default() -> Self {
        Self { jobs: u64::MAX, bytes: u64::MAX }
    }
}

/// Which of two jobs of one priority goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobOrder {
    /// The one that came first.
    #[default]
    Fifo,
    /// The one that expires first; then the one that came first.
    Deadline,
}

impl JobOrder {
    /// What to order by, before the number.
    fn rank(self, expires: Option<UnixMs>) -> i64 {
        match self {
            Self::Fifo => 0,
            Self::Deadline => expires.map_or(i64::MAX, |at| at.0),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "first in",
            Self::Deadline => "deadline",
        }
    }
}

/// Which jobs to lease.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Now, on the wall clock.
    pub now: UnixMs,
    /// How long the leases last.
    pub lease_duration: Nanos,
    /// How many jobs of which lane. One that has nothing to do is left out, and its jobs stand in nobody's way.
    pub lanes: Vec<LaneClaim>,
    /// No further job once the leased ones have so many bytes.
    pub max_bytes: u64,
    /// They are about to be sent: after a crash they may have been. Saves a mark for each.
    pub marks_sent: bool,
}

/// So many jobs of one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneClaim {
    /// Which.
    pub lane: JobLane,
    /// At most so many.
    pub max_jobs: usize,
}

/// What came of a claim.
#[derive(Clone, Debug, Default)]
pub struct ClaimReply {
    /// In the order in which they are to be sent, want by want.
    pub jobs: Vec<(JobLease, JobEntry)>,
    /// Jobs whose time was found to be over.
    pub expired: Vec<JobEntry>,
    /// When a job is due or expires next, if nothing changes before.
    pub next_due: Option<UnixMs>,
    /// Lanes in which there are more queued jobs; if there are many, others are told by the next claim.
    pub lanes: Vec<JobLane>,
}

/// What came of leased jobs.
#[derive(Clone, Debug, Default)]
pub struct RecordRequest {
    /// In the order in which it happened.
    pub changes: Vec<JobChange>,
    /// What is to be known of keys from now on.
    pub key_states: Vec<StoredKeyState>,
}

/// What came of one leased job.
#[derive(Clone, Debug)]
pub struct JobChange {
    /// Under which lease.
    pub lease: JobLease,
    /// When.
    pub at: UnixMs,
    /// Why, in a few words.
    pub reason: String,
    /// What.
    pub step: JobStep,
    /// What was sent before it. Counts as a try, but not with [`JobStep::Sent`].
    pub attempt: Option<StoredAttempt>,
    /// What the service said, if it is to be kept.
    pub response: Option<StoredResponse>,
}

/// A step in a job's life that its sender takes. All but [`JobStep::Sent`] end the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStep {
    /// About to be sent. Has to be durable before it is.
    Sent,
    /// Delivered.
    Done,
    /// Failed; to be tried again then.
    Retrying {
        /// When.
        retry_at: UnixMs,
    },
    /// Failed, and not to be tried again.
    DeadLettered,
    /// Its time is over.
    Expired,
    /// Back to the queue, surely unsent.
    Released,
}

impl JobStep {
    const fn state(self) -> State {
        match self {
            Self::Sent => State::Leased,
            Self::Done => State::Done,
            Self::Retrying { .. } => State::Retrying,
            Self::DeadLettered => State::DeadLettered,
            Self::Expired => State::Expired,
            Self::Released => State::Queued,
        }
    }
}

/// What came of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordReply {
    /// Changes that were not made, as their leases were over.
    pub stale: Vec<JobLease>,
}

/// What a store was found to have been left with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Jobs that were leased, and are queued again.
    pub jobs: u64,
    /// Those of them that may have been sent.
    pub maybe_sent: u64,
}

/// What a sender keeps of a key: the times of its last sends, its highest nonce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKeyState {
    /// The key's name, never the credential.
    pub key: String,
    /// As the sender writes it.
    pub state: String,
}

/// Who sends from a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActiveSenders {
    /// No one.
    None,
    /// A process; its number, if it said so.
    Process(Option<u32>),
    /// Several share it: number and machine of each.
    Processes(Vec<String>),
}

/// How many jobs there are in each state, and how large they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    jobs: [u64; State::ALL.len()],
    bytes: [u64; State::ALL.len()],
}

impl JobCounts {
    /// Jobs in this state.
    pub const fn jobs_in(&self, state: State) -> u64 {
        self.jobs[state.index()]
    }

    /// The size of jobs in this state.
    pub const fn bytes_in(&self, state: State) -> u64 {
        self.bytes[state.index()]
    }

    /// Jobs that are still to be delivered.
    pub fn open_jobs(&self) -> u64 {
        State::ALL.into_iter().filter(|state| state.is_open()).map(|state| self.jobs_in(state)).sum()
    }

    /// The size of what is still to be delivered.
    pub fn open_bytes(&self) -> u64 {
        State::ALL.into_iter().filter(|state| state.is_open()).map(|state| self.bytes_in(state)).sum()
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

    fn has_room(&self, bounds: QueueBounds, bytes: u64) -> bool {
        self.open_jobs() < bounds.jobs && self.open_bytes().saturating_add(bytes) <= bounds.bytes
    }
}
