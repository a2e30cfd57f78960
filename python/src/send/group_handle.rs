//! `GroupHandle`: a group of jobs for Python.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyList;

use super::group::{Group, GroupError, GroupJobs, WaitCondition};
use super::mailbox::{CompletionFuture, Mailbox};
use super::outcome::JobResultHandle;
use super::registry::Waiters;
use super::sender::{SenderHandle, SenderInner};
use super::watched::WatchResult;
use crate::arguments::TimeArg;
use crate::client::kin::ForkSafe;
use crate::errors;

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
    fn of(sender: &Bound<'_, SenderHandle>, group: Arc<Group>) -> PyResult<Self> {
        let registry = Arc::clone(sender.get().inner()?.registry());
        Ok(Self { group_ref: ForkSafe::new(GroupRef { registry, group }), sender: sender.clone().unbind() })
    }

    fn group(&self) -> &Arc<Group> {
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

    /// Group that receives each result of the sender from now on.
    #[staticmethod]
    fn of_all(sender: &Bound<'_, SenderHandle>) -> PyResult<Self> {
        let all = sender.get().inner()?.registry().all();
        Self::of(sender, all)
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
    fn watch<'py>(&self, py: Python<'py>, need: i64, mailbox: &Mailbox) -> PyResult<Option<CompletionFuture<'py>>> {
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
        Ok(self.group().with(|jobs| jobs.has_sender_ended() || jobs.outcome(place).is_some()))
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
        Ok(self.group().with(|jobs| jobs.open_count()))
    }

    /// Number of jobs whose results were not taken.
    fn __len__(&self) -> PyResult<usize> {
        self.sender_inner()?;
        Ok(self.group().with(|jobs| jobs.len()))
    }
}
