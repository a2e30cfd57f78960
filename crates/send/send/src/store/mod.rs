//! Job stores: a trait, [`Store`], and its implementations [`MemoryStore`], [`SqliteStore`] (a file) and [`RedisStore`]
//! (a server). All pass one test suite. A [`StoreFuture`] resolves when its change is durable.
//!
//! Delivery is at least once. A claim leases jobs, and a job is marked as sent before its first byte leaves
//! ([`Store::mark_sent`]; [`JobStep::Sent`] where a store cannot mark at once; [`ClaimRequest::marks_sent`] for a whole
//! claim). After a crash, jobs with a mark are requeued with [`maybe_sent`](super::JobStatus::maybe_sent), the others
//! as if they had not been claimed. A record under an expired lease changes nothing.
//!
//! A store has one sender at a time, and any number of processes that submit and inspect. Two senders of one file would
//! break rate limits even with leases of jobs, since only the process that sent a request knows when. Several senders
//! need leases of API keys ([`SharedKeys`]).

mod audit_reason;
mod claim;
mod counts;
mod error;
mod filter;
mod key_usage;
mod keys;
mod lane;
mod leases;
mod memory;
mod record;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store_url;
mod submission_queue;
mod ticket;
mod work_queue;

use std::fmt::Debug;

use tokio::sync::watch;

pub use audit_reason::REQUEUED_BY_HAND;
pub use claim::{ClaimReply, ClaimRequest, JobOrder, LaneClaim};
pub use counts::{JobCounts, QueueBounds};
pub use error::StoreError;
pub use filter::{JobFilter, JobSelector};
pub use key_usage::KeyUsage;
pub use keys::{AcquiredKey, Heartbeat, HeartbeatReply, SharedKeys};
pub use lane::{JobLane, MAX_CLAIM_LANES};
pub use leases::JobLease;
pub use memory::MemoryStore;
pub use record::{JobChange, JobStep, RecordReply, RecordRequest, StoredKeyState};
#[cfg(feature = "redis")]
pub use redis::{QueueAddress, RedisStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{Options, SqliteStore};
pub use store_url::StoreUrl;
pub use ticket::StoreFuture;

use super::job::{Job, JobDetail, JobEdit, JobEntry, UnixMs};
use super::state::State;
use weir_base::Nanos;

/// Version of the tables in a file.
const SCHEMA_VERSION: u32 = 4;

/// Store of jobs.
///
/// Reads ([`counts`](Self::counts), [`list`](Self::list), ...) return at once, on the caller's thread; changes return a
/// [`StoreFuture`]. The wall-clock time is an argument; only leases run on the store's own monotonic clock.
pub trait Store: Send + Sync + Debug {
    /// Submits jobs, in this order. Resolves when all are durable; waits while the queue is full.
    fn submit(&self, batch: Vec<Job>) -> StoreFuture<Vec<Receipt>>;

    /// Makes this handle the store's sender, and requeues jobs that the previous one left leased. May block.
    ///
    /// # Errors
    /// [`StoreError::AnotherSender`].
    fn start_sending(&self, now: UnixMs) -> Result<Recovery, StoreError>;

    /// Leases jobs, higher priorities first. Also expires jobs whose TTL has ended, and requeues retrying jobs that are
    /// due.
    fn claim(&self, claim: ClaimRequest) -> StoreFuture<ClaimReply>;

    /// Records outcomes of leased jobs and states of keys, in one transaction.
    fn record(&self, record: RecordRequest) -> StoreFuture<RecordReply>;

    /// Whether the store can mark jobs as sent at once ([`Self::mark_sent`]). If not, [`JobStep::Sent`] is recorded.
    fn marks_at_once(&self) -> bool;

    /// Marks leased jobs as sent, before their first bytes leave, so that the marks survive this process. Returns those
    /// that it could not mark.
    fn mark_sent(&self, leases: &[JobLease], at: UnixMs) -> Vec<JobLease>;

    /// Removes such a mark, if no byte has left after all. False if it stays.
    fn unmark_sent(&self, lease: JobLease) -> bool {
        let _ = lease;
        false
    }

    /// Extends leases to `length` from now; returns those that had not expired.
    fn renew(&self, leases: &[JobLease], length: Nanos) -> Vec<JobLease>;

    /// Jobs and bytes in each state.
    ///
    /// # Errors
    /// The store cannot be read; the same for all reads.
    fn counts(&self) -> Result<JobCounts, StoreError>;

    /// Number of queued jobs by pinned key; `None` for jobs that any key may send.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn queued_by_key(&self) -> Result<Vec<(Option<String>, u64)>, StoreError>;

    /// Number of queued and retrying jobs that expire before then, at most `most`.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn expiring(&self, before: UnixMs, most: usize) -> Result<usize, StoreError>;

    /// Jobs by number, the first `most` after `after` (0 for the first of all).
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn list(&self, filter: &JobFilter, after: u64, most: usize) -> Result<Vec<JobEntry>, StoreError>;

    /// One job with its response and history.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn inspect(&self, which: &JobSelector) -> Result<Option<JobDetail>, StoreError>;

    /// Changes a job that is neither leased nor done. False if there is none.
    fn edit(&self, number: u64, edit: JobEdit, now: UnixMs) -> StoreFuture<bool>;

    /// Requeues retrying, dead-lettered and expired jobs of the filter, with 0 attempts and, if given, a new end of
    /// their TTL; jobs that would expire at once are skipped. Returns their number.
    fn retry(&self, filter: JobFilter, expires: Option<UnixMs>, now: UnixMs) -> StoreFuture<u64>;

    /// Removes jobs of the filter, except leased ones. Returns their number.
    fn purge(&self, filter: JobFilter) -> StoreFuture<u64>;

    /// States of API keys.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn key_states(&self) -> Result<Vec<StoredKeyState>, StoreError>;

    /// Changes when jobs have become claimable, by any process.
    fn arrivals(&self) -> watch::Receiver<u64>;

    /// Changes when anything has changed, by any process.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Processes that send from the store now.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn active_senders(&self) -> Result<ActiveSenders, StoreError>;

    /// Use of API keys by the last attempts of jobs. Reads all jobs.
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    fn key_usage(&self) -> Result<Vec<KeyUsage>, StoreError>;

    /// Ended jobs among these, for a process that waits for jobs that another process may send.
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

    /// Leases of API keys, if several senders share them. None: one sender uses all keys.
    fn shared_keys(&self) -> Option<&dyn SharedKeys> {
        None
    }

    /// Reason why the store is unreachable, while it is and calls are retried.
    fn unreachable_reason(&self) -> Option<String> {
        None
    }
}

/// Receipt of a submitted job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// The job is accepted, with this number.
    Accepted(u64),
    /// A job with the same ID was in the store already, with this number; the new one is not accepted.
    Duplicate(u64, State),
}

impl Receipt {
    /// Number of the job with this ID.
    pub const fn number(self) -> u64 {
        match self {
            Self::Accepted(number) | Self::Duplicate(number, _) => number,
        }
    }
}

/// Jobs that a previous sender left leased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Number of these jobs, which are queued again.
    pub jobs: u64,
    /// Number of those that may have been sent.
    pub maybe_sent: u64,
}

/// Processes that send from a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActiveSenders {
    /// None.
    None,
    /// One process, with its process ID if known.
    Process(Option<u32>),
    /// Several processes that share the store, each with process ID and machine.
    Processes(Vec<String>),
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
mod tests;
