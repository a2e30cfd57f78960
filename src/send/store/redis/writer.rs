//! The one thread that changes something: all who wait share a journey to the server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::redis::Value;
use tokio::sync::watch;

use super::in_hand::LocalLeases;
use super::jobs;
use super::link::{QueueContext, RedisConnection, RedisFailure};
use super::script::{RedisScript, ScriptCall};
use crate::decide::Nanos;
use crate::machine::clock::Clock;
use crate::redis::{RedisValue, RedisValues};
use crate::send::store::StoreError;
use crate::send::store::inbox::WorkQueue;
use crate::send::store::waiting::{SubmitQueue, SubmitResult};
use crate::send::store::{QueueBounds, Receipt};

/// So many jobs get in with one question: the server does nothing else meanwhile.
const MAX_SUBMIT_JOBS: usize = 512;
/// So many questions go together; of as many the server keeps its answers, for those who have not heard them.
const MAX_GROUP_CALLS: usize = 60;
/// Who asks is told after so long that the server is away.
const UNREACHABLE_TIMEOUT: Nanos = Nanos::from_secs(5);
/// So long a store that is closed tries to get rid of what it still has.
const CLOSE_TIMEOUT: Nanos = Nanos::from_secs(2);
const MIN_RETRY_PAUSE: Duration = Duration::from_millis(20);
const MAX_RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Whoever waits for room looks for it so often, if no news comes.
const ROOM_POLL_INTERVAL: Nanos = Nanos::from_millis(500);

/// Whoever is told what came of a question, and the clock before it was asked.
pub(super) type ReplyHandler = Box<dyn FnOnce(Result<Value, StoreError>) + Send>;

pub(super) enum RedisTask {
    /// One question. What a claim took and nobody heard of is given back.
    Call { ask: ScriptCall, hears: ReplyHandler },
    /// Several, one after the other.
    Sequence(CallSequence),
}

/// Whoever asks one question after the other.
type CallSequence = Box<dyn FnOnce(&mut dyn FnMut(ScriptCall) -> Result<Value, StoreError>) + Send>;

/// What the threads of a store share.
pub(super) struct RedisStoreShared {
    pub(super) context: Arc<QueueContext>,
    pub(super) work_queue: WorkQueue<RedisTask>,
    pub(super) bounds: QueueBounds,
    pub(super) arrivals: watch::Sender<u64>,
    pub(super) changes: watch::Sender<u64>,
    /// Keys have come free, or senders have come or gone.
    pub(super) key_changes: watch::Sender<u64>,
    /// Why the server does not answer, while it does not.
    pub(super) unreachable_reason: Mutex<Option<String>>,
    pub(super) local_leases: LocalLeases,
    /// This handle sends.
    pub(super) is_sender: AtomicBool,
    /// Somebody waits for room.
    pub(super) waits_for_room: AtomicBool,
}

impl RedisStoreShared {
    fn set_unreachable_reason(&self, why: Option<String>) {
        *self.unreachable_reason.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// What a script has said that has happened.
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

/// What the thread has.
pub(super) struct RedisWriter {
    connection: RedisConnection,
    shared: Arc<RedisStoreShared>,
    clock: Clock,
    submit_queue: SubmitQueue,
    /// The number of the last question.
    last_call_number: u64,
    /// Jobs on their way in, under the number that they are asked with until there is an answer.
    pending_submit: Option<(u64, ScriptCall)>,
    /// There was no room then.
    full_since: Option<Nanos>,
    /// Claims that nobody has heard the answer of.
    unconfirmed_claims: Vec<u64>,
    /// When the sender was last said to be alive.
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

    /// Works until the inbox is closed and empty.
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
            // More of them may get in at once.
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
            // They did not get through, and nobody waits for the server any longer.
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

    /// After all that was asked before has been answered, and what was not heard of is given back: till then nobody knows
    /// what is in hand.
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
        let mut answers = self.call_until_answered(&[(number, ask)])?;
        answers.pop().unwrap_or(Err(StoreError::Closed))
    }

    /// Asks all of it in one go, and what waits to get in with it.
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
                // A batch without a job is in.
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
        let answers = self.call_until_answered(&all);
        match answers {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                self.unconfirmed_claims.clear();
                for answer in answers.by_ref().take(forgets.len()) {
                    self.shared.notify(answer.map_or(0, |value| RedisValue(value).int()));
                }
                if let Some((_, ask)) = &entering {
                    self.finish_submit(ask, answers.next().unwrap_or(Err(StoreError::Closed)));
                }
                for (answer, (.., hears)) in answers.zip(numbered) {
                    hears(answer);
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

    fn finish_submit(&mut self, asked: &ScriptCall, answer: Result<Value, StoreError>) {
        let mut said = match answer {
            Ok(said) => RedisValues::of(said),
            Err(why) => {
                self.submit_queue.fail_first(why);
                return;
            }
        };
        let (what, stop) = (said.next_value().int(), said.next_value().int());
        let mut entrances = Vec::new();
        while !said.is_empty() {
            let (number, state) = (said.next_value().count(), said.next_value().text());
            // A state that is none stands for a job that is new.
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
                let bytes = jobs::nth_job_bytes(asked, entrances.len());
                entrances.push(SubmitResult::TooLarge { bytes, most_bytes: self.shared.bounds.bytes });
            }
            _ => {}
        }
        // First: whoever waits to be told may look at once whether something has happened.
        self.shared.notify(what);
        self.submit_queue.finish_submit(entrances.into_iter());
    }

    /// Asks until there is an answer, for a while: what is asked again under its number is not done again.
    fn call_until_answered(
        &mut self,
        asks: &[(u64, &ScriptCall)],
    ) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        let (begun, mut pause) = (self.clock.now(), MIN_RETRY_PAUSE);
        loop {
            match self.connection.call_all(asks) {
                Ok(answers) => {
                    self.shared.set_unreachable_reason(None);
                    return Ok(answers);
                }
                Err(RedisFailure::Fatal(why)) => return Err(why),
                Err(RedisFailure::Unreachable(why)) => {
                    self.shared.set_unreachable_reason(Some(why.clone()));
                    let patience = if self.shared.work_queue.is_closed() { CLOSE_TIMEOUT } else { UNREACHABLE_TIMEOUT };
                    if self.clock.now() - begun >= patience {
                        return Err(StoreError::Unreachable(self.shared.context.address.path(), why));
                    }
                    self.shared.work_queue.sleep_unless_closed(pause);
                    pause = (pause * 2).min(MAX_RETRY_PAUSE);
                }
            }
        }
    }
}
