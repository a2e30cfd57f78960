//! The jobs: each by its number, dead letters by when they are due; and the lines of one host.

use std::collections::{BTreeSet, HashMap};

use super::{DispatchFailure, DispatchOrder, DispatchRules, HostId, JobId, JobSubmission, Nanos};
use crate::decide::delivery::key_window::WindowSlot;

/// One job.
#[derive(Clone, Debug)]
pub(super) struct DispatchJob {
    pub(super) submission: JobSubmission,
    pub(super) state: State,
    /// Attempts that count against its retries.
    pub(super) attempts_used: u32,
    /// Attempts of whatever kind; each has its number.
    pub(super) attempts: u32,
    pub(super) ttl_extensions: u32,
    /// An earlier attempt may have been done.
    pub(super) maybe_duplicate: bool,
    /// It has failed in a way for which the host may be to blame, and has not been charged for it.
    pub(super) is_host_suspected: bool,
    /// Its last failure was a refusal for rate.
    pub(super) is_rate_limited: bool,
    /// What its last attempt died of; [`DispatchFailure::Expired`] if there was none.
    pub(super) last_failure: DispatchFailure,
    /// Its place in its line.
    pub(super) rank: QueueRank,
    /// Where it stands as a number of submission.
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
    /// It failed, and it is to be seen whether the host answers others.
    WaitingForHost {
        sent_at: Nanos,
        failed_at: Nanos,
    },
}

/// A place in a line, of whichever line; less is earlier.
pub(super) type QueueRank = (i128, u64);

#[derive(Clone, Debug, Default)]
pub(super) struct JobQueue {
    jobs: HashMap<JobId, DispatchJob>,
    retrying: BTreeSet<(Nanos, JobId)>,
    queued: usize,
    waiting_for_host: usize,
    submitted: u64,
}

/// The jobs of one host that are not on their way.
#[derive(Clone, Debug)]
pub(super) struct HostQueues {
    /// Those that any key may send.
    shared: BTreeSet<(QueueRank, JobId)>,
    /// By key: those that no other key may send.
    per_key: Vec<BTreeSet<(QueueRank, JobId)>>,
    /// How many stand in a line, whichever it is.
    pub(super) queued: usize,
    /// Keys whose own line has changed.
    pub(super) changed: Vec<u32>,
    /// Of those that are queued, dead or resting.
    expiring: BTreeSet<(Nanos, JobId)>,
    /// By when they failed.
    pub(super) waiting_for_host: BTreeSet<(Nanos, JobId)>,
}

impl JobQueue {
    /// Takes a job in, unless it is here already.
    pub(super) fn submit(
        &mut self,
        now: Nanos,
        id: JobId,
        asked: JobSubmission,
        rules: &DispatchRules,
    ) -> Option<DispatchJob> {
        if self.jobs.contains_key(&id) {
            return None;
        }
        self.submitted += 1;
        let mut job = DispatchJob {
            submission: asked,
            state: State::Queued,
            attempts_used: asked.attempts_used,
            attempts: asked.attempts_used,
            ttl_extensions: 0,
            maybe_duplicate: asked.maybe_sent,
            is_host_suspected: false,
            is_rate_limited: false,
            last_failure: DispatchFailure::Expired,
            rank: (0, 0),
            sequence: self.submitted,
            submitted_at: now,
        };
        job.set_rank(rules);
        Some(job)
    }

    /// Puts a job in its place, which its state tells.
    pub(super) fn put(&mut self, id: JobId, job: DispatchJob, lines: &mut HostQueues) {
        match job.state {
            State::Queued => {
                self.queued += 1;
                if let Some(line) = lines.queue_of(job.submission.key) {
                    line.insert((job.rank, id));
                    lines.queued += 1;
                }
            }
            State::Retrying { until } => drop(self.retrying.insert((until, id))),
            State::WaitingForHost { failed_at: failed, .. } => {
                self.waiting_for_host += 1;
                lines.waiting_for_host.insert((failed, id));
            }
            State::Leased { .. } => {}
        }
        if !matches!(job.state, State::Leased { .. }) && job.submission.expires_at != Nanos::NEVER {
            lines.expiring.insert((job.submission.expires_at, id));
        }
        self.jobs.insert(id, job);
    }

    /// Takes a job out of its place, and out of the queue.
    pub(super) fn take(&mut self, id: JobId, lines: &mut HostQueues) -> Option<DispatchJob> {
        let job = self.jobs.remove(&id)?;
        match job.state {
            State::Queued => {
                self.queued -= 1;
                if let Some(line) = lines.queue_of(job.submission.key)
                    && line.remove(&(job.rank, id))
                {
                    lines.queued -= 1;
                }
            }
            State::Retrying { until } => drop(self.retrying.remove(&(until, id))),
            State::WaitingForHost { failed_at: failed, .. } => {
                self.waiting_for_host -= 1;
                lines.waiting_for_host.remove(&(failed, id));
            }
            State::Leased { .. } => {}
        }
        lines.expiring.remove(&(job.submission.expires_at, id));
        Some(job)
    }

    pub(super) fn get(&self, id: JobId) -> Option<&DispatchJob> {
        self.jobs.get(&id)
    }

    /// Which host a job is for.
    pub(super) fn host_of(&self, id: JobId) -> Option<HostId> {
        self.jobs.get(&id).map(|job| job.submission.host)
    }

    /// The dead letter that is due first.
    pub(super) fn first_retrying(&self) -> Option<(Nanos, JobId)> {
        self.retrying.first().copied()
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = &DispatchJob> {
        self.jobs.values()
    }

    /// How many are queued, wait for another try, and are there in all.
    pub(super) fn sizes(&self) -> (usize, usize, usize) {
        (self.queued, self.retrying.len() + self.waiting_for_host, self.jobs.len())
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

    /// Where such a job stands. One whose key there is not stands nowhere.
    fn queue_of(&mut self, key: Option<u32>) -> Option<&mut BTreeSet<(QueueRank, JobId)>> {
        let Some(key) = key else { return Some(&mut self.shared) };
        let line = self.per_key.get_mut(key as usize)?;
        self.changed.push(key);
        Some(line)
    }

    /// Whose turn it is, of those that any key may send, or of those that only this one may.
    pub(super) fn first(&self, key: Option<u32>) -> Option<JobId> {
        let line = key.map_or(Some(&self.shared), |key| self.per_key.get(key as usize))?;
        line.first().map(|(_, id)| *id)
    }

    /// All that stand in a line.
    pub(super) fn all(&self) -> impl Iterator<Item = JobId> {
        self.per_key.iter().chain([&self.shared]).flatten().map(|(_, id)| *id)
    }

    /// The first `most` of each line.
    pub(super) fn next_jobs(&self, most: usize) -> impl Iterator<Item = JobId> {
        self.per_key.iter().chain([&self.shared]).flat_map(move |line| line.iter().take(most)).map(|(_, id)| *id)
    }

    /// How many stand in that line.
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
