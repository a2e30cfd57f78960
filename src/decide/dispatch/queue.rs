//! The jobs that are not on their way: those whose turn comes, in one line for all keys and one for each, dead letters,
//! and when each expires.

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
    /// Its place in its line.
    pub(super) rank: Rank,
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

/// A place in a line, of whichever line; less is earlier.
pub(super) type Rank = (i128, u64);

#[derive(Clone, Debug)]
pub(super) struct Queue {
    jobs: HashMap<JobId, Job>,
    /// Those that any key may send.
    line: BTreeSet<(Rank, JobId)>,
    /// By key: those that no other key may send.
    own: Vec<BTreeSet<(Rank, JobId)>>,
    queued: usize,
    /// Keys whose own line has changed.
    pub(super) changed: Vec<u32>,
    dead: BTreeSet<(Nanos, JobId)>,
    /// Of those that are queued or dead.
    expiring: BTreeSet<(Nanos, JobId)>,
    submitted: u64,
}

impl Queue {
    pub(super) fn new(keys: u32) -> Self {
        Self {
            jobs: HashMap::new(),
            line: BTreeSet::new(),
            own: vec![BTreeSet::new(); keys as usize],
            queued: 0,
            changed: Vec::new(),
            dead: BTreeSet::new(),
            expiring: BTreeSet::new(),
            submitted: 0,
        }
    }

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
            State::Queued => {
                self.queued += 1;
                self.line_of(job.asked.key).map(|line| line.insert((job.rank, id)));
            }
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
            State::Queued => {
                self.queued -= 1;
                self.line_of(job.asked.key).map(|line| line.remove(&(job.rank, id)));
            }
            State::Dead { until } => drop(self.dead.remove(&(until, id))),
            State::Leased { .. } => {}
        }
        self.expiring.remove(&(job.asked.expires, id));
        Some(job)
    }

    pub(super) fn get(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id)
    }

    /// Where such a job stands. One whose key there is not stands nowhere.
    fn line_of(&mut self, key: Option<u32>) -> Option<&mut BTreeSet<(Rank, JobId)>> {
        let Some(key) = key else { return Some(&mut self.line) };
        let line = self.own.get_mut(key as usize)?;
        self.changed.push(key);
        Some(line)
    }

    /// Whose turn it is, of those that any key may send, or of those that only this one may.
    pub(super) fn first(&self, key: Option<u32>) -> Option<(JobId, &Job)> {
        let line = key.map_or(Some(&self.line), |key| self.own.get(key as usize))?;
        let (_, id) = line.first()?;
        Some((*id, self.jobs.get(id)?))
    }

    /// How many stand in that line.
    pub(super) fn length(&self, key: Option<u32>) -> usize {
        key.map_or(Some(&self.line), |key| self.own.get(key as usize)).map_or(0, BTreeSet::len)
    }

    /// The dead letter that is due first.
    pub(super) fn first_dead(&self) -> Option<(Nanos, JobId)> {
        self.dead.first().copied()
    }

    pub(super) fn first_expiring(&self) -> Option<(Nanos, JobId)> {
        self.expiring.first().copied()
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values()
    }

    /// How many are queued, dead letters, and there in all.
    pub(super) fn sizes(&self) -> (usize, usize, usize) {
        (self.queued, self.dead.len(), self.jobs.len())
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
