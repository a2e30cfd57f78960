//! Claims: leases of jobs for a sender.

use super::{JobLane, JobLease};
use crate::job::{JobEntry, UnixMs};
use weir_base::Nanos;

/// Order of jobs of one priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobOrder {
    /// First in, first out.
    #[default]
    Fifo,
    /// Earliest deadline first, then first in, first out.
    Deadline,
}

impl JobOrder {
    /// Sort key before the number; lower is first.
    pub(super) fn rank(self, expires: Option<UnixMs>) -> i64 {
        match self {
            Self::Fifo => 0,
            Self::Deadline => expires.map_or(i64::MAX, |at| at.0),
        }
    }

    /// Word in a store.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "arrival",
            Self::Deadline => "deadline",
        }
    }
}

/// Request for leases of jobs.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Wall-clock time.
    pub now: UnixMs,
    /// Length of the leases.
    pub lease_duration: Nanos,
    /// Jobs wanted by lane. Lanes that cannot send are left out, so that their jobs do not block others.
    pub lanes: Vec<LaneClaim>,
    /// Total size at which no further job is leased, in bytes.
    pub max_bytes: u64,
    /// Whether all leased jobs are marked as sent, which saves a mark for each.
    pub marks_sent: bool,
}

/// Jobs wanted of one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneClaim {
    /// Lane.
    pub lane: JobLane,
    /// Maximum number of jobs.
    pub max_jobs: usize,
}

/// Leased jobs.
#[derive(Clone, Debug, Default)]
pub struct ClaimReply {
    /// Jobs in the order of sending, lane by lane.
    pub jobs: Vec<(JobLease, JobEntry)>,
    /// Jobs that this claim has expired.
    pub expired: Vec<JobEntry>,
    /// Next time at which a job is due or expires, unless something changes before.
    pub next_due: Option<UnixMs>,
    /// Lanes with more queued jobs; at most [`MAX_CLAIM_LANES`](super::MAX_CLAIM_LANES), the others with the next
    /// claim.
    pub lanes: Vec<JobLane>,
}
