//! What happens to a dispatch, and what it has done about it.

use super::{HostId, JobId};
use crate::decide::Nanos;
use crate::decide::feedback::Feedback;
use crate::decide::policy::Kind;

/// What is to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Where it goes. A host that was not added has no limits of its own.
    pub host: HostId,
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
        Self { host: 0, expires: Nanos::NEVER, weight: 1, priority: 0, tries: 0, maybe_sent: false, key: None }
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
    /// This attempt was called back before anything of it left; it says nothing about anybody.
    CalledBack(JobId, u32),
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
    /// Its host answered nobody for too long.
    Down,
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
    /// This host answers nobody: nothing but a probe now and then goes to it until it does.
    Down(HostId),
    /// It answers again.
    Up(HostId),
    /// Send an [`Event::Tick`] then, and not at the instant that was named before; it is never [`Nanos::NEVER`].
    WakeAt(Nanos),
}

impl Action {
    /// The host that answers nobody, if this says so.
    pub const fn down(&self) -> Option<HostId> {
        if let Self::Down(host) = self { Some(*host) } else { None }
    }
}
