//! Groups: submitted jobs, and their results so far.

use std::collections::VecDeque;
use std::sync::Arc;

use weir::send::store::StoreError;

use super::outcome::JobResult;
use super::watched::WatchedValue;

pub(crate) type Group = WatchedValue<GroupJobs>;

/// Jobs in the order of their submission, by index from 0; results at the front may have been taken.
#[derive(Debug, Default)]
pub(crate) struct GroupJobs {
    taken_count: usize,
    slots: VecDeque<GroupSlot>,
    /// Indices of ended jobs, in the order of their ends.
    ended_order: VecDeque<usize>,
    /// Number of jobs without an end.
    open_count: usize,
    /// Number of submissions that are not accepted yet.
    pending_submissions: usize,
    submit_error: Option<StoreError>,
    /// Jobs that were in the store already, which may have their results: index and number.
    duplicates: Vec<(usize, u64)>,
    /// The sender has ended; no more results will come.
    sender_ended: bool,
}

#[derive(Debug)]
enum GroupSlot {
    Pending,
    Open(u64),
    Ended(Arc<JobResult>),
    Taken,
}

/// Outcome of a submission.
pub(crate) struct AcceptedJobs {
    pub(crate) first_index: usize,
    pub(crate) numbers: Vec<u64>,
    pub(crate) ended: Vec<(usize, Arc<JobResult>)>,
    pub(crate) duplicates: Vec<(usize, u64)>,
}

impl GroupJobs {
    /// Adds slots for `count` jobs; returns the index of the first.
    pub(crate) fn reserve(&mut self, count: usize) -> usize {
        let first = self.next_index();
        self.slots.extend((0..count).map(|_| GroupSlot::Pending));
        self.open_count += count;
        self.pending_submissions += 1;
        first
    }

    pub(crate) fn next_index(&self) -> usize {
        self.taken_count + self.slots.len()
    }

    pub(crate) fn accept(&mut self, entered: AcceptedJobs) {
        self.pending_submissions = self.pending_submissions.saturating_sub(1);
        for (place, number) in (entered.first_index..).zip(entered.numbers) {
            if let Some(slot @ GroupSlot::Pending) = self.slot(place) {
                *slot = GroupSlot::Open(number);
            }
        }
        for (place, outcome) in entered.ended {
            self.set_outcome(place, outcome);
        }
        self.duplicates.extend(entered.duplicates);
    }

    pub(crate) fn reject(&mut self, first: usize, count: usize, error: StoreError) {
        self.pending_submissions = self.pending_submissions.saturating_sub(1);
        for place in first..first + count {
            if let Some(slot @ GroupSlot::Pending) = self.slot(place) {
                *slot = GroupSlot::Taken;
                self.open_count -= 1;
            }
        }
        self.trim();
        self.submit_error.get_or_insert(error);
    }

    pub(crate) fn set_outcome(&mut self, place: usize, outcome: Arc<JobResult>) {
        if let Some(slot @ (GroupSlot::Pending | GroupSlot::Open(_))) = self.slot(place) {
            *slot = GroupSlot::Ended(outcome);
            self.open_count -= 1;
            self.ended_order.push_back(place);
        }
    }

    /// Adds the result of a job that was submitted elsewhere.
    pub(crate) fn add(&mut self, outcome: Arc<JobResult>) {
        self.ended_order.push_back(self.next_index());
        self.slots.push_back(GroupSlot::Ended(outcome));
    }

    pub(crate) fn set_sender_ended(&mut self) {
        self.sender_ended = true;
    }

    /// Whether the sender has ended.
    pub(crate) fn has_sender_ended(&self) -> bool {
        self.sender_ended
    }

    /// Number of jobs without an end.
    pub(crate) fn open_count(&self) -> usize {
        self.open_count
    }

    /// Number of jobs whose results were not taken.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Takes the jobs that were in the store already: index and number.
    pub(crate) fn take_duplicates(&mut self) -> Vec<(usize, u64)> {
        std::mem::take(&mut self.duplicates)
    }

    /// Numbers of the open jobs.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let number = |slot: &GroupSlot| if let GroupSlot::Open(number) = slot { Some(*number) } else { None };
        self.slots.iter().filter_map(number).collect()
    }

    fn slot(&mut self, place: usize) -> Option<&mut GroupSlot> {
        self.slots.get_mut(place.checked_sub(self.taken_count)?)
    }

    pub(crate) fn number(&mut self, place: usize) -> Option<u64> {
        match self.slot(place)? {
            GroupSlot::Open(number) => Some(*number),
            GroupSlot::Ended(outcome) => Some(outcome.number()),
            GroupSlot::Pending | GroupSlot::Taken => None,
        }
    }

    pub(crate) fn outcome(&mut self, place: usize) -> Option<Arc<JobResult>> {
        match self.slot(place)? {
            GroupSlot::Ended(outcome) => Some(Arc::clone(outcome)),
            _ => None,
        }
    }

    /// Takes all results, in the order of the ends.
    pub(crate) fn take_ended(&mut self) -> Vec<Arc<JobResult>> {
        let places = std::mem::take(&mut self.ended_order);
        let outcomes = places.into_iter().filter_map(|place| self.take(place)).collect();
        self.trim();
        outcomes
    }

    /// Takes results in the order of submission, up to the first open job.
    pub(crate) fn take_front(&mut self) -> Vec<Arc<JobResult>> {
        let mut outcomes = Vec::new();
        while let Some(GroupSlot::Ended(_) | GroupSlot::Taken) = self.slots.front() {
            outcomes.extend(self.take(self.taken_count));
            self.trim();
        }
        self.ended_order.clear();
        outcomes
    }

    fn take(&mut self, place: usize) -> Option<Arc<JobResult>> {
        let slot = self.slot(place).filter(|slot| matches!(slot, GroupSlot::Ended(_)))?;
        match std::mem::replace(slot, GroupSlot::Taken) {
            GroupSlot::Ended(outcome) => Some(outcome),
            _ => None,
        }
    }

    fn trim(&mut self) {
        while let Some(GroupSlot::Taken) = self.slots.front() {
            self.slots.pop_front();
            self.taken_count += 1;
        }
    }

    /// Outcome of a wait; None while the condition is not reached. Errors first.
    pub(crate) fn check(&mut self, need: WaitCondition) -> Option<Result<(), GroupError>> {
        if let Some(error) = self.submit_error.take() {
            return Some(Err(GroupError::Store(error)));
        }
        let is_there = match need {
            WaitCondition::Accepted => self.pending_submissions == 0,
            WaitCondition::Any => !self.ended_order.is_empty() || self.open_count == 0,
            WaitCondition::More => !self.ended_order.is_empty(),
            WaitCondition::Front => self.slots.front().is_none_or(|slot| matches!(slot, GroupSlot::Ended(_))),
            WaitCondition::All => self.open_count == 0,
            WaitCondition::End(place) => {
                self.slot(place).is_none_or(|slot| matches!(slot, GroupSlot::Ended(_) | GroupSlot::Taken))
            }
        };
        if is_there { Some(Ok(())) } else { self.sender_ended.then_some(Err(GroupError::SenderEnded)) }
    }
}

/// Condition of a wait; the codes are those of `weir/_sending.py`.
#[derive(Clone, Copy)]
pub(crate) enum WaitCondition {
    /// All jobs are accepted.
    Accepted,
    /// A result is there, or no job is open.
    Any,
    /// A result is there.
    More,
    /// The first job whose result was not taken has ended.
    Front,
    /// All jobs have ended.
    All,
    /// The job with this index has ended.
    End(usize),
}

impl WaitCondition {
    pub(crate) fn from_code(code: i64) -> Self {
        match code {
            -1 => Self::Accepted,
            -2 => Self::Any,
            -3 => Self::Front,
            -4 => Self::More,
            place => usize::try_from(place).map_or(Self::All, Self::End),
        }
    }
}

/// Error of a wait.
pub(crate) enum GroupError {
    Store(StoreError),
    SenderEnded,
}
