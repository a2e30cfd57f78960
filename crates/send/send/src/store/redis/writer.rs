//! Writer thread: all pending calls share a round trip.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::redis::Value;
use tokio::sync::watch;

use super::connection::{QueueContext, RedisConnection, RedisFailure};
use super::jobs;
use super::local_leases::LocalLeases;
use super::script::{RedisScript, ScriptCall};
use crate::store::StoreError;
use crate::store::submission_queue::{SubmitQueue, SubmitResult};
use crate::store::work_queue::WorkQueue;
use crate::store::{QueueBounds, Receipt};
use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::lock::lock;
use weir_redis::{RedisValue, RedisValues};

/// Jobs per submission; the server does nothing else meanwhile.
const MAX_SUBMIT_JOBS: usize = 512;
/// Calls per round trip; the server stores as many replies for repetitions.
const MAX_GROUP_CALLS: usize = 60;
/// Time after which pending calls fail as unreachable.
const UNREACHABLE_TIMEOUT: Nanos = Nanos::from_secs(5);
/// Time for pending calls after the store is closed.
const CLOSE_TIMEOUT: Nanos = Nanos::from_secs(2);
const MIN_RETRY_PAUSE: Duration = Duration::from_millis(20);
const MAX_RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Interval in which waiting batches are retried without a notification.
const ROOM_POLL_INTERVAL: Nanos = Nanos::from_millis(500);

/// Receiver of a reply, and the local clock before the call.
pub(super) type ReplyHandler = Box<dyn FnOnce(Result<Value, StoreError>) + Send>;

pub(super) enum RedisTask {
    /// One call. A claim whose reply is lost is given back.
    Call { ask: ScriptCall, hears: ReplyHandler },
    /// A sequence of calls.
    Sequence(CallSequence),
}

/// Function that makes a sequence of calls.
type CallSequence = Box<dyn FnOnce(&mut dyn FnMut(ScriptCall) -> Result<Value, StoreError>) + Send>;

/// State shared by the threads of a store.
pub(super) struct RedisStoreShared {
    pub(super) context: Arc<QueueContext>,
    pub(super) work_queue: WorkQueue<RedisTask>,
    pub(super) bounds: QueueBounds,
    pub(super) arrivals: watch::Sender<u64>,
    pub(super) changes: watch::Sender<u64>,
    /// Changes when keys have become free, or senders have started or ended.
    pub(super) key_changes: watch::Sender<u64>,
    /// Reason why the server is unreachable, while it is.
    pub(super) unreachable_reason: Mutex<Option<String>>,
    pub(super) local_leases: LocalLeases,
    /// Whether this handle sends.
    pub(super) is_sender: AtomicBool,
    /// Whether batches wait for room.
    pub(super) waits_for_room: AtomicBool,
}

impl RedisStoreShared {
    fn set_unreachable_reason(&self, why: Option<String>) {
        *lock(&self.unreachable_reason) = why;
    }

    /// Notifies watchers of changes that a script reported.
    pub(super) fn notify(&self, what: i64) {
        let tell = |watch: &watch::Sender<u64>| watch.send_modify(|n| *n = n.wrapping_add(1));
        if what & 1 != 0 {
            tell(&self.changes);
        }
        if what & 2 != 0 {
            tell(&self.arrivals);
        }
        if what > 0 && self.waits_for_room.load(Ordering::Relaxed) {
            self.work_queue.signal_room();
        }
    }
}

/// State of the writer thread.
pub(super) struct RedisWriter {
    connection: RedisConnection,
    shared: Arc<RedisStoreShared>,
    clock: Clock,
    submit_queue: SubmitQueue,
    /// Number of the last call.
    last_call_number: u64,
    /// Jobs being submitted, under the number of their call until its reply.
    pending_submit: Option<(u64, ScriptCall)>,
    /// Time at which the queue was full.
    full_since: Option<Nanos>,
    /// Claims whose replies were lost.
    unconfirmed_claims: Vec<u64>,
    /// Time of the last heartbeat.
    last_heartbeat: Nanos,
}

impl RedisWriter {
    pub(super) fn new(connection: RedisConnection, shared: Arc<RedisStoreShared>) -> Self {
        let clock = Clock::starting_in(Nanos::ZERO);
        let (submit_queue, unconfirmed_claims) = (SubmitQueue::default(), Vec::new());
        Self {
            connection,
            shared,
            clock,
            submit_queue,
            last_call_number: 0,
            pending_submit: None,
            full_since: None,
            unconfirmed_claims,
            last_heartbeat: Nanos::ZERO,
        }
    }

    /// Works until the work queue is closed and empty.
    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let lease = shared.context.address.lease;
        loop {
            if self.submit_queue.is_empty() {
                self.full_since = None;
            }
            let now = self.clock.now();
            let mut wait = Nanos(lease.0 / 4);
            if let Some(since) = self.full_since.filter(|_| !self.submit_queue.is_empty()) {
                wait = wait.min(since + ROOM_POLL_INTERVAL - now);
            }
            // More batches may fit at once.
            if self.pending_submit.is_some() || self.full_since.is_none() && !self.submit_queue.is_empty() {
                wait = Nanos::ZERO;
            }
            let Some(taken) = shared.work_queue.take(&mut self.submit_queue, MAX_GROUP_CALLS, wait) else { break };
            let mut tasks = taken.tasks;
            if taken.may_have_room
                || self.full_since.is_some_and(|since| self.clock.now() >= since + ROOM_POLL_INTERVAL)
            {
                self.full_since = None;
                shared.waits_for_room.store(false, Ordering::Relaxed);
            }
            if shared.is_sender.load(Ordering::Relaxed) && self.clock.now() >= self.last_heartbeat + Nanos(lease.0 / 2)
            {
                tasks.push(RedisTask::Call {
                    ask: super::keys::keep_alive_call(&shared.context),
                    hears: Box::new(|_| ()),
                });
            }
            self.run_tasks(tasks);
            self.reconcile_leases();
            // Batches left at the end of the timeout fail.
            if self.pending_submit.is_some() && shared.work_queue.is_closed() {
                break;
            }
        }
        self.submit_queue.fail_all(&StoreError::Closed);
    }

    fn run_tasks(&mut self, tasks: Vec<RedisTask>) {
        let mut group = Vec::new();
        for task in tasks {
            match task {
                RedisTask::Call { ask, hears } => group.push((ask, hears)),
                RedisTask::Sequence(does) => {
                    self.call_group(std::mem::take(&mut group));
                    does(&mut |ask| self.call_one(&ask));
                }
            }
        }
        self.call_group(group);
    }

    /// Reports the leased jobs after a restart of the server, once all earlier calls have replies and lost claims are
    /// given back: until then the leased jobs are not known.
    fn reconcile_leases(&mut self) {
        if !self.connection.server_restarted || !self.unconfirmed_claims.is_empty() {
            return;
        }
        let ask = self.shared.local_leases.reconcile_call();
        if let Ok(said) = self.call_one(&ask) {
            self.connection.server_restarted = false;
            self.shared.notify(RedisValue(said).int());
        }
    }

    fn next_call_number(&mut self) -> u64 {
        self.last_call_number += 1;
        self.last_call_number
    }

    fn call_one(&mut self, ask: &ScriptCall) -> Result<Value, StoreError> {
        let number = self.next_call_number();
        let mut replies = self.call_until_replied(&[(number, ask)])?;
        replies.pop().unwrap_or(Err(StoreError::Closed))
    }

    /// Makes calls and submits waiting jobs, in one round trip.
    fn call_group(&mut self, group: Vec<(ScriptCall, ReplyHandler)>) {
        if self.pending_submit.is_none() && self.full_since.is_none() && !self.submit_queue.is_empty() {
            let ask = jobs::submit_call(
                self.submit_queue.peek_jobs(MAX_SUBMIT_JOBS),
                self.shared.bounds,
                self.connection.order,
                &self.shared.context,
            );
            match ask {
                Some(ask) => self.pending_submit = Some((self.next_call_number(), ask)),
                // An empty batch is accepted.
                None => self.submit_queue.finish_submit(std::iter::empty()),
            }
        }
        let unheard = self.unconfirmed_claims.clone();
        let forgets: Vec<(u64, ScriptCall)> = unheard
            .iter()
            .map(|claim| {
                let mut ask = ScriptCall::new(RedisScript::ReleaseClaim);
                ask.number(claim);
                (self.next_call_number(), ask)
            })
            .collect();
        let numbered: Vec<(u64, ScriptCall, ReplyHandler)> =
            group.into_iter().map(|(ask, hears)| (self.next_call_number(), ask, hears)).collect();
        if self.pending_submit.is_none() && forgets.is_empty() && numbered.is_empty() {
            return;
        }
        if numbered.iter().any(|(_, ask, _)| ask.script == RedisScript::Heartbeat) {
            self.last_heartbeat = self.clock.now();
        }
        let entering = self.pending_submit.take();
        let all: Vec<(u64, &ScriptCall)> = (forgets.iter().map(|(number, ask)| (*number, ask)))
            .chain(entering.iter().map(|(number, ask)| (*number, ask)))
            .chain(numbered.iter().map(|(number, ask, _)| (*number, ask)))
            .collect();
        let replies = self.call_until_replied(&all);
        match replies {
            Ok(replies) => {
                let mut replies = replies.into_iter();
                self.unconfirmed_claims.clear();
                for reply in replies.by_ref().take(forgets.len()) {
                    self.shared.notify(reply.map_or(0, |value| RedisValue(value).int()));
                }
                if let Some((_, ask)) = &entering {
                    self.finish_submit(ask, replies.next().unwrap_or(Err(StoreError::Closed)));
                }
                for (reply, (.., hears)) in replies.zip(numbered) {
                    hears(reply);
                }
            }
            Err(why) => {
                self.pending_submit = entering;
                if !matches!(why, StoreError::Unreachable(..)) {
                    self.pending_submit = None;
                    self.submit_queue.fail_all(&why);
                }
                for (number, ask, hears) in numbered {
                    if ask.script == RedisScript::Claim {
                        self.unconfirmed_claims.push(number);
                    }
                    hears(Err(why.clone()));
                }
            }
        }
    }

    fn finish_submit(&mut self, call: &ScriptCall, reply: Result<Value, StoreError>) {
        let mut reply = match reply {
            Ok(reply) => RedisValues::of(reply),
            Err(why) => {
                self.submit_queue.fail_first(why);
                return;
            }
        };
        let (what, stop) = (reply.next_value().int(), reply.next_value().int());
        let mut entrances = Vec::new();
        while !reply.is_empty() {
            let (number, state) = (reply.next_value().count(), reply.next_value().text());
            // An empty state means a new job.
            let receipt = state.parse().map_or(Receipt::Accepted(number), |state| Receipt::Duplicate(number, state));
            entrances.push(SubmitResult::Admitted(receipt));
        }
        match stop {
            1 => {
                self.full_since = Some(self.clock.now());
                self.shared.waits_for_room.store(true, Ordering::Relaxed);
                entrances.push(SubmitResult::QueueFull);
            }
            2 => {
                let bytes = jobs::nth_job_bytes(call, entrances.len());
                entrances.push(SubmitResult::TooLarge { bytes, most_bytes: self.shared.bounds.bytes });
            }
            _ => {}
        }
        // Notified before the replies: a caller may check for changes at once.
        self.shared.notify(what);
        self.submit_queue.finish_submit(entrances.into_iter());
    }

    /// Repeats a call until there is a reply, up to a timeout; under its number it is executed once.
    fn call_until_replied(
        &mut self,
        asks: &[(u64, &ScriptCall)],
    ) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        let (begun, mut pause) = (self.clock.now(), MIN_RETRY_PAUSE);
        loop {
            match self.connection.call_all(asks) {
                Ok(replies) => {
                    self.shared.set_unreachable_reason(None);
                    return Ok(replies);
                }
                Err(RedisFailure::Fatal(why)) => return Err(why),
                Err(RedisFailure::Unreachable(why)) => {
                    self.shared.set_unreachable_reason(Some(why.clone()));
                    let timeout = if self.shared.work_queue.is_closed() { CLOSE_TIMEOUT } else { UNREACHABLE_TIMEOUT };
                    if self.clock.now() - begun >= timeout {
                        return Err(StoreError::Unreachable(self.shared.context.address.path(), why));
                    }
                    self.shared.work_queue.sleep_unless_closed(pause);
                    pause = (pause * 2).min(MAX_RETRY_PAUSE);
                }
            }
        }
    }
}
