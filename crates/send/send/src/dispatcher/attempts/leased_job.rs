//! Leased jobs and their attempts.

use bytes::Bytes;
use tokio::task::AbortHandle;

use crate::events::AttemptRecord;
use crate::job::{JobEntry, UnixMs};
use crate::store::JobLease;
use weir_base::Nanos;

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
    /// Attempt in flight; `None` between attempts.
    pub(super) in_flight: Option<InFlightAttempt>,
    /// Last finished attempt.
    pub(super) last_attempt: Option<LastAttempt>,
    /// Mark in the store that it was sent.
    pub(super) mark: SentMark,
}

/// State of the mark of a job under the current lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SentMark {
    Unset,
    /// The mark is being recorded.
    Pending,
    Set,
}

/// Running attempt of a leased job, with its task, key and times.
#[derive(Debug)]
pub(super) struct InFlightAttempt {
    pub(super) task: AbortHandle,
    /// Number among all attempts of this sender.
    pub(super) serial: u64,
    pub(super) key: usize,
    pub(super) attempt: u32,
    pub(super) started_at: Nanos,
    pub(super) sent_at: UnixMs,
    pub(super) due: Nanos,
    pub(super) last_byte_at: Option<Nanos>,
    /// Whether its host may have keys.
    pub(super) may_have_key: bool,
}

/// Response of a finished attempt; empty without one.
#[derive(Debug, Default)]
pub(super) struct FinishedResponse {
    /// Headers, if they are stored.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
    pub(super) request_id: Option<String>,
    pub(super) failed_check: Option<String>,
}

/// Finished attempt with its response.
#[derive(Debug)]
pub(super) struct LastAttempt {
    pub(super) record: AttemptRecord,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

impl LeasedJob {
    pub(super) fn new(lease: JobLease, entry: JobEntry, key: Option<u32>) -> Self {
        Self {
            lease,
            attempts: entry.status.attempts,
            entry,
            key,
            attempts_since_claim: 0,
            in_flight: None,
            last_attempt: None,
            mark: SentMark::Unset,
        }
    }

    /// Attempt in flight, if it is this one.
    pub(super) fn in_flight(&mut self, serial: u64) -> Option<&mut InFlightAttempt> {
        self.in_flight.as_mut().filter(|attempt| attempt.serial == serial)
    }

    /// Ends the attempt in flight without a response.
    pub(super) fn fail_attempt(&mut self, now: Nanos, why: String) -> Option<AttemptRecord> {
        self.finish_attempt(now, Err(why), false, FinishedResponse::default())
    }

    /// Ends the attempt in flight.
    pub(super) fn finish_attempt(
        &mut self,
        now: Nanos,
        outcome: Result<u16, String>,
        succeeded: bool,
        response: FinishedResponse,
    ) -> Option<AttemptRecord> {
        let attempt = self.in_flight.take()?;
        let FinishedResponse { headers, body, request_id, failed_check } = response;
        let record = AttemptRecord {
            key: attempt.key,
            sent_at: attempt.sent_at,
            lateness: attempt.last_byte_at.map(|at| at - attempt.due),
            service_time: now - attempt.started_at,
            outcome,
            failed_check,
            request_id,
            succeeded,
            is_retry: self.attempts > 1,
            failure_body: if succeeded { Bytes::new() } else { body.clone() },
        };
        self.last_attempt = Some(LastAttempt { record: record.clone(), headers, body });
        Some(record)
    }

    /// Takes back the count of an attempt of which nothing was sent.
    pub(super) fn uncount_attempt(&mut self) {
        (self.attempts, self.attempts_since_claim) = (self.attempts - 1, self.attempts_since_claim - 1);
    }
}
