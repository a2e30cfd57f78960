//! Store in memory, which ends with its process.

mod job;
mod state;

use std::sync::Mutex;

use tokio::sync::watch;

use self::state::MemoryStoreState;
use super::key_usage::KeyUsageCounter;
use super::lane::JobLane;
use super::leases::JobLease;
use super::submission_queue::SubmitBatch;
use super::ticket::StoreFuture;
use super::{
    ActiveSenders, ClaimReply, ClaimRequest, JobCounts, JobFilter, JobOrder, JobSelector, KeyUsage, QueueBounds,
    Receipt, RecordReply, RecordRequest, Recovery, Store, StoreError, StoredKeyState,
};
use crate::job::{Job, JobDetail, JobEdit, JobEntry, StoredAttempt, UnixMs};
use crate::state::State;
use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::lock::lock;

/// Store in the memory of this process.
#[derive(Debug)]
pub struct MemoryStore {
    inner: Mutex<MemoryStoreState>,
    clock: Clock,
    arrivals: watch::Sender<u64>,
    changes: watch::Sender<u64>,
}

impl MemoryStore {
    /// Empty store.
    pub fn new(bounds: QueueBounds, order: JobOrder) -> Self {
        let inner = MemoryStoreState::new(bounds, order);
        let clock = Clock::starting_in(Nanos::ZERO);
        Self { inner: Mutex::new(inner), clock, arrivals: watch::Sender::new(0), changes: watch::Sender::new(0) }
    }

    /// Drops jobs that reach one of these states, which bounds memory; their IDs are free again. Expired jobs must stay
    /// if they may get a new TTL.
    #[must_use]
    pub fn discarding(self, states: &[State]) -> Self {
        lock(&self.inner).discarded_states = states.to_vec();
        self
    }

    /// Changes the state, admits waiting submissions, and notifies watchers.
    fn update<T>(&self, change: impl FnOnce(&mut MemoryStoreState) -> T) -> T {
        let mut inner = lock(&self.inner);
        let (counts, arrived) = (inner.counts, inner.arrival_count);
        let done = change(&mut inner);
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
        let mut inner = lock(&self.inner);
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

    fn marks_at_once(&self) -> bool {
        true
    }

    fn mark_sent(&self, leases: &[JobLease], at: UnixMs) -> Vec<JobLease> {
        let mut inner = lock(&self.inner);
        leases.iter().copied().filter(|lease| !inner.mark_sent(*lease, at)).collect()
    }

    fn renew(&self, leases: &[JobLease], length: Nanos) -> Vec<JobLease> {
        lock(&self.inner).leases.renew(leases, self.clock.now() + length)
    }

    fn counts(&self) -> Result<JobCounts, StoreError> {
        Ok(lock(&self.inner).counts)
    }

    fn queued_by_key(&self) -> Result<Vec<(Option<String>, u64)>, StoreError> {
        Ok(JobLane::by_key(lock(&self.inner).queued.iter().map(|(lane, jobs)| (lane.clone(), jobs.len() as u64))))
    }

    fn expiring(&self, before: UnixMs, most: usize) -> Result<usize, StoreError> {
        Ok(lock(&self.inner).expiries.range(..(before, 0)).take(most).count())
    }

    fn list(&self, filter: &JobFilter, after: u64, most: usize) -> Result<Vec<JobEntry>, StoreError> {
        let inner = lock(&self.inner);
        let entries = inner.jobs.range(after.saturating_add(1)..).map(|(_, kept)| &kept.entry);
        Ok(entries.filter(|entry| filter.matches(entry)).take(most).cloned().collect())
    }

    fn inspect(&self, which: &JobSelector) -> Result<Option<JobDetail>, StoreError> {
        let inner = lock(&self.inner);
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
        let inner = lock(&self.inner);
        Ok(inner.keys.iter().map(|(key, note)| StoredKeyState { key: key.clone(), state: note.clone() }).collect())
    }

    fn arrivals(&self) -> watch::Receiver<u64> {
        self.arrivals.subscribe()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn active_senders(&self) -> Result<ActiveSenders, StoreError> {
        Ok(if lock(&self.inner).has_sender {
            ActiveSenders::Process(Some(std::process::id()))
        } else {
            ActiveSenders::None
        })
    }

    fn key_usage(&self) -> Result<Vec<KeyUsage>, StoreError> {
        let mut uses = KeyUsageCounter::default();
        for status in lock(&self.inner).entries().map(|entry| &entry.status) {
            if let Some(StoredAttempt { key: Some(key), sent_at: sent, .. }) = &status.last_attempt {
                uses.add(key, *sent, status.state == State::Done);
            }
        }
        Ok(uses.into_usage())
    }
}

#[cfg(test)]
mod tests;
