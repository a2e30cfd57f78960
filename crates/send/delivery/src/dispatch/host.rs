//! One host: its queues, its lanes, its circuit, and its slots.

use std::collections::HashSet;

use super::circuit::{HostCircuit, SendPermission};
use super::lanes::{DispatchKey, KeyLane, KeyLanes};
use super::queue::{HostQueues, JobQueue, State};
use super::selection::QueueHeads;
use super::share::{HostSlots, SlotPool};
use super::{Dispatch, DispatchFailure, DispatchRules, HostId, JobId, Nanos};
use crate::key_window;
use weir_base::failure::FailureKind;
use weir_base::rng::SeededRng;

/// Maximum number of jobs that are remembered as faulty.
const MAX_FAULTY_JOBS: usize = 4096;
/// Time without a response after which a host is reported as down.
const MIN_DOWN_TIME: Nanos = Nanos::SECOND;

#[derive(Clone, Debug)]
pub(super) struct DispatchHost {
    pub(super) queues: HostQueues,
    heads: QueueHeads,
    pub(super) lanes: KeyLanes,
    pub(super) circuit: HostCircuit,
    pub(super) slots: HostSlots,
    /// Jobs that failed while the host responded to others: further failures count at once.
    faulty_jobs: HashSet<JobId>,
    /// Job and key of the next send, if one is possible now.
    pub(super) next_job: Option<(JobId, u32)>,
    /// Time of the next update.
    pub(super) wake_at: Nanos,
    /// Number of its last send.
    pub(super) last_send: u64,
    /// Rank among the hosts that can send.
    pub(super) ready_rank: Option<(usize, u64)>,
    /// Last failure.
    pub(super) last_failure: DispatchFailure,
    /// Whether it has to be updated.
    pub(super) is_dirty: bool,
}

/// Snapshot of a host's jobs, requests and outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostStatus {
    /// Queued jobs.
    pub queued: usize,
    /// Failed jobs that wait until the host responds to another one.
    pub waiting_for_host: usize,
    /// Requests in flight.
    pub in_flight: usize,
    /// Time without a response; `None` unless it is known to be down.
    pub down_for: Option<Nanos>,
    /// Last failure of a request.
    pub last_failure: DispatchFailure,
}

impl DispatchHost {
    pub(super) fn new(
        id: HostId,
        rules: &DispatchRules,
        host_rules: Option<key_window::KeyRules>,
        keys: &[DispatchKey],
        seed: u64,
    ) -> Self {
        Self {
            queues: HostQueues::new(keys.len()),
            heads: QueueHeads::new(keys.len() as u32),
            lanes: KeyLanes::new(rules, host_rules, keys),
            circuit: HostCircuit::new(rules, SeededRng::new(seed, !u64::from(id))),
            slots: HostSlots::default(),
            faulty_jobs: HashSet::new(),
            next_job: None,
            wake_at: Nanos::NEVER,
            last_send: 0,
            ready_rank: None,
            last_failure: DispatchFailure::Expired,
            is_dirty: false,
        }
    }

    pub(super) fn is_faulty(&self, job: JobId) -> bool {
        self.faulty_jobs.contains(&job)
    }

    pub(super) fn mark_faulty(&mut self, job: JobId) {
        if self.faulty_jobs.len() < MAX_FAULTY_JOBS {
            self.faulty_jobs.insert(job);
        }
    }

    pub(super) fn forget(&mut self, job: JobId) {
        self.faulty_jobs.remove(&job);
    }

    /// Time without a response; `None` unless it is known to be down.
    fn down_for(&self, now: Nanos) -> Option<Nanos> {
        self.circuit.silent_since().map(|since| now - since).or_else(|| self.failing_for(now))
    }

    /// Time since the first of its failures without a response between; `None` unless it is known to be down. A host
    /// that is only silent does not fail.
    fn failing_for(&self, now: Nanos) -> Option<Nanos> {
        let length = now - self.circuit.failing_since()?;
        (self.circuit.is_open() || length >= MIN_DOWN_TIME).then_some(length)
    }

    /// Whether a request sent then may arrive after its expiry.
    pub(super) fn arrives_late(&self, at: Nanos, expires: Nanos) -> bool {
        expires < at + self.lanes.applied_bound().unwrap_or_default()
    }

    /// Whether failed jobs wait for its response, and nothing is in flight that could be one.
    pub(super) fn holds_failed_jobs(&self) -> bool {
        !self.queues.waiting_for_host.is_empty() && self.slots.in_flight == 0
    }

    /// Lane and weight of the job that is next to be sent, once its lane allows it; `None` if no key may send.
    pub(super) fn next_lane(&self, now: Nanos, jobs: &JobQueue) -> Option<(&KeyLane, u64)> {
        let (key, weight) = self.heads.next_key(now, jobs, &self.queues, &self.lanes)?;
        Some((self.lanes.get(key)?, weight))
    }

    /// Whether only jobs that have failed before are left to send.
    fn has_only_failed_jobs(&self) -> bool {
        self.queues.queued == 0 && (self.circuit.is_open() || self.slots.in_flight == 0)
    }

    /// Selects the next send, and the time of the next update.
    fn update_next(&mut self, now: Nanos, queue: &JobQueue) {
        let permit = self.circuit.permission(now);
        let (selected, next) = self.heads.select_next(now, queue, &mut self.queues, &mut self.lanes);
        (self.next_job, self.wake_at) = match permit {
            SendPermission::All | SendPermission::Probe => (selected, next),
            SendPermission::Wait(until) => (None, until),
        };
        if permit == SendPermission::All && self.has_only_failed_jobs() && !self.queues.waiting_for_host.is_empty() {
            self.wake_at = self.wake_at.min(self.circuit.next_attempt().max(now + Nanos(1)));
        }
        if let Some((expires, _)) = self.queues.first_expiring() {
            // A job may still be sent at the last moment.
            self.wake_at = self.wake_at.min(expires - self.lanes.applied_bound().unwrap_or_default() + Nanos(1));
        }
        self.wake_at = self.wake_at.min(self.circuit.abandon_at());
    }

    /// The job that failed longest ago, if its retry is due.
    fn next_waiting(&self, now: Nanos) -> Option<JobId> {
        let is_due = match self.circuit.permission(now) {
            SendPermission::All => self.circuit.next_attempt() <= now,
            SendPermission::Probe => true,
            SendPermission::Wait(_) => false,
        };
        self.queues.waiting_for_host.first().filter(|_| is_due && self.has_only_failed_jobs()).map(|(_, id)| *id)
    }
}

impl Dispatch {
    /// Adds a host, with limits of its own in place of the common ones; returns its number.
    pub fn add_host(&mut self, host_rules: Option<key_window::KeyRules>) -> HostId {
        let id = self.hosts.len() as HostId;
        self.hosts.push(DispatchHost::new(id, &self.rules, host_rules, &self.keys, self.seed));
        id
    }

    /// Status of a host; `None` for an unknown one.
    pub fn host_status(&self, host: HostId) -> Option<HostStatus> {
        let host = self.hosts.get(host as usize)?;
        Some(HostStatus {
            queued: host.queues.queued,
            waiting_for_host: host.queues.waiting_for_host.len(),
            in_flight: host.slots.in_flight,
            down_for: host.down_for(self.latest),
            last_failure: host.last_failure,
        })
    }

    /// Queued jobs of a host: for any key, or for this one only.
    pub fn queued(&self, host: HostId, key: Option<u32>) -> usize {
        self.hosts.get(host as usize).map_or(0, |host| host.queues.queue_len(key))
    }

    /// All queued jobs of a host.
    pub fn queued_jobs(&self, host: HostId) -> impl Iterator<Item = JobId> {
        self.hosts.get(host as usize).into_iter().flat_map(|host| host.queues.all())
    }

    /// The first `count` jobs of each queue.
    pub fn next_jobs(&self, count: usize) -> impl Iterator<Item = JobId> {
        self.hosts.iter().flat_map(move |host| host.queues.next_jobs(count))
    }

    pub(super) fn host_mut(&mut self, id: HostId) -> Option<&mut DispatchHost> {
        let host = self.hosts.get_mut(id as usize)?;
        if !std::mem::replace(&mut host.is_dirty, true) {
            self.dirty_hosts.push(id);
        }
        Some(host)
    }

    pub(super) fn mark_all_dirty(&mut self) {
        for id in 0..self.hosts.len() as HostId {
            self.host_mut(id);
        }
    }

    pub(super) fn slot_pool(&self, host: &DispatchHost) -> SlotPool {
        let all = self.rules.max_in_flight.max(1);
        SlotPool {
            all,
            free: all.saturating_sub(self.leased),
            is_shared: self.hosts.len() > 1,
            silence_timeout: host.circuit.silence_timeout(),
        }
    }

    /// Updates all hosts that have changed, or whose time has come.
    pub(super) fn update_hosts(&mut self, now: Nanos, actions: &mut Vec<super::DispatchAction>) {
        while let Some((at, id)) = self.host_wakes.first().copied()
            && at <= now
        {
            self.host_wakes.pop_first();
            self.host_mut(id);
        }
        while let Some(id) = self.dirty_hosts.pop() {
            self.update_host(now, id, actions);
        }
    }

    fn update_host(&mut self, now: Nanos, id: HostId, actions: &mut Vec<super::DispatchAction>) {
        let Some(host) = self.hosts.get_mut(id as usize) else { return };
        host.lanes.apply_delay_bound(now);
        if host.circuit.advance(now, host.queues.queued > 0) {
            actions.push(super::DispatchAction::HostDown(id));
            if host.circuit.silent_since().is_some() {
                host.last_failure = DispatchFailure::NoResponse(FailureKind::Timeout);
            }
        }
        if let Some(silence) = host.circuit.abandonment(now) {
            self.abandon_hanging(now, id, silence, actions);
        }
        while let Some(host) = self.hosts.get_mut(id as usize)
            && let Some((expires, job)) = host.queues.first_expiring()
            && host.arrives_late(now, expires)
            && let Some(taken) = self.queue.take(job, &mut host.queues)
        {
            self.expire(now, job, taken, actions);
        }
        self.give_up_jobs(now, id, actions);
        if let Some(job) = self.hosts.get(id as usize).and_then(|host| host.next_waiting(now)) {
            self.requeue_waiting(job);
        }
        let Some(host) = self.hosts.get_mut(id as usize) else { return };
        self.host_wakes.remove(&(host.wake_at, id));
        if let Some((in_flight, used)) = host.ready_rank.take() {
            self.ready_hosts.remove(&(in_flight, used, id));
        }
        host.update_next(now, &self.queue);
        host.is_dirty = false;
        if host.wake_at != Nanos::NEVER {
            self.host_wakes.insert((host.wake_at, id));
        }
        if host.next_job.is_some() {
            let rank = (host.slots.in_flight, host.last_send);
            host.ready_rank = Some(rank);
            self.ready_hosts.insert((rank.0, rank.1, id));
        }
    }

    /// Dead-letters the jobs of a host that was down for too long, except for one probe.
    fn give_up_jobs(&mut self, now: Nanos, id: HostId, actions: &mut Vec<super::DispatchAction>) {
        let Some((max_down_time, host)) = self.rules.give_up_after.zip(self.hosts.get(id as usize)) else { return };
        if host.failing_for(now).is_none_or(|failing_for| failing_for < max_down_time) {
            return;
        }
        let keep = usize::from(host.circuit.permission(now) == SendPermission::Probe && host.queues.queued > 0);
        let waiting = host.queues.waiting_for_host.iter().map(|(_, job)| *job);
        let jobs: Vec<JobId> = waiting.chain(host.queues.all().skip(keep)).collect();
        for job in jobs {
            let why = self.queue.get(job).map_or(DispatchFailure::Expired, |job| job.last_failure);
            let why = if why == DispatchFailure::Expired { DispatchFailure::HostDown } else { why };
            self.dead_letter(job, why, actions);
        }
    }

    /// Returns a waiting job to its queue.
    pub(super) fn requeue_waiting(&mut self, id: JobId) {
        let Some(host) = self.queue.host_of(id).and_then(|host| self.hosts.get_mut(host as usize)) else { return };
        if let Some(mut job) = self.queue.take(id, &mut host.queues) {
            job.state = State::Queued;
            self.queue.put(id, job, &mut host.queues);
        }
    }

    /// Next host to send: of those that can, the one with the fewest requests in flight.
    pub(super) fn next_host(&self, now: Nanos) -> Option<HostId> {
        let mut ready = self.ready_hosts.iter().map(|(.., id)| *id);
        ready.find(|id| {
            let host = self.hosts.get(*id as usize);
            host.is_some_and(|host| host.circuit.is_open() || host.slots.has_slot(now, self.slot_pool(host)))
        })
    }

    /// Time at which a ready host without a slot may get one by time alone.
    pub(super) fn next_slot_at(&self, now: Nanos) -> Nanos {
        if self.leased >= self.rules.max_in_flight.max(1) {
            return Nanos::NEVER;
        }
        let hosts = self.ready_hosts.iter().take(MAX_HOSTS_CHECKED).filter_map(|(.., id)| self.hosts.get(*id as usize));
        hosts.map(|host| host.slots.next_growth_at(now)).min().unwrap_or(Nanos::NEVER)
    }
}

/// Hosts without a slot that are checked for that time.
const MAX_HOSTS_CHECKED: usize = 16;
