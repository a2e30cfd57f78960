//! A store that ends with its process.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::lane::{Lane, MOST_LANES};
use super::leases::{Lease, Leases};
use super::ticket::Ticket;
use super::uses::KeyUses;
use super::waiting::{Batch, Entrance, Waiting};
use super::{
    Bounds, Change, Claim, Claimed, Counts, Filter, KeyNote, KeyUse, Order, Receipt, Record, Recorded, Recovered,
    Sends, Step, Store, StoreError, Which, reason,
};
use crate::decide::Nanos;
use crate::machine::clock::Clock;
use crate::send::job::{Answer, Attempt, Detail, Edit, Entry, Event, Job, MOST_EVENTS, Status, UnixMs};
use crate::send::state::State;

/// A claim ends the time of so many jobs at once, and queues so many that are due.
const MOST_CHORES: usize = 1000;

/// Jobs in this process's memory.
#[derive(Debug)]
pub struct Memory {
    inner: Mutex<Inner>,
    clock: Clock,
    arrivals: watch::Sender<u64>,
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct Inner {
    bounds: Bounds,
    order: Order,
    jobs: BTreeMap<u64, Kept>,
    last: u64,
    ids: HashMap<String, u64>,
    ready: BTreeMap<Lane, BTreeSet<Place>>,
    /// The last lane that a claim told of, if it did not tell of all.
    told: Option<Lane>,
    due: BTreeSet<(UnixMs, u64)>,
    ends: BTreeSet<(UnixMs, u64)>,
    counts: Counts,
    leases: Leases,
    keys: BTreeMap<String, String>,
    waiting: Waiting,
    sending: bool,
    /// Jobs that come to one of these are kept no longer.
    forgets: Vec<State>,
    /// So often jobs became claimable.
    arrived: u64,
}

/// Priority, rank, number.
type Place = (Reverse<i32>, i64, u64);

#[derive(Debug)]
struct Kept {
    entry: Entry,
    answer: Option<Answer>,
    history: Vec<Event>,
    bytes: u64,
}

impl Memory {
    /// An empty queue.
    pub fn new(bounds: Bounds, order: Order) -> Self {
        let inner = Inner {
            bounds,
            order,
            jobs: BTreeMap::new(),
            last: 0,
            ids: HashMap::new(),
            ready: BTreeMap::new(),
            told: None,
            due: BTreeSet::new(),
            ends: BTreeSet::new(),
            counts: Counts::default(),
            leases: Leases::default(),
            keys: BTreeMap::new(),
            waiting: Waiting::default(),
            sending: false,
            forgets: Vec::new(),
            arrived: 0,
        };
        let clock = Clock::starting_in(Nanos::ZERO);
        Self { inner: Mutex::new(inner), clock, arrivals: watch::Sender::new(0), changes: watch::Sender::new(0) }
    }

    /// Keeps jobs no longer that come to one of these states, for processes that go on for ever; their names are free
    /// again. Expired ones have to stay if they are to be given more time.
    #[must_use]
    pub fn forgetting(self, states: &[State]) -> Self {
        self.inner().forgets = states.to_vec();
        self
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does it, lets in who waits for room, and tells who watches.
    fn change<T>(&self, does: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.inner();
        let (counts, arrived) = (inner.counts, inner.arrived);
        let done = does(&mut inner);
        inner.let_in();
        if inner.counts != counts {
            self.changes.send_modify(|n| *n += 1);
        }
        if inner.arrived != arrived {
            self.arrivals.send_modify(|n| *n += 1);
        }
        done
    }
}

impl Store for Memory {
    fn submit(&self, batch: Vec<Job>) -> Ticket<Vec<Receipt>> {
        let (reply, ticket) = Ticket::new();
        self.change(|inner| inner.waiting.push(Batch::new(batch, reply)));
        ticket
    }

    fn start_sending(&self, _: UnixMs) -> Result<Recovered, StoreError> {
        let mut inner = self.inner();
        if std::mem::replace(&mut inner.sending, true) {
            return Err(StoreError::SenderElsewhere("memory".into(), Some(std::process::id())));
        }
        Ok(Recovered::default())
    }

    fn claim(&self, claim: Claim) -> Ticket<Claimed> {
        let now = self.clock.now();
        Ticket::ready(self.change(|inner| inner.claim(&claim, now)))
    }

    fn record(&self, record: Record) -> Ticket<Recorded> {
        Ticket::ready(self.change(|inner| inner.record(record)))
    }

    fn mark(&self, lease: Lease, at: UnixMs) -> bool {
        self.inner().mark(lease, at)
    }

    fn renew(&self, leases: &[Lease], length: Nanos) -> Vec<Lease> {
        self.inner().leases.renew(leases, self.clock.now() + length)
    }

    fn counts(&self) -> Result<Counts, StoreError> {
        Ok(self.inner().counts)
    }

    fn hints(&self) -> Result<Vec<(Option<String>, u64)>, StoreError> {
        Ok(Lane::by_key(self.inner().ready.iter().map(|(lane, jobs)| (lane.clone(), jobs.len() as u64))))
    }

    fn expiring(&self, before: UnixMs, most: usize) -> Result<usize, StoreError> {
        Ok(self.inner().ends.range(..(before, 0)).take(most).count())
    }

    fn list(&self, filter: &Filter, after: u64, most: usize) -> Result<Vec<Entry>, StoreError> {
        let inner = self.inner();
        let entries = inner.jobs.range(after.saturating_add(1)..).map(|(_, kept)| &kept.entry);
        Ok(entries.filter(|entry| filter.fits(entry)).take(most).cloned().collect())
    }

    fn inspect(&self, which: &Which) -> Result<Option<Detail>, StoreError> {
        let inner = self.inner();
        let number = match which {
            Which::Number(number) => Some(number),
            Which::Id(id) => inner.ids.get(id),
        };
        let kept = number.and_then(|number| inner.jobs.get(number));
        Ok(kept.map(|kept| Detail {
            entry: kept.entry.clone(),
            answer: kept.answer.clone(),
            history: kept.history.clone(),
        }))
    }

    fn edit(&self, number: u64, edit: Edit, now: UnixMs) -> Ticket<bool> {
        Ticket::ready(Ok(self.change(|inner| inner.edit(number, edit, now))))
    }

    fn retry(&self, filter: Filter, expires: Option<UnixMs>, now: UnixMs) -> Ticket<u64> {
        Ticket::ready(Ok(self.change(|inner| inner.retry(&filter, expires, now))))
    }

    fn purge(&self, filter: Filter) -> Ticket<u64> {
        Ticket::ready(Ok(self.change(|inner| inner.purge(&filter))))
    }

    fn keys(&self) -> Result<Vec<KeyNote>, StoreError> {
        let inner = self.inner();
        Ok(inner.keys.iter().map(|(key, note)| KeyNote { key: key.clone(), note: note.clone() }).collect())
    }

    fn arrivals(&self) -> watch::Receiver<u64> {
        self.arrivals.subscribe()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn sender(&self) -> Result<Sends, StoreError> {
        Ok(if self.inner().sending { Sends::Process(Some(std::process::id())) } else { Sends::Nobody })
    }

    fn key_uses(&self) -> Result<Vec<KeyUse>, StoreError> {
        let mut uses = KeyUses::default();
        for status in self.inner().entries().map(|entry| &entry.status) {
            if let Some(Attempt { key: Some(key), sent, .. }) = &status.last {
                uses.add(key, *sent, status.state == State::Done);
            }
        }
        Ok(uses.all())
    }
}

impl Inner {
    fn let_in(&mut self) {
        loop {
            let mut waiting = std::mem::take(&mut self.waiting);
            let again =
                waiting.admit(usize::MAX, usize::MAX, |job| Ok::<_, StoreError>(self.enter(job))).unwrap_or(false);
            waiting.commit();
            self.waiting = waiting;
            if !again {
                break;
            }
        }
    }

    fn enter(&mut self, job: &Job) -> Entrance {
        let known = job.id.as_ref().and_then(|id| self.jobs.get(self.ids.get(id)?));
        if let Some(kept) = known {
            return Entrance::In(Receipt::Known(kept.entry.number, kept.entry.status.state));
        }
        let bytes = job.bytes();
        if bytes > self.bounds.bytes {
            return Entrance::TooLarge { bytes, most_bytes: self.bounds.bytes };
        }
        if !self.counts.has_room(self.bounds, bytes) {
            return Entrance::NoRoom;
        }
        self.last += 1;
        let number = self.last;
        if let Some(id) = &job.id {
            self.ids.insert(id.clone(), number);
        }
        let status = Status {
            state: State::Queued,
            changed: job.created,
            reason: reason::SUBMITTED.into(),
            tries: 0,
            maybe_sent: false,
            retry_at: None,
            last: None,
        };
        let entry = Entry { number, job: job.clone(), status };
        self.add(Kept { entry, answer: None, history: Vec::new(), bytes });
        Entrance::In(Receipt::Accepted(number))
    }

    fn add(&mut self, kept: Kept) {
        let Entry { number, job, status } = &kept.entry;
        if status.state == State::Queued {
            let place = (Reverse(job.priority), self.order.rank(job.expires), *number);
            self.ready.entry(Lane::of(job)).or_default().insert(place);
            self.arrived += 1;
        }
        self.due.extend(status.retry_at.filter(|_| status.state == State::Dead).map(|at| (at, *number)));
        self.ends.extend(job.expires.filter(|_| can_expire(status.state)).map(|at| (at, *number)));
        self.counts.add(status.state, kept.bytes);
        self.jobs.insert(*number, kept);
    }

    fn remove(&mut self, number: u64) -> Option<Kept> {
        let kept = self.jobs.remove(&number)?;
        let Entry { job, status, .. } = &kept.entry;
        let lane = Lane::of(job);
        if let Some(ready) = self.ready.get_mut(&lane) {
            ready.remove(&(Reverse(job.priority), self.order.rank(job.expires), number));
            if ready.is_empty() {
                self.ready.remove(&lane);
            }
        }
        forget(&mut self.due, status.retry_at, number);
        forget(&mut self.ends, job.expires, number);
        self.counts.remove(status.state, kept.bytes);
        Some(kept)
    }

    /// Changes a job, and where it stands in the lists.
    fn alter(&mut self, number: u64, alters: impl FnOnce(&mut Kept)) -> Option<Entry> {
        let mut kept = self.remove(number)?;
        alters(&mut kept);
        kept.bytes = kept.entry.job.bytes();
        let entry = kept.entry.clone();
        if !self.forgets.contains(&entry.status.state) {
            self.add(kept);
        } else if let Some(id) = &entry.job.id {
            self.ids.remove(id);
        }
        Some(entry)
    }

    fn claim(&mut self, claim: &Claim, now: Nanos) -> Result<Claimed, StoreError> {
        if !self.sending {
            return Err(StoreError::NotSending);
        }
        for (number, _) in self.leases.lapsed(now) {
            self.leases.end(number);
            self.alter(number, |kept| kept.give_back(claim.now, reason::LAPSED, reason::LAPSED));
        }
        let mut claimed = Claimed::default();
        for number in first(&self.ends, claim.now) {
            let expired = self.alter(number, |kept| kept.go(State::Expired, claim.now, reason::EXPIRED, true));
            claimed.expired.extend(expired);
        }
        for number in first(&self.due, claim.now) {
            self.alter(number, |kept| kept.go(State::Queued, claim.now, reason::DUE, false));
        }
        let mut bytes = 0;
        for want in &claim.wants {
            for _ in 0..want.most {
                let next = self.ready.get(&want.lane).and_then(BTreeSet::first).map(|(.., number)| *number);
                let Some(number) = next.filter(|_| bytes < claim.most_bytes) else { break };
                let sent = claim.sending.then(|| Attempt { key: want.lane.key_hint.clone(), ..Attempt::at(claim.now) });
                let leased = self.alter(number, |kept| {
                    kept.go(State::Leased, claim.now, reason::CLAIMED, false);
                    kept.entry.status.last = sent;
                });
                let Some(entry) = leased else { break };
                bytes += entry.job.bytes();
                let lease = self.leases.take(number, now + claim.lease, entry.job.bytes());
                claimed.jobs.push((lease, entry));
            }
        }
        let next = [self.ends.first(), self.due.first()];
        claimed.next = next.into_iter().flatten().map(|(at, _)| *at).min();
        claimed.lanes = self.lanes();
        Ok(claimed)
    }

    /// Lanes that are not empty; if there are too many, those that were not told last.
    fn lanes(&mut self) -> Vec<Lane> {
        let after = self.told.take();
        let from = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let to = after.as_ref().map_or(Bound::Unbounded, Bound::Included);
        let rest = self.ready.range::<Lane, _>((from, Bound::Unbounded));
        let begin = self.ready.range::<Lane, _>((Bound::Unbounded, to)).filter(|_| after.is_some());
        let lanes: Vec<Lane> = rest.chain(begin).take(MOST_LANES).map(|(lane, _)| lane.clone()).collect();
        self.told = lanes.get(MOST_LANES - 1).cloned();
        lanes
    }

    fn record(&mut self, record: Record) -> Result<Recorded, StoreError> {
        if !self.sending {
            return Err(StoreError::NotSending);
        }
        let mut recorded = Recorded::default();
        for change in record.changes {
            if self.leases.get(change.lease).is_none() {
                recorded.stale.push(change.lease);
                continue;
            }
            if change.step != Step::Sent {
                self.leases.end(change.lease.number);
            }
            self.alter(change.lease.number, |kept| kept.take_step(change));
        }
        self.keys.extend(record.keys.into_iter().map(|note| (note.key, note.note)));
        Ok(recorded)
    }

    fn mark(&mut self, lease: Lease, sent: UnixMs) -> bool {
        let held = self.leases.get(lease).and_then(|_| self.jobs.get_mut(&lease.number));
        held.map(|kept| kept.entry.status.last = Some(Attempt::at(sent))).is_some()
    }

    fn edit(&mut self, number: u64, edit: Edit, now: UnixMs) -> bool {
        let state = self.jobs.get(&number).map(|kept| kept.entry.status.state);
        let Some(state) = state.filter(|state| state.editable()) else { return false };
        let edited = self.alter(number, |kept| {
            edit.apply(&mut kept.entry.job);
            let retry_at = kept.entry.status.retry_at;
            kept.go(state, now, reason::EDITED, true);
            kept.entry.status.retry_at = retry_at;
        });
        edited.is_some()
    }

    fn retry(&mut self, filter: &Filter, expires: Option<UnixMs>, now: UnixMs) -> u64 {
        let may = |entry: &&Entry| entry.may_retry(expires, now) && filter.fits(entry);
        let numbers: Vec<u64> = self.entries().filter(may).map(|entry| entry.number).collect();
        for number in &numbers {
            self.alter(*number, |kept| {
                kept.entry.job.expires = expires.or(kept.entry.job.expires);
                kept.entry.status.tries = 0;
                kept.go(State::Queued, now, reason::RETRIED, true);
            });
        }
        numbers.len() as u64
    }

    fn purge(&mut self, filter: &Filter) -> u64 {
        let may = |entry: &&Entry| entry.status.state != State::Leased && filter.fits(entry);
        let numbers: Vec<u64> = self.entries().filter(may).map(|entry| entry.number).collect();
        for number in &numbers {
            if let Some(id) = self.remove(*number).and_then(|kept| kept.entry.job.id) {
                self.ids.remove(&id);
            }
        }
        numbers.len() as u64
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.jobs.values().map(|kept| &kept.entry)
    }
}

impl Kept {
    fn go(&mut self, state: State, at: UnixMs, reason: &str, note: bool) {
        let status = &mut self.entry.status;
        (status.state, status.changed, status.retry_at) = (state, at, None);
        reason.clone_into(&mut status.reason);
        if note {
            self.note(None);
        }
    }

    /// Keeps where it is now as an event.
    fn note(&mut self, attempt: Option<Attempt>) {
        let status = &self.entry.status;
        let event = Event { at: status.changed, state: status.state, reason: status.reason.clone(), attempt };
        if self.history.len() == MOST_EVENTS {
            self.history.remove(0);
        }
        self.history.push(event);
    }

    /// Back to the queue without word of what came of it.
    fn give_back(&mut self, at: UnixMs, unsent: &str, sent: &str) {
        let was_sent = self.entry.status.last.is_some();
        self.entry.status.maybe_sent |= was_sent;
        self.entry.status.tries += u32::from(was_sent);
        self.go(State::Queued, at, if was_sent { sent } else { unsent }, true);
    }

    fn take_step(&mut self, change: Change) {
        let status = &mut self.entry.status;
        if change.step == Step::Sent {
            status.last = Some(change.attempt.unwrap_or_else(|| Attempt::at(change.at)));
            return;
        }
        status.tries += u32::from(change.attempt.is_some());
        match &change.attempt {
            Some(attempt) => status.last = Some(attempt.clone()),
            None if change.step == Step::Released => status.last = None,
            None => {}
        }
        self.answer = change.answer.or(self.answer.take());
        self.go(change.step.state(), change.at, &change.reason, false);
        if let Step::Dead { retry_at } = change.step {
            self.entry.status.retry_at = Some(retry_at);
        }
        if change.step != Step::Done {
            self.note(change.attempt);
        }
    }
}

const fn can_expire(state: State) -> bool {
    matches!(state, State::Queued | State::Dead)
}

/// The first of those whose time has come.
fn first(times: &BTreeSet<(UnixMs, u64)>, now: UnixMs) -> Vec<u64> {
    times.iter().take_while(|(at, _)| *at <= now).take(MOST_CHORES).map(|(_, number)| *number).collect()
}

fn forget(times: &mut BTreeSet<(UnixMs, u64)>, at: Option<UnixMs>, number: u64) {
    if let Some(at) = at {
        times.remove(&(at, number));
    }
}

#[cfg(test)]
mod tests;
