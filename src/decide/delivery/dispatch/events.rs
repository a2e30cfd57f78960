//! What happens to a dispatch, and what it has done about it.

use super::{HostId, JobId};
use crate::decide::Nanos;
use crate::decide::base::failure::FailureKind;
use crate::decide::delivery::limit_headers::RateLimitHeaders;

/// What is to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobSubmission {
    /// Where it goes. A host that was not added has no limits of its own.
    pub host: HostId,
    /// It is not sent if it could arrive after this; NEVER: it does not expire.
    pub expires_at: Nanos,
    /// What it counts in windows that go by weight.
    pub weight: u64,
    /// Higher goes first.
    pub priority: i32,
    /// Tries that are used up already.
    pub attempts_used: u32,
    /// It was on its way when an earlier process ended, and nobody knows what became of it.
    pub maybe_sent: bool,
    /// The one key that may send it; None: any. As long as that key is of no use it waits, and if there is no such key
    /// for ever: who knows better withdraws it.
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

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A job is there; one whose number is taken is ignored.
    Submitted(JobId, JobSubmission),
    /// This attempt's bytes go out.
    Departed(JobId, u32),
    /// This attempt was answered.
    Responded(JobId, u32, ResponseClass, &'a RateLimitHeaders),
    /// This attempt has no answer, and will have none.
    Failed(JobId, u32, FailureKind),
    /// This attempt was called back before anything of it left; it says nothing about anybody.
    Recalled(JobId, u32),
    /// The job is not wanted any more; one that is leased is done with, whatever comes of it.
    Withdrawn(JobId),
    /// This key can be used again.
    KeyUsable(u32),
    /// Time has passed.
    Tick,
}

/// What an answer means. The edge knows the service; [`ResponseClass::of`] is the custom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseClass {
    /// It is done.
    Done,
    /// Too many requests; the key may send later.
    RateLimited,
    /// Its nonce was not above the last one's.
    InvalidNonce,
    /// The service does not know the key.
    Unauthorized,
    /// The service does not want to hear of the key again.
    Blocked,
    /// It failed, with this status.
    Failed(u16),
}

impl ResponseClass {
    /// By status alone: 2xx, 401 and 429 are what they say, all others have failed.
    pub const fn of(status: u16) -> Self {
        match status {
            200..=299 => Self::Done,
            401 => Self::Unauthorized,
            429 => Self::RateLimited,
            _ => Self::Failed(status),
        }
    }
}

/// Why a job did not get on, or a key is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchFailure {
    /// The answer meant this.
    Response(ResponseClass),
    /// There was no answer.
    NoResponse(FailureKind),
    /// It weighs more than a window holds.
    TooHeavy,
    /// It may have been sent before a crash, and is not to be sent twice.
    MaybeSent,
    /// Its time went by before it was ever sent.
    Expired,
    /// Its host answered nobody for too long.
    HostDown,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchAction {
    /// Keep this as the key's high-water mark of nonces.
    SaveHighWater {
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
        maybe_duplicate: bool,
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
    ScheduleRetry {
        /// Which.
        job: JobId,
        /// Until then at least.
        until: Nanos,
        /// What it died of.
        reason: DispatchFailure,
    },
    /// It is due, and queued once more.
    Requeue(JobId),
    /// It has a new TTL.
    ExtendTtl {
        /// Which.
        job: JobId,
        /// When that is over.
        expires_at: Nanos,
    },
    /// It expired. The end.
    Expire {
        /// Which.
        job: JobId,
        /// What it died of before, if it was sent at all.
        reason: DispatchFailure,
    },
    /// It goes to the graveyard. The end.
    DeadLetter {
        /// Which.
        job: JobId,
        /// What it died of.
        reason: DispatchFailure,
    },
    /// This key is used no more.
    KeyUnusable {
        /// Which.
        key: u32,
        /// What was said of it.
        reason: DispatchFailure,
    },
    /// This host answers nobody: nothing but a probe now and then goes to it until it does.
    HostDown(HostId),
    /// It answers again.
    HostUp(HostId),
    /// Send an [`Event::Tick`] then, and not at the instant that was named before; it is never [`Nanos::NEVER`].
    WakeAt(Nanos),
}

impl DispatchAction {
    /// The host that answers nobody, if this says so.
    pub const fn host_down(&self) -> Option<HostId> {
        if let Self::HostDown(host) = self { Some(*host) } else { None }
    }
}
