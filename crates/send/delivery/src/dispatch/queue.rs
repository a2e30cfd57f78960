//! The jobs by number, retrying ones by time; and the queues of one host.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::{DispatchFailure, DispatchOrder, DispatchRules, HostId, JobId, JobSubmission, Nanos};
use crate::key_window::WindowSlot;

/// State of one job.
#[derive(Clone, Debug)]
pub(super) struct DispatchJob {
    pub(super) submission: JobSubmission,
    pub(super) state: State,
    /// Attempts that count against the maximum.
    pub(super) attempts_used: u32,
    /// All attempts; the last one's number.
    pub(super) attempts: u32,
    pub(super) ttl_extensions: u32,
    /// Whether an earlier attempt may have been executed.
    pub(super) maybe_duplicate: bool,
    /// Whether it has a failure that may be the host's, and that does not count so far.
    pub(super) is_host_suspected: bool,
    /// Whether a failure was excused since the host was silent. The next one is not: a job that hangs for ever has to
    /// use up its attempts.
    pub(super) was_excused: bool,
    /// Whether its last failure was a rate-limit rejection.
    pub(super) is_rate_limited: bool,
    /// Failure of the last attempt; [`DispatchFailure::Expired`] if there was none.
    pub(super) last_failure: DispatchFailure,
    /// Rank in its queue.
    pub(super) rank: QueueRank,
    /// Number of its submission.
    sequence: u64,
    submitted_at: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Queued,
    Retrying {
        until: Nanos,
    },
    Leased {
        key: u32,
        slot: WindowSlot,
        sent_at: Nanos,
        is_probe: bool,
    },
    /// Failed; waits until the host responds to another job.
    WaitingForHost {
        sent_at: Nanos,
        failed_at: Nanos,
    },
}

/// Rank in any queue; lower is earlier.
pub(super) type QueueRank = (i128, u64);

#[derive(Clone, Debug, Default)]
pub(super) struct JobQueue {
    jobs: FxHashMap<JobId, DispatchJob>,
    retrying: BTreeSet<(Nanos, JobId)>,
    queued: usize,
    waiting_for_host: usize,
    submitted: u64,
}

/// Jobs of one host that are not leased.
#[derive(Clone, Debug)]
pub(super) struct HostQueues {
    /// Jobs for any key.
    shared: BTreeSet<(QueueRank, JobId)>,
    /// Jobs for one key, by key.
    per_key: Vec<BTreeSet<(QueueRank, JobId)>>,
    /// Number of jobs in all queues.
    pub(super) queued: usize,
    /// Keys whose own queue has changed.
    pub(super) changed: Vec<u32>,
    /// Queued, retrying and waiting jobs, by expiry.
    expiring: BTreeSet<(Nanos, JobId)>,
    /// Waiting jobs, by the time of the failure.
    pub(super) waiting_for_host: BTreeSet<(Nanos, JobId)>,
}

impl JobQueue {
    /// Creates a job; `None` if its number is taken.
    pub(super) fn submit(
        &mut self,
        now: Nanos,
        id: JobId,
        submission: JobSubmission,
        rules: &DispatchRules,
    ) -> Option<DispatchJob> {
        if self.jobs.contains_key(&id) {
            return None;
        }
        self.submitted += 1;
        let mut job = DispatchJob {
            submission,
            state: State::Queued,
            attempts_used: submission.attempts_used,
            attempts: submission.attempts_used,
            ttl_extensions: 0,
            maybe_duplicate: submission.maybe_sent,
            is_host_suspected: false,
            was_excused: false,
            is_rate_limited: false,
            last_failure: DispatchFailure::Expired,
            rank: (0, 0),
            sequence: self.submitted,
            submitted_at: now,
        };
        job.set_rank(rules);
        Some(job)
    }

    /// Adds a job to the set of its state.
    pub(super) fn put(&mut self, id: JobId, job: DispatchJob, queues: &mut HostQueues) {
        match job.state {
            State::Queued => {
                self.queued += 1;
                if let Some(queue) = queues.queue_of(job.submission.key) {
                    queue.insert((job.rank, id));
                    queues.queued += 1;
                }
            }
            State::Retrying { until } => drop(self.retrying.insert((until, id))),
            State::WaitingForHost { failed_at: failed, .. } => {
                self.waiting_for_host += 1;
                queues.waiting_for_host.insert((failed, id));
            }
            State::Leased { .. } => {}
        }
        if !matches!(job.state, State::Leased { .. }) && job.submission.expires_at != Nanos::NEVER {
            queues.expiring.insert((job.submission.expires_at, id));
        }
        self.jobs.insert(id, job);
    }

    /// Removes a job, also from the set of its state.
    pub(super) fn take(&mut self, id: JobId, queues: &mut HostQueues) -> Option<DispatchJob> {
        let job = self.jobs.remove(&id)?;
        match job.state {
            State::Queued => {
                self.queued -= 1;
                if let Some(queue) = queues.queue_of(job.submission.key)
                    && queue.remove(&(job.rank, id))
                {
                    queues.queued -= 1;
                }
            }
            State::Retrying { until } => drop(self.retrying.remove(&(until, id))),
            State::WaitingForHost { failed_at: failed, .. } => {
                self.waiting_for_host -= 1;
                queues.waiting_for_host.remove(&(failed, id));
            }
            State::Leased { .. } => {}
        }
        queues.expiring.remove(&(job.submission.expires_at, id));
        Some(job)
    }

    pub(super) fn get(&self, id: JobId) -> Option<&DispatchJob> {
        self.jobs.get(&id)
    }

    /// Host of a job.
    pub(super) fn host_of(&self, id: JobId) -> Option<HostId> {
        self.jobs.get(&id).map(|job| job.submission.host)
    }

    /// Retrying job that is due first.
    pub(super) fn first_retrying(&self) -> Option<(Nanos, JobId)> {
        self.retrying.first().copied()
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = &DispatchJob> {
        self.jobs.values()
    }

    /// Number of jobs that are queued.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Number of jobs that retry or wait for the host.
    pub(super) fn retrying(&self) -> usize {
        self.retrying.len() + self.waiting_for_host
    }
}

impl HostQueues {
    pub(super) fn new(keys: usize) -> Self {
        Self {
            shared: BTreeSet::new(),
            per_key: vec![BTreeSet::new(); keys],
            queued: 0,
            changed: Vec::new(),
            expiring: BTreeSet::new(),
            waiting_for_host: BTreeSet::new(),
        }
    }

    /// Queue for a key, or for any; `None` if the key does not exist.
    fn queue_of(&mut self, key: Option<u32>) -> Option<&mut BTreeSet<(QueueRank, JobId)>> {
        let Some(key) = key else { return Some(&mut self.shared) };
        let queue = self.per_key.get_mut(key as usize)?;
        self.changed.push(key);
        Some(queue)
    }

    /// First job for any key, or for this one only.
    pub(super) fn first(&self, key: Option<u32>) -> Option<JobId> {
        let queue = key.map_or(Some(&self.shared), |key| self.per_key.get(key as usize))?;
        queue.first().map(|(_, id)| *id)
    }

    /// All queued jobs.
    pub(super) fn all(&self) -> impl Iterator<Item = JobId> {
        self.per_key.iter().chain([&self.shared]).flatten().map(|(_, id)| *id)
    }

    /// The first `count` jobs of each queue.
    pub(super) fn next_jobs(&self, count: usize) -> impl Iterator<Item = JobId> {
        self.per_key.iter().chain([&self.shared]).flat_map(move |queue| queue.iter().take(count)).map(|(_, id)| *id)
    }

    /// Length of that queue.
    pub(super) fn queue_len(&self, key: Option<u32>) -> usize {
        key.map_or(Some(&self.shared), |key| self.per_key.get(key as usize)).map_or(0, BTreeSet::len)
    }

    pub(super) fn first_expiring(&self) -> Option<(Nanos, JobId)> {
        self.expiring.first().copied()
    }
}

impl DispatchJob {
    pub(super) fn set_rank(&mut self, rules: &DispatchRules) {
        let from = match rules.order {
            DispatchOrder::Deadline => self.submission.expires_at.min(self.submitted_at + rules.max_rank_ttl),
            DispatchOrder::Fifo => self.submitted_at,
        };
        let preferred = i128::from(rules.priority_step.0) * i128::from(self.submission.priority);
        self.rank = (i128::from(from.0) - preferred, self.sequence);
    }
}
