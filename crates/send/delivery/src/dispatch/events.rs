//! Events and actions of a dispatch.

use super::{HostId, JobId};
use crate::limit_headers::RateLimitHeaders;
use weir_base::Nanos;
use weir_base::failure::FailureKind;

/// Job to deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSubmission {
    /// Destination. A host that was not added has the common limits.
    pub host: HostId,
    /// Expiry: not sent if it could arrive later; [`Nanos::NEVER`]: it does not expire.
    pub expires_at: Nanos,
    /// Weight in limits that count weight.
    pub weight: u64,
    /// Priority; higher goes first.
    pub priority: i32,
    /// Attempts that count already.
    pub attempts_used: u32,
    /// Whether it was in flight when an earlier process crashed, with unknown outcome.
    pub maybe_sent: bool,
    /// Only key that may send it; `None`: any. It waits while that key is unusable, and for ever if the key does not
    /// exist: then the caller has to withdraw it.
    pub key: Option<u32>,
}

impl Default for JobSubmission {
    fn default() -> Self {
        Self {
            host: 0,
            expires_at: Nanos::NEVER,
            weight: 1,
            priority: 0,
            attempts_used: 0,
            maybe_sent: false,
            key: None,
        }
    }
}

/// Event of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A job is submitted; ignored if its number is taken.
    Submitted(JobId, JobSubmission),
    /// The bytes of this attempt leave.
    Departed(JobId, u32),
    /// This attempt has a response.
    Responded(JobId, u32, ResponseClass, &'a RateLimitHeaders),
    /// This attempt failed without a response.
    Failed(JobId, u32, FailureKind),
    /// This attempt was recalled before any byte left: no evidence.
    Recalled(JobId, u32),
    /// The job is withdrawn; the outcome of a current attempt is ignored.
    Withdrawn(JobId),
    /// This key is usable again.
    KeyUsable(u32),
    /// Time has passed.
    Tick,
}

/// Class of a response. The caller knows the service; [`ResponseClass::of`] is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseClass {
    /// The job is done.
    Done,
    /// Rate limit exceeded; the key may send later.
    RateLimited,
    /// The nonce was not above the last one.
    InvalidNonce,
    /// The key is unknown to the service.
    Unauthorized,
    /// The key is blocked by the service.
    Blocked,
    /// Status of success, and a content that the caller does not accept. The host is up, and the attempt counts.
    FailedCheck,
    /// Failure with this status.
    Failed(u16),
}

impl ResponseClass {
    /// Class by the status alone: 2xx, 401, 429; all others are failures.
    pub const fn of(status: u16) -> Self {
        match status {
            200..=299 => Self::Done,
            401 => Self::Unauthorized,
            429 => Self::RateLimited,
            _ => Self::Failed(status),
        }
    }
}

/// Reason why a job failed, or a key is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchFailure {
    /// A response of this class.
    Response(ResponseClass),
    /// No response.
    NoResponse(FailureKind),
    /// The job's weight exceeds a limit.
    TooHeavy,
    /// The job may have been sent before a crash, and delivery is at most once.
    MaybeSent,
    /// The job expired before it was ever sent.
    Expired,
    /// The host was down for too long.
    HostDown,
}

/// Action that the caller carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchAction {
    /// Save a key's high-water mark of nonces.
    SaveHighWater {
        /// Key.
        key: u32,
        /// High-water mark: no nonce above it is sent before the next one.
        high_water: u64,
    },
    /// Send a job.
    Send {
        /// Job.
        job: JobId,
        /// Key.
        key: u32,
        /// Number of the attempt among the job's.
        attempt: u32,
        /// Nonce of the request.
        nonce: u64,
        /// Whether an earlier attempt may have been executed.
        maybe_duplicate: bool,
    },
    /// Cancel this attempt, which has timed out.
    Cancel {
        /// Job.
        job: JobId,
        /// Number of the attempt.
        attempt: u32,
    },
    /// The job is done; final.
    Done(JobId),
    /// The job is to be retried later.
    ScheduleRetry {
        /// Job.
        job: JobId,
        /// Time of the retry, at the earliest.
        until: Nanos,
        /// Reason.
        reason: DispatchFailure,
    },
    /// The retry is due: the job is queued again.
    Requeue(JobId),
    /// The job's TTL is extended.
    ExtendTtl {
        /// Job.
        job: JobId,
        /// New expiry.
        expires_at: Nanos,
    },
    /// The job expired; final.
    Expire {
        /// Job.
        job: JobId,
        /// Failure of the last attempt; [`DispatchFailure::Expired`] if it was never sent.
        reason: DispatchFailure,
    },
    /// The job is dead-lettered; final.
    DeadLetter {
        /// Job.
        job: JobId,
        /// Reason.
        reason: DispatchFailure,
    },
    /// The key is unusable.
    KeyUnusable {
        /// Key.
        key: u32,
        /// Reason.
        reason: DispatchFailure,
    },
    /// The host is down: it gets probes only until it responds.
    HostDown(HostId),
    /// The host is up again.
    HostUp(HostId),
    /// Send an [`Event::Tick`] at this time; replaces the last such time. Never [`Nanos::NEVER`].
    WakeAt(Nanos),
}

impl DispatchAction {
    /// Host of a [`Self::HostDown`].
    pub const fn host_down(&self) -> Option<HostId> {
        if let Self::HostDown(host) = self { Some(*host) } else { None }
    }
}
