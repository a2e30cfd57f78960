//! Store on a Redis server, shared by any number of processes that submit, inspect and send.
//!
//! Each step of a job is one script on the server ([`script`], `lua/`), so that no process sees half of it. One thread
//! makes the calls ([`writer`]): all pending ones share a round trip, and a call that is repeated after a lost
//! connection is executed once. Another thread listens for changes by other processes ([`change_listener`]). Reads have
//! a connection of their own, on the caller's thread.
//!
//! All times on the server are those of its clock, translated in both directions. Jobs are leased to a sender's
//! *session*, which lives as long as its heartbeats, so that leases need not be renewed job by job.
//! `docs/design/redis.md` describes the data.

mod address;
mod bulk;
mod calls;
mod change_listener;
mod connection;
mod durability;
mod jobs;
mod keys;
mod list;
mod local_leases;
mod reply;
mod script;
mod writer;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};

use tokio::sync::watch;

pub use self::address::QueueAddress;
use self::connection::{QueueContext, RedisConnection, RedisFailure};
use self::list::{inspect_call, list_call, parse_entries, selected_entries};
use self::local_leases::LocalLeases;
use self::script::{RedisScript, ScriptCall};
use self::writer::{RedisStoreShared, RedisWriter};
use super::key_usage::KeyUsageCounter;
use super::keys::SharedKeys;
use super::submission_queue::SubmitBatch;
use super::work_queue::WorkQueue;
use super::{
    ActiveSenders, ClaimReply, ClaimRequest, JobCounts, JobFilter, JobLane, JobLease, JobOrder, JobSelector, KeyUsage,
    QueueBounds, Receipt, RecordReply, RecordRequest, Recovery, Store, StoreError, StoreFuture, StoredKeyState,
};
use crate::job::{Job, JobDetail, JobEdit, JobEntry, UnixMs};
use crate::state::State;
use weir_base::Nanos;
use weir_machine::lock::lock;
use weir_redis::{RedisValue, RedisValues, unique_name};

/// Jobs per script; the server does nothing else meanwhile.
const PAGE_JOBS: usize = 500;

/// Store on a Redis server.
///
/// Pending calls are finished on drop if the server replies within two seconds; batches that wait for room get
/// [`StoreError::Closed`].
pub struct RedisStore {
    shared: Arc<RedisStoreShared>,
    reader: Mutex<RedisConnection>,
    order: JobOrder,
    writer: Option<JoinHandle<()>>,
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Redis").field(&self.shared.context.address).finish()
    }
}

impl RedisStore {
    /// Connects to the server; with `create`, a missing queue is created. The order applies to a new queue only.
    ///
    /// # Errors
    /// The server is unreachable, rejects the connection, or may lose jobs ([`StoreError::NotDurable`]); the queue does
    /// not exist.
    pub fn open(
        address: &QueueAddress,
        create: bool,
        bounds: QueueBounds,
        order: JobOrder,
    ) -> Result<Self, StoreError> {
        let cannot = |why: &str| StoreError::Open(address.path(), why.to_owned());
        let client = unique_name().ok_or_else(|| cannot("the system has no random numbers"))?;
        let terms = Arc::new(QueueContext {
            address: address.clone(),
            client_name: client,
            create,
            order,
            clock_offset_ms: AtomicI64::new(0),
        });
        let mut links = [RedisConnection::new(Arc::clone(&terms)), RedisConnection::new(Arc::clone(&terms))];
        for link in &mut links {
            link.open().map_err(|trouble| store_error(address, trouble))?;
        }
        let [link, reader] = links;
        let shared = Arc::new(RedisStoreShared {
            context: terms,
            work_queue: WorkQueue::default(),
            bounds,
            arrivals: watch::Sender::new(0),
            changes: watch::Sender::new(0),
            key_changes: watch::Sender::new(0),
            unreachable_reason: Mutex::default(),
            local_leases: LocalLeases::default(),
            is_sender: AtomicBool::new(false),
            waits_for_room: AtomicBool::new(false),
        });
        let order = link.order;
        let writer = RedisWriter::new(link, Arc::clone(&shared));
        let thread = |name: &str| thread::Builder::new().name(name.into());
        let writer = thread("weir-store").spawn(move || writer.run()).map_err(|error| cannot(&error.to_string()))?;
        let store = Self { shared, reader: Mutex::new(reader), order, writer: Some(writer) };
        let shared = Arc::clone(&store.shared);
        // The listener ends by itself within a second, and is not joined.
        let (begun_sender, begun) = mpsc::channel();
        let listener = thread("weir-store-ear").spawn(move || change_listener::listen(&shared, begun_sender));
        listener.map_err(|error| cannot(&error.to_string()))?;
        // A slow start is harmless: until then the store works by polling.
        let _ = begun.recv_timeout(std::time::Duration::from_secs(1));
        Ok(store)
    }

    fn is_sender(&self) -> bool {
        self.shared.is_sender.load(Ordering::Relaxed)
    }
}

fn store_error(address: &QueueAddress, trouble: RedisFailure) -> StoreError {
    match trouble {
        RedisFailure::Unreachable(why) => StoreError::Unreachable(address.path(), why),
        RedisFailure::Fatal(why) => why,
    }
}

impl Drop for RedisStore {
    fn drop(&mut self) {
        self.shared.work_queue.close();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl Store for RedisStore {
    fn submit(&self, batch: Vec<Job>) -> StoreFuture<Vec<Receipt>> {
        let (reply, ticket) = StoreFuture::new();
        self.shared.work_queue.submit(SubmitBatch::new(batch, reply));
        ticket
    }

    fn start_sending(&self, _: UnixMs) -> Result<Recovery, StoreError> {
        let beaten = self.call_then(keys::keep_alive_call(&self.shared.context), |said| {
            let mut said = RedisValues::of(said);
            let (what, _now) = (said.next_value().int(), said.next_value());
            (Recovery { jobs: said.next_value().count(), maybe_sent: said.next_value().count() }, what)
        });
        let recovered = beaten.wait()?;
        self.shared.is_sender.store(true, Ordering::Relaxed);
        Ok(recovered)
    }

    fn claim(&self, claim: ClaimRequest) -> StoreFuture<ClaimReply> {
        if !self.is_sender() {
            return StoreFuture::ready(Err(StoreError::NotSending));
        }
        let (shared, is_endless, sent) =
            (Arc::clone(&self.shared), claim.lease_duration == Nanos::NEVER, claim.marks_sent);
        self.call_then(jobs::claim_call(&claim, &self.shared.context), move |said| {
            let (claimed, what) = jobs::parse_claim(said, &shared.context);
            // Leases with an end expire by themselves.
            if is_endless {
                shared.local_leases.add_claimed(claimed.jobs.iter().map(|(lease, _)| *lease), sent);
            }
            (claimed, what)
        })
    }

    fn record(&self, record: RecordRequest) -> StoreFuture<RecordReply> {
        if !self.is_sender() {
            return StoreFuture::ready(Err(StoreError::NotSending));
        }
        let (ask, shared) = (jobs::record_call(&record, &self.shared.context), Arc::clone(&self.shared));
        shared.local_leases.mark_sent(&record);
        self.call_then(ask, move |said| {
            shared.local_leases.remove_recorded(&record);
            jobs::parse_record(said, &record)
        })
    }

    /// The next owner of the job may be on another machine, so only the server can have the mark.
    fn marks_at_once(&self) -> bool {
        false
    }

    fn mark_sent(&self, leases: &[JobLease], _: UnixMs) -> Vec<JobLease> {
        leases.to_vec()
    }

    fn renew(&self, leases: &[JobLease], length: Nanos) -> Vec<JobLease> {
        let mut ask = ScriptCall::new(RedisScript::Renew);
        ask.arg(jobs::length_ms(length));
        for lease in leases {
            ask.number(lease.number).number(lease.token);
        }
        let held = self.call_then(ask, |said| (RedisValue::list(said), 0)).wait().unwrap_or_default();
        let held = leases.iter().zip(held).filter(|(_, held)| held.int() == 1);
        held.map(|(lease, _)| *lease).collect()
    }

    fn counts(&self) -> Result<JobCounts, StoreError> {
        let counts = jobs::parse_pairs(self.overview()?.next_value());
        let of = |state: State, what: &str| counts.get(&format!("{state}:{what}")).copied().unwrap_or(0);
        Ok(JobCounts {
            jobs: State::ALL.map(|state| of(state, "jobs")),
            bytes: State::ALL.map(|state| of(state, "bytes")),
        })
    }

    fn queued_by_key(&self) -> Result<Vec<(Option<String>, u64)>, StoreError> {
        let mut said = self.overview()?;
        let _tally = said.next_value();
        let hints = jobs::parse_pairs(said.next_value()).into_iter();
        Ok(JobLane::by_key(hints.map(|(lane, jobs)| (JobLane::read(lane.strip_prefix('=').unwrap_or_default()), jobs))))
    }

    fn expiring(&self, before: UnixMs, most: usize) -> Result<usize, StoreError> {
        let mut ask = ScriptCall::new(RedisScript::Expiring);
        ask.number(self.shared.context.to_server_time(before));
        let count = RedisValue(self.read(&ask)?).count();
        Ok(usize::try_from(count).unwrap_or(usize::MAX).min(most))
    }

    fn list(&self, filter: &JobFilter, after: u64, most: usize) -> Result<Vec<JobEntry>, StoreError> {
        if let Some(named) = selected_entries(filter, &mut |ask| self.read(&ask), &self.shared.context)? {
            let fits = named.into_iter().filter(|entry| entry.number > after && filter.matches(entry));
            return Ok(fits.take(most).collect());
        }
        let (mut found, mut after) = (Vec::new(), after);
        while found.len() < most {
            let page = parse_entries(self.read(&list_call(filter, after, PAGE_JOBS.min(most)))?, &self.shared.context);
            let Some(last) = page.last() else { break };
            after = last.number;
            found.extend(page.into_iter().filter(|entry| filter.matches(entry)));
        }
        found.truncate(most);
        Ok(found)
    }

    fn inspect(&self, job: &JobSelector) -> Result<Option<JobDetail>, StoreError> {
        Ok(reply::parse_detail(self.read(&inspect_call(job))?, &self.shared.context))
    }

    fn edit(&self, number: u64, edit: JobEdit, now: UnixMs) -> StoreFuture<bool> {
        let order = self.order;
        self.call_sequence(move |asks, shared| {
            loop {
                let found = reply::parse_detail(asks(inspect_call(&JobSelector::Number(number)))?, &shared.context);
                let Some(before) = found.map(|detail| detail.entry) else { return Ok(false) };
                if !before.status.state.is_editable() {
                    return Ok(false);
                }
                let mut after = before.job.clone();
                edit.clone().apply(&mut after);
                let what = RedisValue(asks(jobs::edit_call(&before, &after, now, order, &shared.context))?).int();
                if what >= 0 {
                    shared.notify(what);
                    return Ok(true);
                }
            }
        })
    }

    fn retry(&self, filter: JobFilter, expires: Option<UnixMs>, now: UnixMs) -> StoreFuture<u64> {
        self.bulk_update(filter, false, expires, now)
    }

    fn purge(&self, filter: JobFilter) -> StoreFuture<u64> {
        self.bulk_update(filter, true, None, UnixMs::default())
    }

    fn key_states(&self) -> Result<Vec<StoredKeyState>, StoreError> {
        let mut said = self.overview()?;
        let (_tally, _hints) = (said.next_value(), said.next_value());
        let mut keys = RedisValues::of(said.next_value().0);
        let mut notes = Vec::new();
        while !keys.is_empty() {
            let (key, note, _owner) = (keys.next_value().text(), keys.next_value().text(), keys.next_value());
            notes.push(StoredKeyState { key, state: note });
        }
        notes.retain(|note| !note.state.is_empty());
        notes.sort_unstable_by(|one, next| one.key.cmp(&next.key));
        Ok(notes)
    }

    fn arrivals(&self) -> watch::Receiver<u64> {
        self.shared.arrivals.subscribe()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    fn active_senders(&self) -> Result<ActiveSenders, StoreError> {
        let mut said = self.overview()?;
        let _ = [said.next_value(), said.next_value(), said.next_value()];
        let mut senders = RedisValues::of(said.next_value().0);
        let mut all = Vec::new();
        while !senders.is_empty() {
            let (session, who) = (senders.next_value().text(), senders.next_value().text());
            all.push(if who.is_empty() { session } else { who });
        }
        all.sort_unstable();
        Ok(if all.is_empty() { ActiveSenders::None } else { ActiveSenders::Processes(all) })
    }

    fn key_usage(&self) -> Result<Vec<KeyUsage>, StoreError> {
        let mut uses = KeyUsageCounter::default();
        for list in ["open", "done", "failed"] {
            let mut after = 0;
            loop {
                let mut ask = ScriptCall::new(RedisScript::KeyUsage);
                ask.number(after).number(PAGE_JOBS).arg(list);
                let mut said = RedisValues::of(self.read(&ask)?);
                after = said.next_value().count();
                while !said.is_empty() {
                    let (key, sent, state) =
                        (said.next_value().text(), said.next_value().int(), said.next_value().text());
                    uses.add(&key, self.shared.context.to_local_time(sent), state == State::Done.name());
                }
                if after == 0 {
                    break;
                }
            }
        }
        Ok(uses.into_usage())
    }

    fn ended(&self, numbers: &[u64]) -> Result<Vec<u64>, StoreError> {
        let mut ask = ScriptCall::new(RedisScript::Ended);
        for number in numbers {
            ask.number(number);
        }
        Ok(RedisValue::list(self.read(&ask)?).into_iter().map(|number| number.count()).collect())
    }

    fn shared_keys(&self) -> Option<&dyn SharedKeys> {
        Some(self)
    }

    fn unreachable_reason(&self) -> Option<String> {
        lock(&self.shared.unreachable_reason).clone()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
mod tests;
