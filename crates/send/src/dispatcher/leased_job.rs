//! Leased jobs and their attempts.

use bytes::Bytes;
use tokio::task::AbortHandle;

use super::super::job::{JobEntry, UnixMs};
use super::super::store::JobLease;
use super::marks::SentMark;
use crate::events::AttemptRecord;
use weir_decide::Nanos;

/// Job that this sender has leased.
#[derive(Debug)]
pub(super) struct LeasedJob {
    pub(super) lease: JobLease,
    pub(super) entry: JobEntry,
    /// Number of the only key that may send it.
    pub(super) key: Option<u32>,
    pub(super) attempts: u32,
    /// Attempts since the claim.
    pub(super) attempts_since_claim: u32,
    /// Attempt in flight.
    pub(super) in_flight: Option<InFlightAttempt>,
    /// Last finished attempt.
    pub(super) last_attempt: Option<LastAttempt>,
    /// Mark in the store that it was sent.
    pub(super) mark: SentMark,
}

/// Attempt in flight.
#[derive(Debug)]
pub(super) struct InFlightAttempt {
    pub(super) task: AbortHandle,
    pub(super) key: usize,
    pub(super) attempt: u32,
    pub(super) started_at: Nanos,
    pub(super) sent_at: UnixMs,
    pub(super) due: Nanos,
    pub(super) last_byte_at: Option<Nanos>,
}

/// Finished attempt with its response.
#[derive(Debug)]
pub(super) struct LastAttempt {
    pub(super) record: AttemptRecord,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}
