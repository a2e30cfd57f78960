//! Dispatch of queued jobs: which job is sent now, by which key, and its outcome.
//!
//! ```text
//!             Submitted
//!                 │
//!                 ▼      a key may send, and it arrives in time
//!   ┌────────► queued ──────────────────────────────► leased ──► done
//!   │             │                                      │
//!   │ due, and    │ no longer                            │ rejected, failed,
//!   │ the budget  │ in time      the next attempt would  │ timed out
//!   │ allows it   ▼              be too late             ▼
//!   │          expired ◄─────────────────────────────── ? ──► dead-lettered
//!   │             │ TTL extended                         │    attempts used up,
//!   │             │                                      │    or a failure that is not retried
//!   └─────────────┴───────────────── retrying ◄──────────┘
//! ```
//!
//! [`Dispatch`] decides; its caller moves bytes and stores rows. The contract:
//!
//! - The caller reports events to [`Dispatch::on`], and carries out the actions in order. Each submitted job gets
//!   exactly one of [`DispatchAction::Done`], [`DispatchAction::Expire`] and [`DispatchAction::DeadLetter`], or is
//!   [withdrawn](Event::Withdrawn).
//! - What must be durable before a request leaves precedes its [`DispatchAction::Send`]. That a job is sent must be
//!   durable, too, if after a crash sent jobs are to be distinguished from queued ones; they are submitted with
//!   `maybe_sent`.
//! - [`Event::Departed`] is reported when the request's bytes leave, not when a connection is requested: the one-way
//!   delay bound counts from there. Until then the key sends nothing else that depends on its arrival.
//! - Each [`DispatchAction::Send`] is followed by one [`Event::Responded`] or [`Event::Failed`] with its number, unless
//!   it was cancelled. Events of other attempts are ignored.
//! - [`Event::Tick`] is reported at the last [`DispatchAction::WakeAt`], or as soon after it as possible. Superfluous
//!   ticks are harmless; a late one only costs time.
//!
//! Order: jobs are queued by deadline or first in, first out, and the first one goes by the key that can send it first.
//! A job that is too heavy for the moment is waited for; otherwise light ones would overtake it for ever. A failed job
//! keeps its place. A job for one key is in that key's own queue (`queue`), and delays only later jobs for that key.
//!
//! Causes of failures: a rate-limit rejection and an overtaken nonce concern the key, which pauses for the time that
//! the response states; the job may go by another key. A blocked or unknown key is not used until [`Event::KeyUsable`].
//! 503 with Retry-After concerns the service, and all keys pause. A request that was never sent does not count as an
//! attempt.

mod circuit;
mod events;
mod hanging;
mod host;
mod lanes;
mod leased_keys;
mod outcome;
mod pauses;
mod queue;
mod retries;
mod rules;
mod selection;
mod send_limit;
mod share;
mod silence;

use std::collections::{BTreeSet, VecDeque};

pub use self::events::{DispatchAction, DispatchFailure, Event, JobSubmission, ResponseClass};
use self::host::DispatchHost;
pub use self::host::HostStatus;
use self::lanes::DispatchKey;
use self::pauses::KeyPauses;
pub use self::pauses::{KeyPause, PauseCause};
use self::queue::{DispatchJob, JobQueue, State};
pub use self::rules::{DeliveryGuarantee, DispatchOrder, DispatchRules, TtlExtension};
pub use self::send_limit::{LimitTimes, SendLimit};
use crate::limit_headers::RateLimitHeaders;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::rng::SeededRng;
use weir_retry::retry_budget::RetryBudget;

/// Number of a job, chosen by the caller.
pub type JobId = u64;
/// Number of a host, from 0 in the order of [`Dispatch::add_host`].
pub type HostId = u32;

/// Numbers of jobs of a [`Dispatch`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DispatchSizes {
    /// Jobs that are queued.
    pub queued: usize,
    /// Jobs that retry, or wait for their host.
    pub retrying: usize,
    /// Jobs that are leased.
    pub leased: usize,
}

/// State machine of jobs, keys and hosts: events and the time go in, actions come out.
///
/// An event costs the logarithm of the jobs, keys and hosts, plus the windows of one key. Time may stand still between
/// two events; a time before the latest one counts as the latest.
#[derive(Clone, Debug)]
pub struct Dispatch {
    rules: DispatchRules,
    keys: Vec<DispatchKey>,
    hosts: Vec<DispatchHost>,
    queue: JobQueue,
    retry_budget: Option<RetryBudget>,
    seed: u64,
    /// Attempts in the order of sending; some after the first have ended.
    attempts: VecDeque<(Nanos, JobId, u32)>,
    leased: usize,
    pauses: KeyPauses,
    /// Hosts to update: now, and at a time.
    dirty_hosts: Vec<HostId>,
    host_wakes: BTreeSet<(Nanos, HostId)>,
    /// Hosts that can send: by requests in flight, then by the least recent send.
    ready_hosts: BTreeSet<(usize, u64, HostId)>,
    sends: u64,
    timer_at: Nanos,
    latest: Nanos,
    limit_times: LimitTimes,
    /// Time until which limits are counted; `None` before the first event.
    limits_counted_at: Option<Nanos>,
}

impl Dispatch {
    /// A dispatch without jobs and hosts, with a number of keys, numbered from 0. The seed is for the jitter of
    /// backoffs.
    pub fn new(rules: DispatchRules, keys: u32, seed: u64) -> Self {
        Self {
            keys: vec![DispatchKey::new(); keys as usize],
            hosts: Vec::new(),
            queue: JobQueue::default(),
            retry_budget: rules.budget.map(RetryBudget::new),
            seed,
            attempts: VecDeque::new(),
            leased: 0,
            pauses: KeyPauses::default(),
            dirty_hosts: Vec::new(),
            host_wakes: BTreeSet::new(),
            ready_hosts: BTreeSet::new(),
            sends: 0,
            timer_at: Nanos::NEVER,
            latest: Nanos::ZERO,
            limit_times: LimitTimes::default(),
            limits_counted_at: None,
            rules,
        }
    }

    /// Numbers of jobs.
    pub fn sizes(&self) -> DispatchSizes {
        DispatchSizes { queued: self.queue.queued(), retrying: self.queue.retrying(), leased: self.leased }
    }

    /// Number of usable keys.
    pub fn usable_keys(&self) -> usize {
        self.keys.iter().filter(|key| key.is_usable).count()
    }

    /// Requests per second that a key may send to a host, by the estimated limits; 0 if it is unusable.
    pub fn allowed_per_s(&self, host: HostId, key: u32) -> f64 {
        let is_usable = self.keys.get(key as usize).is_some_and(|key| key.is_usable);
        let lane = self.hosts.get(host as usize).and_then(|host| host.lanes.get(key)).filter(|_| is_usable);
        lane.map_or(0.0, |lane| lane.windows.rate_per_s())
    }

    /// Longest one-way delay bound of any host; `None` without a bound, when only responses count.
    pub fn delay_bound(&self) -> Option<Nanos> {
        self.hosts.iter().filter_map(|host| host.lanes.applied_bound()).max()
    }

    /// Handles an event.
    pub fn on(&mut self, now: Nanos, event: Event<'_>, actions: &mut Vec<DispatchAction>) {
        self.count_limits(now);
        self.latest = self.latest.max(now);
        let now = self.latest;
        match event {
            Event::Submitted(id, submission) => self.submit(now, id, submission, actions),
            Event::Departed(id, attempt) => {
                if let Some((host, State::Leased { key, slot, .. })) = self.leased_attempt(id, attempt)
                    && let Some(host) = self.host_mut(host)
                {
                    host.lanes.update(key, |lane| lane.windows.departed(slot, now));
                    host.circuit.silence.departed();
                }
            }
            Event::Responded(id, attempt, class, feedback) => {
                self.responded(now, (id, attempt), class, feedback, actions);
            }
            Event::Failed(id, attempt, kind) => self.failed(now, (id, attempt), kind, actions),
            Event::Withdrawn(id) => self.withdraw(now, id),
            Event::Recalled(id, attempt) => self.recalled(now, (id, attempt)),
            Event::KeyUsable(key) => self.update_key(key, |key| key.is_usable = true),
            Event::Tick => self.timer_at = Nanos::NEVER,
        }
        self.process_due(now, actions);
        self.set_timer(now, actions);
    }

    fn submit(&mut self, now: Nanos, id: JobId, submission: JobSubmission, actions: &mut Vec<DispatchAction>) {
        let Some(job) = self.queue.submit(now, id, submission, &self.rules) else { return };
        while self.hosts.len() <= submission.host as usize {
            self.add_host(None);
        }
        let Some(host) = self.hosts.get_mut(submission.host as usize) else { return };
        self.queue.put(id, job, &mut host.queues);
        if !host.lanes.fits(submission.weight) {
            self.dead_letter(id, DispatchFailure::TooHeavy, actions);
        } else if submission.maybe_sent && self.rules.delivery == DeliveryGuarantee::AtMostOnce {
            self.dead_letter(id, DispatchFailure::MaybeSent, actions);
        } else if let Some(budget) = &mut self.retry_budget {
            budget.deposit(now);
        }
        self.host_mut(submission.host);
    }

    fn dead_letter(&mut self, id: JobId, why: DispatchFailure, actions: &mut Vec<DispatchAction>) {
        if self.take_job(id).is_some() {
            actions.push(DispatchAction::DeadLetter { job: id, reason: why });
        }
    }

    /// Removes a job from its queue.
    fn take_job(&mut self, id: JobId) -> Option<DispatchJob> {
        let host = self.queue.host_of(id)?;
        self.host_mut(host);
        let host = self.hosts.get_mut(host as usize)?;
        self.queue.take(id, &mut host.queues)
    }

    /// Returns a removed job to its queue.
    fn put_job(&mut self, id: JobId, job: DispatchJob) {
        self.host_mut(job.submission.host);
        if let Some(host) = self.hosts.get_mut(job.submission.host as usize) {
            self.queue.put(id, job, &mut host.queues);
        }
    }

    fn withdraw(&mut self, now: Nanos, id: JobId) {
        let Some(job) = self.take_job(id) else { return };
        if let State::Leased { key, slot, is_probe, .. } = job.state
            && let Some(host) = self.host_mut(job.submission.host)
        {
            host.attempt_ended(is_probe);
            host.lanes.update(key, |lane| lane.windows.abandoned(slot, now));
            self.leased -= 1;
        }
    }

    fn leased_attempt(&self, id: JobId, attempt: u32) -> Option<(HostId, State)> {
        let job = self.queue.get(id).filter(|job| job.attempts == attempt)?;
        Some((job.submission.host, job.state)).filter(|(_, state)| matches!(state, State::Leased { .. }))
    }

    /// Handles timeouts and retries that are due, and sends what can be sent.
    fn process_due(&mut self, now: Nanos, actions: &mut Vec<DispatchAction>) {
        while let Some((sent, id, attempt)) = self.attempts.front().copied() {
            if let Some((host, _)) = self.leased_attempt(id, attempt) {
                if now - sent < self.rules.attempt_timeout {
                    if let Some(host) = self.hosts.get_mut(host as usize) {
                        host.lanes.delay_bound.outstanding_for(now - sent);
                    }
                    break;
                }
                actions.push(DispatchAction::Cancel { job: id, attempt });
                self.failed(now, (id, attempt), FailureKind::Timeout, actions);
            }
            self.attempts.pop_front();
        }
        while let Some((until, id)) = self.queue.first_retrying()
            && until <= now
        {
            self.requeue(now, id, actions);
        }
        self.update_hosts(now, actions);
        while self.leased < self.rules.max_in_flight.max(1)
            && let Some(host) = self.next_host(now)
        {
            self.send(now, host, actions);
            self.update_hosts(now, actions);
        }
    }

    fn send(&mut self, now: Nanos, id: HostId, actions: &mut Vec<DispatchAction>) {
        let Some(host) = self.host_mut(id) else { return };
        let Some((job_id, number)) = host.next_job.take() else { return };
        let since_1970 = self.rules.epoch + now;
        let (Some(host), Some(key)) = (self.hosts.get_mut(id as usize), self.keys.get_mut(number as usize)) else {
            return;
        };
        let Some(mut job) = self.queue.take(job_id, &mut host.queues) else { return };
        let Some(slot) = host.lanes.update(number, |lane| lane.windows.sent(now, job.submission.weight)) else {
            return;
        };
        host.lanes.mark_used(number);
        let (nonce, high_water) = (key.nonces.next(since_1970), key.nonces.raise_high_water());
        if let Some(high_water) = high_water {
            actions.push(DispatchAction::SaveHighWater { key: number, high_water });
        }
        host.circuit.silence.sent(now);
        let is_probe = host.circuit.is_open();
        if is_probe {
            host.circuit.probe(now);
        }
        self.sends += 1;
        host.last_send = self.sends;
        job.attempts += 1;
        job.state = State::Leased { key: number, slot, sent_at: now, is_probe };
        actions.push(DispatchAction::Send {
            job: job_id,
            key: number,
            attempt: job.attempts,
            nonce,
            maybe_duplicate: job.maybe_duplicate,
        });
        self.attempts.push_back((now, job_id, job.attempts));
        self.queue.put(job_id, job, &mut host.queues);
        let Some(host) = self.hosts.get(id as usize) else { return };
        let pool = self.slot_pool(host);
        self.leased += 1;
        if let Some(host) = self.hosts.get_mut(id as usize) {
            host.slots.sent(now, pool);
        }
    }

    fn set_timer(&mut self, now: Nanos, actions: &mut Vec<DispatchAction>) {
        let mut at = self.host_wakes.first().map_or(Nanos::NEVER, |(at, _)| *at);
        at = at.min(self.next_slot_at(now));
        at = at.min(self.queue.first_retrying().map_or(Nanos::NEVER, |(until, _)| until));
        at = at.min(self.attempts.front().map_or(Nanos::NEVER, |(sent, ..)| *sent + self.rules.attempt_timeout));
        if at != self.timer_at && at != Nanos::NEVER {
            self.timer_at = at;
            actions.push(DispatchAction::WakeAt(at));
        }
    }

    /// Updates a key, which is the same at all hosts.
    fn update_key(&mut self, number: u32, act: impl FnOnce(&mut DispatchKey)) {
        let Some(key) = self.keys.get_mut(number as usize) else { return };
        act(key);
        let open = key.can_send();
        for host in &mut self.hosts {
            host.lanes.update(number, |lane| lane.is_open = open);
        }
        self.mark_all_dirty();
    }

    /// Random stream of one job.
    fn rng(&self, id: JobId) -> SeededRng {
        SeededRng::new(self.seed, id)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
mod tests;
