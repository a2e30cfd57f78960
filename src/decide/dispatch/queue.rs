//! The jobs: each by its number, dead letters by when they are due; and the lines of one host.

use std::collections::{BTreeSet, HashMap};

use super::{Asked, HostId, JobId, Nanos, Order, Rules, Why};
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
    /// It has failed in a way for which the host may be to blame, and has not been charged for it.
    pub(super) rested: bool,
    /// Its last failure was a refusal for rate.
    pub(super) is_rate: bool,
    /// What its last attempt died of; [`Why::Late`] if there was none.
    pub(super) died: Why,
    /// Its place in its line.
    pub(super) rank: Rank,
    /// Where it stands as a number of submission.
    number: u64,
    submitted: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Queued,
    Dead {
        until: Nanos,
    },
    Leased {
        key: u32,
        slot: Slot,
        sent: Nanos,
        probe: bool,
    },
    /// It failed, and it is to be seen whether the host answers others.
    Resting {
        sent: Nanos,
        failed: Nanos,
    },
}

/// A place in a line, of whichever line; less is earlier.
pub(super) type Rank = (i128, u64);

#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    jobs: HashMap<JobId, Job>,
    dead: BTreeSet<(Nanos, JobId)>,
    queued: usize,
    resting: usize,
    submitted: u64,
}

/// The jobs of one host that are not on their way.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    /// Those that any key may send.
    line: BTreeSet<(Rank, JobId)>,
    /// By key: those that no other key may send.
    own: Vec<BTreeSet<(Rank, JobId)>>,
    /// How many stand in a line, whichever it is.
    pub(super) standing: usize,
    /// Keys whose own line has changed.
    pub(super) changed: Vec<u32>,
    /// Of those that are queued, dead or resting.
    expiring: BTreeSet<(Nanos, JobId)>,
    /// By when they failed.
    pub(super) resting: BTreeSet<(Nanos, JobId)>,
}

impl Queue {
    /// Takes a job in, unless it is here already.
    pub(super) fn submit(&mut self, now: Nanos, id: JobId, asked: Asked, rules: &Rules) -> Option<Job> {
        if self.jobs.contains_key(&id) {
            return None;
        }
        self.submitted += 1;
        let mut job = Job {
            asked,
            state: State::Queued,
            tries: asked.tries,
            attempts: asked.tries,
            renewed: 0,
            again: asked.maybe_sent,
            rested: false,
            is_rate: false,
            died: Why::Late,
            rank: (0, 0),
            number: self.submitted,
            submitted: now,
        };
        job.take_place(rules);
        Some(job)
    }

    /// Puts a job in its place, which its state tells.
    pub(super) fn put(&mut self, id: JobId, job: Job, lines: &mut Lines) {
        match job.state {
            State::Queued => {
                self.queued += 1;
                if let Some(line) = lines.line_of(job.asked.key) {
                    line.insert((job.rank, id));
                    lines.standing += 1;
                }
            }
            State::Dead { until } => drop(self.dead.insert((until, id))),
            State::Resting { failed, .. } => {
                self.resting += 1;
                lines.resting.insert((failed, id));
            }
            State::Leased { .. } => {}
        }
        if !matches!(job.state, State::Leased { .. }) && job.asked.expires != Nanos::NEVER {
            lines.expiring.insert((job.asked.expires, id));
        }
        self.jobs.insert(id, job);
    }

    /// Takes a job out of its place, and out of the queue.
    pub(super) fn take(&mut self, id: JobId, lines: &mut Lines) -> Option<Job> {
        let job = self.jobs.remove(&id)?;
        match job.state {
            State::Queued => {
                self.queued -= 1;
                if let Some(line) = lines.line_of(job.asked.key)
                    && line.remove(&(job.rank, id))
                {
                    lines.standing -= 1;
                }
            }
            State::Dead { until } => drop(self.dead.remove(&(until, id))),
            State::Resting { failed, .. } => {
                self.resting -= 1;
                lines.resting.remove(&(failed, id));
            }
            State::Leased { .. } => {}
        }
        lines.expiring.remove(&(job.asked.expires, id));
        Some(job)
    }

    pub(super) fn get(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(&id)
    }

    /// Which host a job is for.
    pub(super) fn host_of(&self, id: JobId) -> Option<HostId> {
        self.jobs.get(&id).map(|job| job.asked.host)
    }

    /// The dead letter that is due first.
    pub(super) fn first_dead(&self) -> Option<(Nanos, JobId)> {
        self.dead.first().copied()
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values()
    }

    /// How many are queued, wait for another try, and are there in all.
    pub(super) fn sizes(&self) -> (usize, usize, usize) {
        (self.queued, self.dead.len() + self.resting, self.jobs.len())
    }
}

impl Lines {
    pub(super) fn new(keys: usize) -> Self {
        Self {
            line: BTreeSet::new(),
            own: vec![BTreeSet::new(); keys],
            standing: 0,
            changed: Vec::new(),
            expiring: BTreeSet::new(),
            resting: BTreeSet::new(),
        }
    }

    /// Where such a job stands. One whose key there is not stands nowhere.
    fn line_of(&mut self, key: Option<u32>) -> Option<&mut BTreeSet<(Rank, JobId)>> {
        let Some(key) = key else { return Some(&mut self.line) };
        let line = self.own.get_mut(key as usize)?;
        self.changed.push(key);
        Some(line)
    }

    /// Whose turn it is, of those that any key may send, or of those that only this one may.
    pub(super) fn first(&self, key: Option<u32>) -> Option<JobId> {
        let line = key.map_or(Some(&self.line), |key| self.own.get(key as usize))?;
        line.first().map(|(_, id)| *id)
    }

    /// All that stand in a line.
    pub(super) fn all(&self) -> impl Iterator<Item = JobId> {
        self.own.iter().chain([&self.line]).flatten().map(|(_, id)| *id)
    }

    /// The first `most` of each line.
    pub(super) fn next(&self, most: usize) -> impl Iterator<Item = JobId> {
        self.own.iter().chain([&self.line]).flat_map(move |line| line.iter().take(most)).map(|(_, id)| *id)
    }

    /// How many stand in that line.
    pub(super) fn length(&self, key: Option<u32>) -> usize {
        key.map_or(Some(&self.line), |key| self.own.get(key as usize)).map_or(0, BTreeSet::len)
    }

    pub(super) fn first_expiring(&self) -> Option<(Nanos, JobId)> {
        self.expiring.first().copied()
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
