//! The jobs that are not on their way: those whose turn comes, dead letters, and when each expires.

use std::collections::{BTreeSet, HashMap};

use super::{Asked, JobId, Nanos, Order, Rules, Why};
use crate::decide::backoff::Waits;
use crate::decide::window::Slot;

/// One job.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) asked: Asked,
    pub(super) state: State,
    /// Attempts that count against its retries.
    pub(super) tries: u32,
    /// Attempts of whatever kind; each has its number.
    pub(super) attempts: u32,
    pub(super) renewed: u32,
    /// An earlier attempt may have been done.
    pub(super) again: bool,
    /// What its last attempt died of; [`Why::Late`] if there was none.
    pub(super) died: Why,
    pub(super) waits: Option<Waits>,
    /// Its place in the line; less is earlier.
    rank: (i128, u64),
    /// Where it stands as a number of submission.
    number: u64,
    submitted: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Queued,
    Dead { until: Nanos },
    Leased { key: u32, slot: Slot, sent: Nanos },
}

#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    jobs: HashMap<JobId, Job>,
    line: BTreeSet<((i128, u64), JobId)>,
    dead: BTreeSet<(Nanos, JobId)>,
    /// Of those that are queued or dead.
    expiring: BTreeSet<(Nanos, JobId)>,
    submitted: u64,
}

impl Queue {
    /// Takes a job in, unless it is here already.
    pub(super) fn submit(&mut self, now: Nanos, id: JobId, asked: Asked, rules: &Rules) -> bool {
        if self.jobs.contains_key(&id) {
            return false;
        }
        self.submitted += 1;
        let mut job = Job {
            asked,
            state: State::Queued,
            tries: asked.tries,
            attempts: asked.tries,
            renewed: 0,
            again: asked.maybe_sent,
            died: Why::Late,
            waits: None,
            rank: (0, 0),
            number: self.submitted,
            submitted: now,
        };
        job.take_place(rules);
        self.put(id, job);
        true
    }

    /// Puts a job in its place, which its state tells.
    pub(super) fn put(&mut self, id: JobId, job: Job) {
        match job.state {
            State::Queued => drop(self.line.insert((job.rank, id))),
            State::Dead { until } => drop(self.dead.insert((until, id))),
            State::Leased { .. } => {}
        }
        if !matches!(job.state, State::Leased { .. }) && job.asked.expires != Nanos::NEVER {
            self.expiring.insert((job.asked.expires, id));
        }
        self.jobs.insert(id, job);
    }

    /// Takes a job out of its place, and out of the queue.
    pub(super) fn take(&mut self, id: JobId) -> Option<Job> {
        let job = self.jobs.remove(&id)?;
        match job.state {
            State::Queued => drop(self.line.remove(&(job.rank, id))),
            State::Dead { until } => drop(self.dead.remove(&(until, id))),
            State::Leased { .. } => {}
        }
        self.expiring.remove(&(job.asked.expires, id));
        Some(job)
    }

    pub(super) fn get(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id)
    }

    /// Whose turn it is.
    pub(super) fn first(&self) -> Option<(JobId, &Job)> {
        let (_, id) = self.line.first()?;
        Some((*id, self.jobs.get(id)?))
    }

    /// The dead letter that is due first.
    pub(super) fn first_dead(&self) -> Option<(Nanos, JobId)> {
        self.dead.first().copied()
    }

    pub(super) fn first_expiring(&self) -> Option<(Nanos, JobId)> {
        self.expiring.first().copied()
    }

    /// How many are queued, dead letters, and there in all.
    pub(super) fn sizes(&self) -> (usize, usize, usize) {
        (self.line.len(), self.dead.len(), self.jobs.len())
    }
}

impl Job {
    pub(super) fn take_place(&mut self, rules: &Rules) {
        let from = match rules.order {
            Order::Deadline => self.asked.expires.min(self.submitted + rules.patience),
            Order::FirstIn => self.submitted,
        };
        let preferred = i128::from(rules.priority_step.0) * i128::from(self.asked.priority);
        self.rank = (i128::from(from.0) - preferred, self.number);
    }
}
