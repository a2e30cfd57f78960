//! Jobs that somebody has submitted, and what came of them so far.

use std::collections::VecDeque;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyList;
use weir::send::store::StoreError;

use super::outcome::{JobResult, JobResultHandle};
use super::registry::Waiters;
use super::sender::{SenderHandle, SenderInner};
use super::watched::{WatchResult, WatchedValue};
use crate::client::kin::ForkSafe;
use crate::errors;
use crate::form::TimeArg;

pub(crate) type Group = WatchedValue<GroupJobs>;

/// Jobs in the order of their submission, numbered from 0; those at the front may have been taken away.
#[derive(Debug, Default)]
pub(crate) struct GroupJobs {
    taken_count: usize,
    slots: VecDeque<GroupSlot>,
    /// In the order of their ends.
    ended_order: VecDeque<usize>,
    /// So many have come to no end yet.
    open_count: usize,
    /// So many submissions wait to be accepted.
    pending_submissions: usize,
    submit_error: Option<StoreError>,
    /// Jobs that the store had before: it may know how they ended.
    duplicates: Vec<(usize, u64)>,
    /// The sender has ended: no more will come.
    sender_ended: bool,
}

#[derive(Debug)]
enum GroupSlot {
    Pending,
    Open(u64),
    Ended(Arc<JobResult>),
    Taken,
}

/// What came of a submission.
pub(crate) struct AcceptedJobs {
    pub(crate) first_index: usize,
    pub(crate) numbers: Vec<u64>,
    pub(crate) ended: Vec<(usize, Arc<JobResult>)>,
    pub(crate) duplicates: Vec<(usize, u64)>,
}

impl GroupJobs {
    /// Makes places for so many more; says which is the first.
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

    /// One more that nobody has submitted here.
    pub(crate) fn add(&mut self, outcome: Arc<JobResult>) {
        self.ended_order.push_back(self.next_index());
        self.slots.push_back(GroupSlot::Ended(outcome));
    }

    pub(crate) fn set_sender_ended(&mut self) {
        self.sender_ended = true;
    }

    /// Those that are open, by the store's number.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let number = |slot: &GroupSlot| if let GroupSlot::Open(number) = slot { Some(*number) } else { None };
        self.slots.iter().filter_map(number).collect()
    }

    fn slot(&mut self, place: usize) -> Option<&mut GroupSlot> {
        self.slots.get_mut(place.checked_sub(self.taken_count)?)
    }

    fn number(&mut self, place: usize) -> Option<u64> {
        match self.slot(place)? {
            GroupSlot::Open(number) => Some(*number),
            GroupSlot::Ended(outcome) => Some(outcome.number()),
            GroupSlot::Pending | GroupSlot::Taken => None,
        }
    }

    fn outcome(&mut self, place: usize) -> Option<Arc<JobResult>> {
        match self.slot(place)? {
            GroupSlot::Ended(outcome) => Some(Arc::clone(outcome)),
            _ => None,
        }
    }

    /// Takes away what has ended, in the order of the ends.
    fn take_ended(&mut self) -> Vec<Arc<JobResult>> {
        let places = std::mem::take(&mut self.ended_order);
        let outcomes = places.into_iter().filter_map(|place| self.take(place)).collect();
        self.trim();
        outcomes
    }

    /// Takes away what has ended, in the order of submission, up to the first that has not.
    fn take_front(&mut self) -> Vec<Arc<JobResult>> {
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

    /// Whether it has come so far; what is wrong goes first.
    fn check(&mut self, need: WaitCondition) -> Option<Result<(), GroupError>> {
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

/// What is waited for.
#[derive(Clone, Copy)]
enum WaitCondition {
    /// All that was submitted is accepted.
    Accepted,
    /// Something that has ended and was not taken; or nothing is open.
    Any,
    /// Something that has ended and was not taken.
    More,
    /// The first that was not taken has ended.
    Front,
    /// All have ended.
    All,
    /// The one with this number has ended.
    End(usize),
}

impl WaitCondition {
    fn from_code(word: i64) -> Self {
        match word {
            -1 => Self::Accepted,
            -2 => Self::Any,
            -3 => Self::Front,
            -4 => Self::More,
            place => usize::try_from(place).map_or(Self::All, Self::End),
        }
    }
}

enum GroupError {
    Store(StoreError),
    SenderEnded,
}

/// Lets the registry forget the group with the last who asks for it.
struct GroupRef {
    registry: Arc<Waiters>,
    group: Arc<Group>,
}

impl Drop for GroupRef {
    fn drop(&mut self) {
        self.registry.forget(&self.group);
    }
}

/// Jobs that were submitted together or one after the other.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct GroupHandle {
    group_ref: ForkSafe<GroupRef>,
    sender: Py<SenderHandle>,
}

impl GroupHandle {
    pub(crate) fn of(sender: &Bound<'_, SenderHandle>, group: Arc<Group>) -> PyResult<Self> {
        let registry = Arc::clone(sender.get().inner()?.registry());
        Ok(Self { group_ref: ForkSafe::new(GroupRef { registry, group }), sender: sender.clone().unbind() })
    }

    pub(crate) fn group(&self) -> &Arc<Group> {
        &self.group_ref.group
    }

    fn sender_inner(&self) -> PyResult<&SenderInner> {
        self.sender.get().inner()
    }

    fn error(&self, py: Python<'_>, broken: &GroupError) -> PyErr {
        match broken {
            GroupError::Store(error) => errors::store_error(error),
            GroupError::SenderEnded => match self.sender_inner() {
                Ok(inside) => inside.unfinished_error(py),
                Err(error) => error,
            },
        }
    }
}

#[pymethods]
impl GroupHandle {
    /// An empty one.
    #[new]
    fn new(sender: &Bound<'_, SenderHandle>) -> PyResult<Self> {
        Self::of(sender, Arc::default())
    }

    /// Submits jobs; if they are several, what is wrong with one is told with its place.
    fn submit(&self, py: Python<'_>, jobs: &Bound<'_, PyList>, are_several: bool) -> PyResult<()> {
        self.sender_inner()?.submit(py, self.group(), jobs, are_several)
    }

    /// Waits until it has come so far: -1 all accepted, -2 any ended or none open, -3 the front ended, -4 any ended, -5 all
    /// ended, or the job at this place ended. Says whether it has, or the time is over.
    fn wait(&self, py: Python<'_>, need: i64, limit: Option<TimeArg>) -> PyResult<bool> {
        self.sender_inner()?.resolve_duplicates(py, self.group())?;
        let need = WaitCondition::from_code(need);
        match self.group().wait(py, limit.map(|TimeArg(limit)| limit), |jobs| jobs.check(need))? {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(broken)) => Err(self.error(py, &broken)),
        }
    }

    /// None if it has come so far; else a letter and the future that is set with the next change.
    fn watch<'py>(
        &self,
        py: Python<'py>,
        need: i64,
        mailbox: &super::mailbox::Mailbox,
    ) -> PyResult<Option<super::mailbox::CompletionFuture<'py>>> {
        self.sender_inner()?.resolve_duplicates(py, self.group())?;
        let need = WaitCondition::from_code(need);
        match self.group().watch(py, mailbox, |jobs| jobs.check(need))? {
            WatchResult::Later(promise) => Ok(Some(promise)),
            WatchResult::Ready(Ok(())) => Ok(None),
            WatchResult::Ready(Err(broken)) => Err(self.error(py, &broken)),
        }
    }

    /// Takes back what is not accepted yet.
    fn withdraw(&self) -> PyResult<()> {
        self.sender_inner()?.registry().withdraw(self.group());
        Ok(())
    }

    /// Whether this one has ended, for good or because the sender did.
    fn is_done(&self, py: Python<'_>, place: usize) -> PyResult<bool> {
        self.sender_inner()?.resolve_duplicates(py, self.group())?;
        Ok(self.group().with(|jobs| jobs.sender_ended || jobs.outcome(place).is_some()))
    }

    /// The store's number for the job.
    fn number(&self, place: usize) -> PyResult<Option<u64>> {
        self.sender_inner()?;
        Ok(self.group().with(|jobs| jobs.number(place)))
    }

    /// What came of the job, if it has ended and was not taken.
    fn outcome(&self, place: usize) -> PyResult<Option<JobResultHandle>> {
        self.sender_inner()?;
        Ok(self.group().with(|jobs| jobs.outcome(place)).map(JobResultHandle))
    }

    /// Takes what has ended, in the order of the ends.
    fn take_ended(&self) -> PyResult<Vec<JobResultHandle>> {
        self.sender_inner()?;
        Ok(self.group().with(GroupJobs::take_ended).into_iter().map(JobResultHandle).collect())
    }

    /// Takes what has ended, in the order of submission, up to the first that has not.
    fn take_front(&self) -> PyResult<Vec<JobResultHandle>> {
        self.sender_inner()?;
        Ok(self.group().with(GroupJobs::take_front).into_iter().map(JobResultHandle).collect())
    }

    /// Jobs without an end.
    #[getter]
    fn open(&self) -> PyResult<usize> {
        self.sender_inner()?;
        Ok(self.group().with(|jobs| jobs.open_count))
    }

    /// Jobs that were not taken.
    fn __len__(&self) -> PyResult<usize> {
        self.sender_inner()?;
        Ok(self.group().with(|jobs| jobs.slots.len()))
    }
}

impl SenderInner {
    /// Asks the store how jobs ended that it had before.
    fn resolve_duplicates(&self, py: Python<'_>, group: &Arc<Group>) -> PyResult<()> {
        let known = group.with(|jobs| std::mem::take(&mut jobs.duplicates));
        if known.is_empty() {
            return Ok(());
        }
        let found = py.detach(|| self.results_of(&known)).map_err(|error| errors::store_error(&error))?;
        group.change(|jobs| found.into_iter().for_each(|(place, outcome)| jobs.set_outcome(place, Arc::new(outcome))));
        Ok(())
    }
}
