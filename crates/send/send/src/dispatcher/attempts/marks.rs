//! Marks that must be durable before a request's first byte: of the job as sent, and of its key's nonces.
//!
//! A store with cheap marks ([`Store::mark_sent`](crate::store::Store::mark_sent)) gets those of one turn of the event
//! loop at its end: requests begin in the turns of other tasks. On a server the mark is recorded, and the request waits
//! for it. To let few wait, the next jobs are marked with the records before ([`MarkAhead`]); only these are in doubt
//! without cause after a crash.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::super::channels::RecordEvent;
use super::super::context::SenderContext;
use super::super::queued_attempt::QueuedAttempt;
use super::leased_job::{LeasedJob, SentMark};
use super::outcomes::Outcomes;
use crate::store::JobLease;
use crate::wall_clock::wall_ms;
use weir_delivery::dispatch::{Dispatch, JobId};
use weir_delivery::mark_ahead::MarkAhead;

/// Distance of a new high-water mark above the nonce that needs it; nonces are milliseconds, mostly.
const MARK_AHEAD_NONCES: u64 = 10_000;
/// Distance below a high-water mark at which it is raised.
const MARK_MARGIN_NONCES: u64 = 3_000;

/// Mark that an attempt waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingMark {
    /// Of the key's nonces.
    Key,
    /// Of the job.
    Job,
    /// Of the job, by the end of this turn.
    JobInTurn,
}

/// High-water mark of a key's nonces.
#[derive(Clone, Copy, Debug)]
struct NonceMark {
    durable: u64,
    wanted: u64,
}

/// Marks of keys, and attempts that wait for marks.
#[derive(Debug)]
pub(super) struct SendMarks {
    context: Rc<SenderContext>,
    /// By key.
    high_water: Vec<NonceMark>,
    awaiting: Vec<QueuedAttempt>,
    /// Attempts of jobs that are marked by the end of this turn.
    in_turn: Vec<QueuedAttempt>,
    /// Number of jobs to mark ahead.
    ahead: MarkAhead,
}

impl SendMarks {
    pub(super) fn new(context: Rc<SenderContext>, high_water: impl Iterator<Item = u64>) -> Self {
        let high_water = high_water.map(|mark| NonceMark { durable: mark, wanted: mark }).collect();
        let (awaiting, in_turn) = (Vec::new(), Vec::new());
        Self { context, high_water, awaiting, in_turn, ahead: MarkAhead::default() }
    }

    /// Wanted high-water mark of a key.
    pub(super) fn high_water(&self, key: usize) -> u64 {
        self.high_water.get(key).map_or(0, |mark| mark.wanted)
    }

    /// Raises the mark of a key, further than needed, so that the next nonces need not wait for another one.
    pub(super) fn raise_high_water(&mut self, key: u32, high_water: u64, outcomes: &Outcomes) {
        if let Some(mark) = self.high_water.get_mut(key as usize)
            && high_water + MARK_MARGIN_NONCES > mark.wanted
        {
            mark.wanted = high_water + MARK_AHEAD_NONCES;
            outcomes.record(RecordEvent::HighWater(key, mark.wanted));
        }
    }

    /// Takes over the mark of a key's last owner.
    pub(super) fn take_over(&mut self, key: u32, high_water: u64, outcomes: &Outcomes) {
        if let Some(mark) = self.high_water.get_mut(key as usize) {
            *mark = NonceMark { durable: high_water, wanted: high_water };
            outcomes.record(RecordEvent::HighWaterTaken(key));
        }
    }

    /// Mark that an attempt has to wait for, which is requested; None if all are durable.
    pub(super) fn missing(
        &mut self,
        queued: QueuedAttempt,
        leased: Option<&mut LeasedJob>,
        outcomes: &mut Outcomes,
    ) -> Option<MissingMark> {
        let mark = self.high_water.get(queued.key);
        let missing = if mark.is_some_and(|mark| queued.nonce > mark.durable) {
            MissingMark::Key
        } else {
            let leased = leased?;
            let is_marked_in_turn = match leased.mark {
                SentMark::Unset => self.context.store.marks_at_once(),
                SentMark::Pending => false,
                // Requests leave in the order of their nonces.
                SentMark::Set if self.in_turn.is_empty() => return None,
                SentMark::Set => true,
            };
            if is_marked_in_turn {
                self.in_turn.push(queued);
                return Some(MissingMark::JobInTurn);
            }
            if leased.mark == SentMark::Unset {
                outcomes.mark_sent(leased);
            }
            MissingMark::Job
        };
        if self.awaiting.is_empty() {
            outcomes.record(RecordEvent::MarkAwaited);
        }
        self.awaiting.push(queued);
        Some(missing)
    }

    /// Marks the jobs of this turn. Returns their attempts.
    pub(super) fn mark_in_turn(
        &mut self,
        jobs: &mut FxHashMap<JobId, Box<LeasedJob>>,
        outcomes: &mut Outcomes,
    ) -> Vec<QueuedAttempt> {
        let attempts = std::mem::take(&mut self.in_turn);
        if attempts.is_empty() {
            return attempts;
        }
        let leased = attempts.iter().filter_map(|queued| jobs.get(&queued.job));
        let leases: Vec<JobLease> =
            leased.filter(|leased| leased.mark == SentMark::Unset).map(|leased| leased.lease).collect();
        let unmarked = self.context.store.mark_sent(&leases, wall_ms());
        for lease in &leases {
            let Some(leased) = jobs.get_mut(&lease.number) else { continue };
            if unmarked.contains(lease) {
                outcomes.mark_sent(leased);
            } else {
                leased.mark = SentMark::Set;
            }
        }
        attempts
    }

    /// Counts a job that is due.
    pub(super) fn job_due(&mut self, waits: bool) {
        self.ahead.job_due(waits);
    }

    /// Whether jobs are marked ahead.
    pub(super) fn marks_ahead(&self) -> bool {
        self.ahead.max_marked().is_some()
    }

    /// Marks the next jobs ahead, if marking takes time; a group of records is about to be written.
    pub(super) fn mark_ahead(
        &mut self,
        dispatch: &Dispatch,
        jobs: &mut FxHashMap<JobId, Box<LeasedJob>>,
        outcomes: &mut Outcomes,
    ) {
        self.ahead.begin_round_trip();
        let Some(max_jobs) = self.ahead.max_marked() else { return };
        for job in dispatch.next_jobs(max_jobs) {
            if let Some(leased) = jobs.get_mut(&job).filter(|leased| leased.mark == SentMark::Unset) {
                outcomes.mark_sent(leased);
            }
        }
    }

    /// Takes in recorded high-water marks.
    pub(super) fn recorded(&mut self, high_water: &[(u32, u64)]) {
        for (key, mark) in high_water {
            if let Some(of_key) = self.high_water.get_mut(*key as usize) {
                of_key.durable = of_key.durable.max(*mark);
            }
        }
    }

    /// Takes in recorded marks of jobs, except those whose leases had expired. Returns the jobs that are lost: the store
    /// has given them to another sender or requeued them.
    pub(super) fn sent_recorded(
        jobs: &mut FxHashMap<JobId, Box<LeasedJob>>,
        sent: &[JobLease],
        stale: &[JobLease],
    ) -> Vec<JobId> {
        let mut lost = Vec::new();
        for lease in sent {
            let Some(leased) = jobs.get_mut(&lease.number).filter(|leased| leased.lease == *lease) else { continue };
            leased.mark = if stale.contains(lease) { SentMark::Unset } else { SentMark::Set };
            if leased.mark == SentMark::Unset && leased.in_flight.is_none() {
                lost.push(lease.number);
            }
        }
        lost
    }

    /// Whether attempts wait.
    pub(super) fn has_awaiting(&self) -> bool {
        !self.awaiting.is_empty()
    }

    /// Whether an attempt with this key waits.
    pub(super) fn awaits(&self, key: usize) -> bool {
        self.awaiting.iter().chain(&self.in_turn).any(|queued| queued.key == key)
    }

    /// Takes the waiting attempts of these jobs and keys.
    pub(super) fn take_awaiting(&mut self, is_meant: impl Fn(&QueuedAttempt) -> bool) -> Vec<QueuedAttempt> {
        let in_turn = self.in_turn.extract_if(.., |queued| is_meant(queued));
        self.awaiting.extract_if(.., |queued| is_meant(queued)).chain(in_turn).collect()
    }
}
