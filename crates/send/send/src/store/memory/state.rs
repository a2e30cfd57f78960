//! State of a store in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use super::job::MemoryJob;
use crate::job::{Job, JobEdit, JobEntry, JobStatus, StoredAttempt, UnixMs};
use crate::state::State;
use crate::store::lane::{JobLane, MAX_CLAIM_LANES};
use crate::store::leases::{ExpiredLease, JobLease, Leases};
use crate::store::submission_queue::{SubmitQueue, SubmitResult};
use crate::store::{
    ClaimReply, ClaimRequest, JobCounts, JobFilter, JobOrder, JobStep, QueueBounds, Receipt, RecordReply,
    RecordRequest, StoreError, audit_reason,
};
use weir_base::Nanos;

/// Maximum number of jobs that one claim expires, and that it requeues.
const MAX_DUE_PER_CLAIM: usize = 1000;

/// Jobs, their indexes and counts.
#[derive(Debug)]
pub(super) struct MemoryStoreState {
    pub(super) bounds: QueueBounds,
    pub(super) order: JobOrder,
    /// In boxes: each change of state takes the job out and puts it back.
    pub(super) jobs: BTreeMap<u64, Box<MemoryJob>>,
    pub(super) last_number: u64,
    pub(super) ids: HashMap<String, u64>,
    pub(super) queued: BTreeMap<JobLane, BTreeSet<QueuePosition>>,
    /// Last lane that a claim returned, if there were more.
    pub(super) last_listed_lane: Option<JobLane>,
    pub(super) retries: BTreeSet<(UnixMs, u64)>,
    pub(super) expiries: BTreeSet<(UnixMs, u64)>,
    pub(super) counts: JobCounts,
    pub(super) leases: Leases,
    pub(super) keys: BTreeMap<String, String>,
    pub(super) submit_queue: SubmitQueue,
    pub(super) has_sender: bool,
    /// States in which jobs are dropped.
    pub(super) discarded_states: Vec<State>,
    /// Number of times that jobs became claimable.
    pub(super) arrival_count: u64,
}

/// Priority, rank, number.
pub(super) type QueuePosition = (Reverse<i32>, i64, u64);

impl MemoryStoreState {
    pub(super) fn new(bounds: QueueBounds, order: JobOrder) -> Self {
        Self {
            bounds,
            order,
            jobs: BTreeMap::new(),
            last_number: 0,
            ids: HashMap::new(),
            queued: BTreeMap::new(),
            last_listed_lane: None,
            retries: BTreeSet::new(),
            expiries: BTreeSet::new(),
            counts: JobCounts::default(),
            leases: Leases::default(),
            keys: BTreeMap::new(),
            submit_queue: SubmitQueue::default(),
            has_sender: false,
            discarded_states: Vec::new(),
            arrival_count: 0,
        }
    }

    pub(super) fn admit_waiting(&mut self) {
        loop {
            let mut waiting = std::mem::take(&mut self.submit_queue);
            let again =
                waiting.admit(usize::MAX, usize::MAX, |job| Ok::<_, StoreError>(self.try_submit(job))).unwrap_or(false);
            waiting.commit();
            self.submit_queue = waiting;
            if !again {
                break;
            }
        }
    }

    fn try_submit(&mut self, job: &Job) -> SubmitResult {
        let known = job.id.as_ref().and_then(|id| self.jobs.get(self.ids.get(id)?));
        if let Some(kept) = known {
            return SubmitResult::Admitted(Receipt::Duplicate(kept.entry.number, kept.entry.status.state));
        }
        let bytes = job.bytes();
        if bytes > self.bounds.bytes {
            return SubmitResult::TooLarge { bytes, most_bytes: self.bounds.bytes };
        }
        if !self.counts.has_room(self.bounds, bytes) {
            return SubmitResult::QueueFull;
        }
        self.last_number += 1;
        let number = self.last_number;
        if let Some(id) = &job.id {
            self.ids.insert(id.clone(), number);
        }
        let status = JobStatus {
            state: State::Queued,
            changed_at: job.created_at,
            reason: audit_reason::SUBMITTED.into(),
            attempts: 0,
            maybe_sent: false,
            retry_at: None,
            last_attempt: None,
        };
        let entry = JobEntry { number, job: job.clone(), status };
        self.add(Box::new(MemoryJob { entry, response: None, history: Vec::new(), bytes }));
        SubmitResult::Admitted(Receipt::Accepted(number))
    }

    fn add(&mut self, kept: Box<MemoryJob>) {
        let JobEntry { number, job, status } = &kept.entry;
        if status.state == State::Queued {
            let place = (Reverse(job.priority), self.order.rank(job.expires_at), *number);
            self.queued.entry(JobLane::of(job)).or_default().insert(place);
            self.arrival_count += 1;
        }
        self.retries.extend(status.retry_at.filter(|_| status.state == State::Retrying).map(|at| (at, *number)));
        self.expiries.extend(job.expires_at.filter(|_| can_expire(status.state)).map(|at| (at, *number)));
        self.counts.add(status.state, kept.bytes);
        self.jobs.insert(*number, kept);
    }

    fn remove(&mut self, number: u64) -> Option<Box<MemoryJob>> {
        let kept = self.jobs.remove(&number)?;
        let JobEntry { job, status, .. } = &kept.entry;
        if status.state == State::Queued {
            let lane = JobLane::of(job);
            if let Some(ready) = self.queued.get_mut(&lane) {
                ready.remove(&(Reverse(job.priority), self.order.rank(job.expires_at), number));
                if ready.is_empty() {
                    self.queued.remove(&lane);
                }
            }
        }
        remove_time(&mut self.retries, status.retry_at, number);
        remove_time(&mut self.expiries, job.expires_at, number);
        self.counts.remove(status.state, kept.bytes);
        Some(kept)
    }

    /// Changes a job and its positions in the indexes. Returns what `alters` returns; None without such a job.
    fn update_job<T>(&mut self, number: u64, alters: impl FnOnce(&mut MemoryJob) -> T) -> Option<T> {
        let mut kept = self.remove(number)?;
        let altered = alters(&mut kept);
        kept.bytes = kept.entry.job.bytes();
        if !self.discarded_states.contains(&kept.entry.status.state) {
            self.add(kept);
        } else if let Some(id) = &kept.entry.job.id {
            self.ids.remove(id);
        }
        Some(altered)
    }

    pub(super) fn claim(&mut self, claim: &ClaimRequest, now: Nanos) -> Result<ClaimReply, StoreError> {
        if !self.has_sender {
            return Err(StoreError::NotSending);
        }
        for ExpiredLease { job, .. } in self.leases.expired(now) {
            self.leases.release(job);
            self.update_job(job, |kept| {
                kept.requeue(claim.now, audit_reason::LEASE_EXPIRED, audit_reason::LEASE_EXPIRED);
            });
        }
        let mut claimed = ClaimReply::default();
        for number in due_numbers(&self.expiries, claim.now) {
            let expired = self.update_job(number, |kept| {
                kept.set_state(State::Expired, claim.now, audit_reason::EXPIRED, true);
                kept.entry.clone()
            });
            claimed.expired.extend(expired);
        }
        for number in due_numbers(&self.retries, claim.now) {
            self.update_job(number, |kept| kept.set_state(State::Queued, claim.now, audit_reason::RETRY_DUE, false));
        }
        let mut bytes = 0;
        for want in &claim.lanes {
            for _ in 0..want.max_jobs {
                let next = self.queued.get(&want.lane).and_then(BTreeSet::first).map(|(.., number)| *number);
                let Some(number) = next.filter(|_| bytes < claim.max_bytes) else { break };
                let sent = claim
                    .marks_sent
                    .then(|| StoredAttempt { key: want.lane.key_hint.clone(), ..StoredAttempt::at(claim.now) });
                let leased = self.update_job(number, |kept| {
                    kept.set_state(State::Leased, claim.now, audit_reason::CLAIMED, false);
                    kept.entry.status.last_attempt = sent;
                    kept.entry.clone()
                });
                let Some(entry) = leased else { break };
                bytes += entry.job.bytes();
                let lease = self.leases.acquire(number, now + claim.lease_duration, entry.job.bytes());
                claimed.jobs.push((lease, entry));
            }
        }
        let next = [self.expiries.first(), self.retries.first()];
        claimed.next_due = next.into_iter().flatten().map(|(at, _)| *at).min();
        claimed.lanes = self.list_lanes();
        Ok(claimed)
    }

    /// Lanes with queued jobs; if there are too many, those after the last one that was returned.
    fn list_lanes(&mut self) -> Vec<JobLane> {
        let after = self.last_listed_lane.take();
        let from = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let to = after.as_ref().map_or(Bound::Unbounded, Bound::Included);
        let rest = self.queued.range::<JobLane, _>((from, Bound::Unbounded));
        let begin = self.queued.range::<JobLane, _>((Bound::Unbounded, to)).filter(|_| after.is_some());
        let lanes: Vec<JobLane> = rest.chain(begin).take(MAX_CLAIM_LANES).map(|(lane, _)| lane.clone()).collect();
        self.last_listed_lane = lanes.get(MAX_CLAIM_LANES - 1).cloned();
        lanes
    }

    pub(super) fn record(&mut self, record: RecordRequest) -> Result<RecordReply, StoreError> {
        if !self.has_sender {
            return Err(StoreError::NotSending);
        }
        let mut recorded = RecordReply::default();
        for change in record.changes {
            if self.leases.get(change.lease).is_none() {
                recorded.stale.push(change.lease);
                continue;
            }
            if change.step != JobStep::Sent {
                self.leases.release(change.lease.number);
            }
            self.update_job(change.lease.number, |kept| kept.apply_change(change));
        }
        self.keys.extend(record.key_states.into_iter().map(|note| (note.key, note.state)));
        Ok(recorded)
    }

    pub(super) fn mark_sent(&mut self, lease: JobLease, sent: UnixMs) -> bool {
        let held = self.leases.get(lease).and_then(|_| self.jobs.get_mut(&lease.number));
        held.map(|kept| kept.entry.status.last_attempt = Some(StoredAttempt::at(sent))).is_some()
    }

    pub(super) fn edit(&mut self, number: u64, edit: JobEdit, now: UnixMs) -> bool {
        let state = self.jobs.get(&number).map(|kept| kept.entry.status.state);
        let Some(state) = state.filter(|state| state.is_editable()) else { return false };
        let edited = self.update_job(number, |kept| {
            edit.apply(&mut kept.entry.job);
            let retry_at = kept.entry.status.retry_at;
            kept.set_state(state, now, audit_reason::EDITED, true);
            kept.entry.status.retry_at = retry_at;
        });
        edited.is_some()
    }

    pub(super) fn retry(&mut self, filter: &JobFilter, expires: Option<UnixMs>, now: UnixMs) -> u64 {
        let may = |entry: &&JobEntry| entry.may_retry(expires, now) && filter.matches(entry);
        let numbers: Vec<u64> = self.entries().filter(may).map(|entry| entry.number).collect();
        for number in &numbers {
            self.update_job(*number, |kept| {
                kept.entry.job.expires_at = expires.or(kept.entry.job.expires_at);
                kept.entry.status.attempts = 0;
                kept.set_state(State::Queued, now, audit_reason::REQUEUED_BY_HAND, true);
            });
        }
        numbers.len() as u64
    }

    pub(super) fn purge(&mut self, filter: &JobFilter) -> u64 {
        let may = |entry: &&JobEntry| entry.status.state != State::Leased && filter.matches(entry);
        let numbers: Vec<u64> = self.entries().filter(may).map(|entry| entry.number).collect();
        for number in &numbers {
            if let Some(id) = self.remove(*number).and_then(|kept| kept.entry.job.id) {
                self.ids.remove(&id);
            }
        }
        numbers.len() as u64
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &JobEntry> {
        self.jobs.values().map(|kept| &kept.entry)
    }
}

const fn can_expire(state: State) -> bool {
    matches!(state, State::Queued | State::Retrying)
}

/// Jobs whose time has come, in order.
fn due_numbers(times: &BTreeSet<(UnixMs, u64)>, now: UnixMs) -> Vec<u64> {
    times.iter().take_while(|(at, _)| *at <= now).take(MAX_DUE_PER_CLAIM).map(|(_, number)| *number).collect()
}

fn remove_time(times: &mut BTreeSet<(UnixMs, u64)>, at: Option<UnixMs>, number: u64) {
    if let Some(at) = at {
        times.remove(&(at, number));
    }
}
