//! A store that ends with its process.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::lane::{JobLane, MAX_CLAIM_LANES};
use super::leases::{JobLease, Leases};
use super::ticket::StoreFuture;
use super::uses::KeyUsageCounter;
use super::waiting::{SubmitBatch, SubmitQueue, SubmitResult};
use super::{
    ActiveSenders, ClaimReply, ClaimRequest, JobChange, JobCounts, JobFilter, JobOrder, JobSelector, JobStep, KeyUsage,
    QueueBounds, Receipt, RecordReply, RecordRequest, Recovery, Store, StoreError, StoredKeyState, reason,
};
use crate::decide::Nanos;
use crate::machine::clock::Clock;
use crate::send::job::{
    Job, JobDetail, JobEdit, JobEntry, JobEvent, JobStatus, MAX_JOB_EVENTS, StoredAttempt, StoredResponse, UnixMs,
};
use crate::send::state::State;

/// A claim ends the time of so many jobs at once, and queues so many that are due.
const MAX_DUE_PER_CLAIM: usize = 1000;

/// Jobs in this process's memory.
#[derive(Debug)]
pub struct MemoryStore {
    inner: Mutex<MemoryStoreState>,
    clock: Clock,
    arrivals: watch::Sender<u64>,
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct MemoryStoreState {
    bounds: QueueBounds,
    order: JobOrder,
    jobs: BTreeMap<u64, MemoryJob>,
    last_number: u64,
    ids: HashMap<String, u64>,
    queued: BTreeMap<JobLane, BTreeSet<QueuePosition>>,
    /// The last lane that a claim told of, if it did not tell of all.
    last_listed_lane: Option<JobLane>,
    retries: BTreeSet<(UnixMs, u64)>,
    expiries: BTreeSet<(UnixMs, u64)>,
    counts: JobCounts,
    leases: Leases,
    keys: BTreeMap<String, String>,
    submit_queue: SubmitQueue,
    has_sender: bool,
    /// Jobs that come to one of these are kept no longer.
    discarded_states: Vec<State>,
    /// So often jobs became claimable.
    arrival_count: u64,
}

/// Priority, rank, number.
type QueuePosition = (Reverse<i32>, i64, u64);

#[derive(Debug)]
struct MemoryJob {
    entry: JobEntry,
    response: Option<StoredResponse>,
    history: Vec<JobEvent>,
    bytes: u64,
}

impl MemoryStore {
    /// An empty queue.
    pub fn new(bounds: QueueBounds, order: JobOrder) -> Self {
        let inner = MemoryStoreState {
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
        };
        let clock = Clock::starting_in(Nanos::ZERO);
        Self { inner: Mutex::new(inner), clock, arrivals: watch::Sender::new(0), changes: watch::Sender::new(0) }
    }

    /// Keeps jobs no longer that come to one of these states, for processes that go on for ever; their names are free
    /// again. Expired ones have to stay if they are to be given more time.
    #[must_use]
    pub fn discarding(self, states: &[State]) -> Self {
        self.lock().discarded_states = states.to_vec();
        self
    }

    fn lock(&self) -> MutexGuard<'_, MemoryStoreState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does it, lets in who waits for room, and tells who watches.
    fn update<T>(&self, does: impl FnOnce(&mut MemoryStoreState) -> T) -> T {
        let mut inner = self.lock();
        let (counts, arrived) = (inner.counts, inner.arrival_count);
        let done = does(&mut inner);
        inner.admit_waiting();
        if inner.counts != counts {
            self.changes.send_modify(|n| *n += 1);
        }
        if inner.arrival_count != arrived {
            self.arrivals.send_modify(|n| *n += 1);
        }
        done
    }
}

impl Store for MemoryStore {
    fn submit(&self, batch: Vec<Job>) -> StoreFuture<Vec<Receipt>> {
        let (reply, ticket) = StoreFuture::new();
        self.update(|inner| inner.submit_queue.push(SubmitBatch::new(batch, reply)));
        ticket
    }

    fn start_sending(&self, _: UnixMs) -> Result<Recovery, StoreError> {
        let mut inner = self.lock();
        if std::mem::replace(&mut inner.has_sender, true) {
            return Err(StoreError::AnotherSender("memory".into(), Some(std::process::id())));
        }
        Ok(Recovery::default())
    }

    fn claim(&self, claim: ClaimRequest) -> StoreFuture<ClaimReply> {
        let now = self.clock.now();
        StoreFuture::ready(self.update(|inner| inner.claim(&claim, now)))
    }

    fn record(&self, record: RecordRequest) -> StoreFuture<RecordReply> {
        StoreFuture::ready(self.update(|inner| inner.record(record)))
    }

    fn mark_sent(&self, lease: JobLease, at: UnixMs) -> bool {
        self.lock().mark_sent(lease, at)
    }

    fn renew(&self, leases: &[JobLease], length: Nanos) -> Vec<JobLease> {
        self.lock().leases.renew(leases, self.clock.now() + length)
    }

    fn counts(&self) -> Result<JobCounts, StoreError> {
        Ok(self.lock().counts)
    }

    fn queued_by_key(&self) -> Result<Vec<(Option<String>, u64)>, StoreError> {
        Ok(JobLane::by_key(self.lock().queued.iter().map(|(lane, jobs)| (lane.clone(), jobs.len() as u64))))
    }

    fn expiring(&self, before: UnixMs, most: usize) -> Result<usize, StoreError> {
        Ok(self.lock().expiries.range(..(before, 0)).take(most).count())
    }

    fn list(&self, filter: &JobFilter, after: u64, most: usize) -> Result<Vec<JobEntry>, StoreError> {
        let inner = self.lock();
        let entries = inner.jobs.range(after.saturating_add(1)..).map(|(_, kept)| &kept.entry);
        Ok(entries.filter(|entry| filter.matches(entry)).take(most).cloned().collect())
    }

    fn inspect(&self, which: &JobSelector) -> Result<Option<JobDetail>, StoreError> {
        let inner = self.lock();
        let number = match which {
            JobSelector::Number(number) => Some(number),
            JobSelector::Id(id) => inner.ids.get(id),
        };
        let kept = number.and_then(|number| inner.jobs.get(number));
        Ok(kept.map(|kept| JobDetail {
            entry: kept.entry.clone(),
            response: kept.response.clone(),
            history: kept.history.clone(),
        }))
    }

    fn edit(&self, number: u64, edit: JobEdit, now: UnixMs) -> StoreFuture<bool> {
        StoreFuture::ready(Ok(self.update(|inner| inner.edit(number, edit, now))))
    }

    fn retry(&self, filter: JobFilter, expires: Option<UnixMs>, now: UnixMs) -> StoreFuture<u64> {
        StoreFuture::ready(Ok(self.update(|inner| inner.retry(&filter, expires, now))))
    }

    fn purge(&self, filter: JobFilter) -> StoreFuture<u64> {
        StoreFuture::ready(Ok(self.update(|inner| inner.purge(&filter))))
    }

    fn key_states(&self) -> Result<Vec<StoredKeyState>, StoreError> {
        let inner = self.lock();
        Ok(inner.keys.iter().map(|(key, note)| StoredKeyState { key: key.clone(), state: note.clone() }).collect())
    }

    fn arrivals(&self) -> watch::Receiver<u64> {
        self.arrivals.subscribe()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn active_senders(&self) -> Result<ActiveSenders, StoreError> {
        Ok(if self.lock().has_sender { ActiveSenders::Process(Some(std::process::id())) } else { ActiveSenders::None })
    }

    fn key_usage(&self) -> Result<Vec<KeyUsage>, StoreError> {
        let mut uses = KeyUsageCounter::default();
        for status in self.lock().entries().map(|entry| &entry.status) {
            if let Some(StoredAttempt { key: Some(key), sent_at: sent, .. }) = &status.last_attempt {
                uses.add(key, *sent, status.state == State::Done);
            }
        }
        Ok(uses.into_usage())
    }
}

impl MemoryStoreState {
    fn admit_waiting(&mut self) {
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
            reason: reason::SUBMITTED.into(),
            attempts: 0,
            maybe_sent: false,
            retry_at: None,
            last_attempt: None,
        };
        let entry = JobEntry { number, job: job.clone(), status };
        self.add(MemoryJob { entry, response: None, history: Vec::new(), bytes });
        SubmitResult::Admitted(Receipt::Accepted(number))
    }

    fn add(&mut self, kept: MemoryJob) {
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

    fn remove(&mut self, number: u64) -> Option<MemoryJob> {
        let kept = self.jobs.remove(&number)?;
        let JobEntry { job, status, .. } = &kept.entry;
        let lane = JobLane::of(job);
        if let Some(ready) = self.queued.get_mut(&lane) {
            ready.remove(&(Reverse(job.priority), self.order.rank(job.expires_at), number));
            if ready.is_empty() {
                self.queued.remove(&lane);
            }
        }
        remove_time(&mut self.retries, status.retry_at, number);
        remove_time(&mut self.expiries, job.expires_at, number);
        self.counts.remove(status.state, kept.bytes);
        Some(kept)
    }

    /// Changes a job, and where it stands in the lists.
    fn update_job(&mut self, number: u64, alters: impl FnOnce(&mut MemoryJob)) -> Option<JobEntry> {
        let mut kept = self.remove(number)?;
        alters(&mut kept);
        kept.bytes = kept.entry.job.bytes();
        let entry = kept.entry.clone();
        if !self.discarded_states.contains(&entry.status.state) {
            self.add(kept);
        } else if let Some(id) = &entry.job.id {
            self.ids.remove(id);
        }
        Some(entry)
    }

    fn claim(&mut self, claim: &ClaimRequest, now: Nanos) -> Result<ClaimReply, StoreError> {
        if !self.has_sender {
            return Err(StoreError::NotSending);
        }
        for (number, _) in self.leases.expired(now) {
            self.leases.release(number);
            self.update_job(number, |kept| kept.requeue(claim.now, reason::LEASE_EXPIRED, reason::LEASE_EXPIRED));
        }
        let mut claimed = ClaimReply::default();
        for number in due_numbers(&self.expiries, claim.now) {
            let expired =
                self.update_job(number, |kept| kept.set_state(State::Expired, claim.now, reason::EXPIRED, true));
            claimed.expired.extend(expired);
        }
        for number in due_numbers(&self.retries, claim.now) {
            self.update_job(number, |kept| kept.set_state(State::Queued, claim.now, reason::RETRY_DUE, false));
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
                    kept.set_state(State::Leased, claim.now, reason::CLAIMED, false);
                    kept.entry.status.last_attempt = sent;
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

    /// Lanes that are not empty; if there are too many, those that were not told last.
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

    fn record(&mut self, record: RecordRequest) -> Result<RecordReply, StoreError> {
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

    fn mark_sent(&mut self, lease: JobLease, sent: UnixMs) -> bool {
        let held = self.leases.get(lease).and_then(|_| self.jobs.get_mut(&lease.number));
        held.map(|kept| kept.entry.status.last_attempt = Some(StoredAttempt::at(sent))).is_some()
    }

    fn edit(&mut self, number: u64, edit: JobEdit, now: UnixMs) -> bool {
        let state = self.jobs.get(&number).map(|kept| kept.entry.status.state);
        let Some(state) = state.filter(|state| state.is_editable()) else { return false };
        let edited = self.update_job(number, |kept| {
            edit.apply(&mut kept.entry.job);
            let retry_at = kept.entry.status.retry_at;
            kept.set_state(state, now, reason::EDITED, true);
            kept.entry.status.retry_at = retry_at;
        });
        edited.is_some()
    }

    fn retry(&mut self, filter: &JobFilter, expires: Option<UnixMs>, now: UnixMs) -> u64 {
        let may = |entry: &&JobEntry| entry.may_retry(expires, now) && filter.matches(entry);
        let numbers: Vec<u64> = self.entries().filter(may).map(|entry| entry.number).collect();
        for number in &numbers {
            self.update_job(*number, |kept| {
                kept.entry.job.expires_at = expires.or(kept.entry.job.expires_at);
                kept.entry.status.attempts = 0;
                kept.set_state(State::Queued, now, reason::RETRIED, true);
            });
        }
        numbers.len() as u64
    }

    fn purge(&mut self, filter: &JobFilter) -> u64 {
        let may = |entry: &&JobEntry| entry.status.state != State::Leased && filter.matches(entry);
        let numbers: Vec<u64> = self.entries().filter(may).map(|entry| entry.number).collect();
        for number in &numbers {
            if let Some(id) = self.remove(*number).and_then(|kept| kept.entry.job.id) {
                self.ids.remove(&id);
            }
        }
        numbers.len() as u64
    }

    fn entries(&self) -> impl Iterator<Item = &JobEntry> {
        self.jobs.values().map(|kept| &kept.entry)
    }
}

impl MemoryJob {
    fn set_state(&mut self, state: State, at: UnixMs, reason: &str, note: bool) {
        let status = &mut self.entry.status;
        (status.state, status.changed_at, status.retry_at) = (state, at, None);
        reason.clone_into(&mut status.reason);
        if note {
            self.add_event(None);
        }
    }

    /// Keeps where it is now as an event.
    fn add_event(&mut self, attempt: Option<StoredAttempt>) {
        let status = &self.entry.status;
        let event = JobEvent { at: status.changed_at, state: status.state, reason: status.reason.clone(), attempt };
        if self.history.len() == MAX_JOB_EVENTS {
            self.history.remove(0);
        }
        self.history.push(event);
    }

    /// Back to the queue without word of what came of it.
    fn requeue(&mut self, at: UnixMs, unsent: &str, sent: &str) {
        let was_sent = self.entry.status.last_attempt.is_some();
        self.entry.status.maybe_sent |= was_sent;
        self.entry.status.attempts += u32::from(was_sent);
        self.set_state(State::Queued, at, if was_sent { sent } else { unsent }, true);
    }

    fn apply_change(&mut self, change: JobChange) {
        let status = &mut self.entry.status;
        if change.step == JobStep::Sent {
            status.last_attempt = Some(change.attempt.unwrap_or_else(|| StoredAttempt::at(change.at)));
            return;
        }
        status.attempts += u32::from(change.attempt.is_some());
        match &change.attempt {
            Some(attempt) => status.last_attempt = Some(attempt.clone()),
            None if change.step == JobStep::Released => status.last_attempt = None,
            None => {}
        }
        self.response = change.response.or(self.response.take());
        self.set_state(change.step.state(), change.at, &change.reason, false);
        if let JobStep::Retrying { retry_at } = change.step {
            self.entry.status.retry_at = Some(retry_at);
        }
        if change.step != JobStep::Done {
            self.add_event(change.attempt);
        }
    }
}

const fn can_expire(state: State) -> bool {
    matches!(state, State::Queued | State::Retrying)
}

/// The first of those whose time has come.
fn due_numbers(times: &BTreeSet<(UnixMs, u64)>, now: UnixMs) -> Vec<u64> {
    times.iter().take_while(|(at, _)| *at <= now).take(MAX_DUE_PER_CLAIM).map(|(_, number)| *number).collect()
}

fn remove_time(times: &mut BTreeSet<(UnixMs, u64)>, at: Option<UnixMs>, number: u64) {
    if let Some(at) = at {
        times.remove(&(at, number));
    }
}

#[cfg(test)]
mod tests;
