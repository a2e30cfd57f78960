//! Records: outcomes of leased jobs, and states of keys.

use super::JobLease;
use crate::job::{StoredAttempt, StoredResponse, UnixMs};
use crate::state::State;

/// Outcomes of leased jobs, and states of keys.
#[derive(Clone, Debug, Default)]
pub struct RecordRequest {
    /// Changes, in order.
    pub changes: Vec<JobChange>,
    /// New states of keys.
    pub key_states: Vec<StoredKeyState>,
}

/// Outcome of one leased job.
#[derive(Clone, Debug)]
pub struct JobChange {
    /// Lease of the job.
    pub lease: JobLease,
    /// Wall-clock time.
    pub at: UnixMs,
    /// Reason, in prose.
    pub reason: String,
    /// Step.
    pub step: JobStep,
    /// Attempt before it; counted in the attempts, except with [`JobStep::Sent`].
    pub attempt: Option<StoredAttempt>,
    /// Response to store.
    pub response: Option<StoredResponse>,
}

/// Step of a leased job by its sender. All but [`JobStep::Sent`] end the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStep {
    /// About to be sent; must be durable before the first byte leaves.
    Sent,
    /// Delivered.
    Done,
    /// Failed; retried later.
    Retrying {
        /// Time of the next attempt.
        retry_at: UnixMs,
    },
    /// Failed permanently.
    DeadLettered,
    /// The TTL has ended.
    Expired,
    /// Back in the queue, certainly unsent.
    Released,
}

impl JobStep {
    /// State after the step.
    pub(super) const fn state(self) -> State {
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

/// Result of recording changes of jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordReply {
    /// Leases of changes that were rejected, since they had expired.
    pub stale: Vec<JobLease>,
}

/// State of an API key: times of its last sends, highest nonce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKeyState {
    /// Name of the key, never the secret.
    pub key: String,
    /// State, as the sender serializes it.
    pub state: String,
}
