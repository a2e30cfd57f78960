//! Groups: submitted jobs, and their results so far.

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

    /// Numbers of the open jobs.
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

    /// Takes all results, in the order of the ends.
    fn take_ended(&mut self) -> Vec<Arc<JobResult>> {
        let places = std::mem::take(&mut self.ended_order);
        let outcomes = places.into_iter().filter_map(|place| self.take(place)).collect();
        self.trim();
        outcomes
    }

    /// Takes results in the order of submission, up to the first open job.
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

    /// Outcome of a wait; None while the condition is not reached. Errors first.
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

/// Condition of a wait; the codes are those of `weir/_sending.py`.
#[derive(Clone, Copy)]
enum WaitCondition {
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
    fn from_code(code: i64) -> Self {
        match code {
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

/// Reference to a group; the registry forgets the group when it is dropped.
struct GroupRef {
    registry: Arc<Waiters>,
    group: Arc<Group>,
}

impl Drop for GroupRef {
    fn drop(&mut self) {
        self.registry.forget(&self.group);
    }
}

/// Group of jobs, for Python.
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
    /// New empty group.
    #[new]
    fn new(sender: &Bound<'_, SenderHandle>) -> PyResult<Self> {
        Self::of(sender, Arc::default())
    }

    /// Submits jobs; with `are_several`, errors name the index of the invalid job.
    fn submit(&self, py: Python<'_>, jobs: &Bound<'_, PyList>, are_several: bool) -> PyResult<()> {
        self.sender_inner()?.submit(py, self.group(), jobs, are_several)
    }

    /// Waits for a condition: -1 all accepted, -2 any ended or none open, -3 the front ended, -4 any ended, -5 all
    /// ended, or an index: this job ended. False after the timeout.
    fn wait(&self, py: Python<'_>, need: i64, limit: Option<TimeArg>) -> PyResult<bool> {
        self.sender_inner()?.resolve_duplicates(py, self.group())?;
        let need = WaitCondition::from_code(need);
        match self.group().wait(py, limit.map(|TimeArg(limit)| limit), |jobs| jobs.check(need))? {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(broken)) => Err(self.error(py, &broken)),
        }
    }

    /// The same for an asyncio loop: None, or ID and future that is set at the next change.
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

    /// Withdraws jobs that are not accepted yet.
    fn withdraw(&self) -> PyResult<()> {
        self.sender_inner()?.registry().withdraw(self.group());
        Ok(())
    }

    /// Whether this job or the sender has ended.
    fn is_done(&self, py: Python<'_>, place: usize) -> PyResult<bool> {
        self.sender_inner()?.resolve_duplicates(py, self.group())?;
        Ok(self.group().with(|jobs| jobs.sender_ended || jobs.outcome(place).is_some()))
    }

    /// Number of the job in the store.
    fn number(&self, place: usize) -> PyResult<Option<u64>> {
        self.sender_inner()?;
        Ok(self.group().with(|jobs| jobs.number(place)))
    }

    /// Result of the job, if it has ended and the result was not taken.
    fn outcome(&self, place: usize) -> PyResult<Option<JobResultHandle>> {
        self.sender_inner()?;
        Ok(self.group().with(|jobs| jobs.outcome(place)).map(JobResultHandle))
    }

    /// Takes all results, in the order of the ends.
    fn take_ended(&self) -> PyResult<Vec<JobResultHandle>> {
        self.sender_inner()?;
        Ok(self.group().with(GroupJobs::take_ended).into_iter().map(JobResultHandle).collect())
    }

    /// Takes results in the order of submission, up to the first open job.
    fn take_front(&self) -> PyResult<Vec<JobResultHandle>> {
        self.sender_inner()?;
        Ok(self.group().with(GroupJobs::take_front).into_iter().map(JobResultHandle).collect())
    }

    /// Number of jobs without an end.
    #[getter]
    fn open(&self) -> PyResult<usize> {
        self.sender_inner()?;
        Ok(self.group().with(|jobs| jobs.open_count))
    }

    /// Number of jobs whose results were not taken.
    fn __len__(&self) -> PyResult<usize> {
        self.sender_inner()?;
        Ok(self.group().with(|jobs| jobs.slots.len()))
    }
}

impl SenderInner {
    /// Loads results of jobs that were in the store already.
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
