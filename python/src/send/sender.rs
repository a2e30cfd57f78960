//! `SenderHandle`: the core's sender for Python.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use weir::base::Nanos;
use weir::machine::lock::lock;
use weir::send::store::{JobSelector, Recovery, Store, StoreError, StoreUrl};
use weir::send::{self, PauseRecord, State, wall_ms};

use super::elsewhere::RemoteWatch;
use super::group::{Group, GroupJobs};
use super::job::SenderJobContext;
use super::mailbox::{CompletionFuture, Mailbox};
use super::options::SenderRequest;
use super::outcome::JobResult;
use super::registry::{SenderListener, Waiters};
use super::submission_waker::submit;
use super::watched::is_main;
use crate::arguments::TimeArg;
use crate::client::kin::ForkSafe;
use crate::errors;

/// Maximum number of jobs that are submitted without releasing the GIL; for few jobs, acquiring it again costs more.
const MAX_JOBS_WITH_GIL: usize = 64;

/// Sender of jobs; unusable in a child of a fork.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct SenderHandle(ForkSafe<SenderInner>);

/// State behind a handle. A child of a fork must not use it: the threads are the parent's.
pub(crate) struct SenderInner {
    job_context: SenderJobContext,
    registry: Arc<Waiters>,
    store_url: StoreUrl,
    recovered: Recovery,
    core: Mutex<CoreSender>,
    /// Set when the handle is dropped without `close`, or at the end of the program.
    abandoned: AtomicBool,
    _remote_watch: RemoteWatch,
}

/// Core sender and its store; None once the sender has ended.
struct CoreSender {
    sender: Option<send::Sender>,
    store: Option<Arc<dyn Store>>,
    failure: Option<String>,
}

impl SenderInner {
    fn start(request: SenderRequest) -> PyResult<Self> {
        let store = request.open_store().map_err(|error| errors::serve(&error.to_string()))?;
        let registry = Arc::<Waiters>::default();
        let keys = request.options.keys.iter().map(|key| Arc::from(key.name())).collect();
        let ear = SenderListener { registry: Arc::clone(&registry), keys };
        let renews = request.options.ttl_extension.is_some();
        let elsewhere =
            RemoteWatch::start(&store, &registry, renews).map_err(|error| errors::serve(&error.to_string()))?;
        let sender = send::Sender::start(Arc::clone(&store), request.options, Box::new(ear))
            .map_err(|error| errors::serve(&error.to_string()))?;
        let recovered = sender.recovered();
        let core = Mutex::new(CoreSender { sender: Some(sender), store: Some(store), failure: None });
        Ok(Self {
            job_context: request.common,
            registry,
            store_url: request.store_url,
            recovered,
            core,
            abandoned: AtomicBool::new(false),
            _remote_watch: elsewhere,
        })
    }

    pub(crate) fn registry(&self) -> &Arc<Waiters> {
        &self.registry
    }

    fn core(&self) -> MutexGuard<'_, CoreSender> {
        lock(&self.core)
    }

    fn store(&self) -> Option<Arc<dyn Store>> {
        self.core().store.clone()
    }

    fn with_sender(&self, action: impl FnOnce(&send::Sender)) {
        if let Some(sender) = &self.core().sender {
            action(sender);
        }
    }

    pub(crate) fn submit(
        &self,
        py: Python<'_>,
        group: &Arc<Group>,
        jobs: &Bound<'_, PyList>,
        are_several: bool,
    ) -> PyResult<()> {
        let first = are_several.then(|| group.with(|jobs| jobs.next_index()));
        let jobs = self.job_context.jobs(jobs, first, wall_ms())?;
        if self.registry.has_ended() {
            return Err(self.closed_error(py));
        }
        let Some(store) = self.store() else { return Err(self.closed_error(py)) };
        if jobs.len() > MAX_JOBS_WITH_GIL {
            py.detach(|| submit(&*store, &self.registry, group, jobs));
        } else {
            submit(&*store, &self.registry, group, jobs);
        }
        Ok(())
    }

    /// Loads results of jobs that were in the store already.
    pub(crate) fn resolve_duplicates(&self, py: Python<'_>, group: &Arc<Group>) -> PyResult<()> {
        let known = group.with(GroupJobs::take_duplicates);
        if known.is_empty() {
            return Ok(());
        }
        let found = py.detach(|| self.results_of(&known)).map_err(|error| errors::store_error(&error))?;
        group.change(|jobs| found.into_iter().for_each(|(place, outcome)| jobs.set_outcome(place, Arc::new(outcome))));
        Ok(())
    }

    /// Results of ended jobs from the store, by index in the group.
    fn results_of(&self, known: &[(usize, u64)]) -> Result<Vec<(usize, JobResult)>, StoreError> {
        let Some(store) = self.store() else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for (place, number) in known {
            let detail = store.inspect(&JobSelector::Number(*number))?;
            found.extend(detail.and_then(JobResult::from_store).map(|outcome| (*place, outcome)));
        }
        Ok(found)
    }

    /// Joins the thread, which has ended or is about to, and releases the store; returns the error that ended it.
    fn join(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| {
            let mut core = self.core();
            if let Some(sender) = core.sender.take() {
                core.failure = sender.join().err().map(|error| error.to_string());
            }
            core.store = None;
            core.failure.clone()
        })
    }

    /// Parks a daemon thread that uses an abandoned sender: the program ends, and an exception would print a traceback,
    /// or half of one.
    fn park_if_abandoned(&self, py: Python<'_>) {
        if self.abandoned.load(Relaxed) && is_main(py).is_ok_and(|is_main| !is_main) {
            py.detach(|| {
                loop {
                    thread::park();
                }
            });
        }
    }

    /// Error of a call on a closed or ended sender.
    fn closed_error(&self, py: Python<'_>) -> PyErr {
        self.park_if_abandoned(py);
        match self.join(py) {
            Some(why) => errors::sender_ended(&why),
            None => errors::usage("the sender is closed; make a new one"),
        }
    }

    /// Error of a job that is open at the end of the sender.
    pub(crate) fn unfinished_error(&self, py: Python<'_>) -> PyErr {
        self.park_if_abandoned(py);
        let why = self.join(py).map_or_else(String::new, |why| format!(" ({why})"));
        let place = match &self.store_url {
            StoreUrl::File(_) | StoreUrl::Redis(_) => {
                format!("it stays in {}, for the next sender", self.store_url.redacted())
            }
            StoreUrl::Memory => "it was in memory and is lost; give store='jobs.db' to save jobs".to_owned(),
        };
        errors::sender_ended(&format!("the sender ended before the job did{why}: {place}"))
    }
}

impl SenderHandle {
    pub(crate) fn inner(&self) -> PyResult<&SenderInner> {
        if self.0.is_ours() {
            Ok(&self.0)
        } else {
            Err(errors::usage("the sender belongs to the process before the fork; make a new one in this process"))
        }
    }
}

#[pymethods]
impl SenderHandle {
    /// Starts a sender with options by name.
    #[new]
    fn new(py: Python<'_>, form: &Bound<'_, PyDict>) -> PyResult<Self> {
        let request = SenderRequest::read(form)?;
        py.detach(|| SenderInner::start(request)).map(|inside| Self(ForkSafe::new(inside)))
    }

    /// Number of jobs that a previous sender left leased, and of those that may have been sent.
    #[getter]
    fn recovered(&self) -> PyResult<(u64, u64)> {
        let recovered = self.inner()?.recovered;
        Ok((recovered.jobs, recovered.maybe_sent))
    }

    /// Fields of `weir.SenderStats`, by name.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inside = self.inner()?;
        let counted = inside.registry.stats();
        let counts = py.detach(|| inside.store().and_then(|store| store.counts().ok())).unwrap_or_default();
        let progress = inside.core().sender.as_ref().map(send::Sender::progress).unwrap_or_default();
        let dict = PyDict::new(py);
        dict.set_item("done", counted.done)?;
        dict.set_item("dead_lettered", counted.dead_lettered)?;
        dict.set_item("expired", counted.expired)?;
        dict.set_item("failed", counted.failed)?;
        dict.set_item("retried", counted.retries)?;
        let rejected = PyDict::new(py);
        for (status, count) in [429, 400].into_iter().zip(counted.rejected_by_status) {
            rejected.set_item(status, count)?;
        }
        dict.set_item("rejected", rejected)?;
        for state in [State::Queued, State::Leased, State::Retrying] {
            dict.set_item(state.name(), counts.jobs_in(state))?;
        }
        dict.set_item("in_flight", progress.in_flight)?;
        dict.set_item("delay_bound_ms", progress.delay_bound.map(Nanos::as_millis_f64))?;
        let now = wall_ms();
        let paused = progress.pauses.iter().filter(|pause| pause.until() > now).map(PauseRecord::phrase);
        dict.set_item("paused", paused.collect::<Vec<_>>())?;
        let (queued, retrying) = (counts.jobs_in(State::Queued), counts.jobs_in(State::Retrying));
        dict.set_item("limited_by", progress.limited_by.map(|limit| limit.with_store(queued, retrying).name()))?;
        let disabled = PyDict::new(py);
        for (key, reason) in counted.unusable_keys {
            disabled.set_item(key, reason)?;
        }
        dict.set_item("disabled_keys", disabled)?;
        Ok(dict)
    }

    /// Waits until no submission is pending, or for the end of the sender; false after the timeout.
    fn wait(&self, py: Python<'_>, for_end: bool, limit: Option<TimeArg>) -> PyResult<bool> {
        self.inner()?.registry.wait(py, for_end, limit.map(|TimeArg(limit)| limit))
    }

    /// The same for an asyncio loop; None if there is nothing to wait for.
    fn watch<'py>(&self, py: Python<'py>, for_end: bool, mailbox: &Mailbox) -> PyResult<Option<CompletionFuture<'py>>> {
        self.inner()?.registry.watch(py, for_end, mailbox)
    }

    /// Ends the sender when no job is left.
    fn finish(&self) -> PyResult<()> {
        self.inner()?.with_sender(send::Sender::finish);
        Ok(())
    }

    /// Ends the sender when no request is in flight, at the latest after `grace`.
    fn drain(&self, grace: &Bound<'_, PyAny>) -> PyResult<()> {
        let TimeArg(length) = grace.extract().map_err(|error| errors::argument(grace.py(), "grace", grace, &error))?;
        self.inner()?.with_sender(|sender| sender.drain(length.into()));
        Ok(())
    }

    /// Ends the sender at once.
    fn stop(&self) -> PyResult<()> {
        self.inner()?.with_sender(send::Sender::stop);
        Ok(())
    }

    /// Joins its thread and releases the store; returns the error that ended it.
    fn join(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.inner()?.join(py))
    }

    /// Ends a sender that was not closed; does nothing in a child of a fork.
    fn abandon(&self, py: Python<'_>) {
        if let Ok(inside) = self.inner() {
            inside.abandoned.store(true, Relaxed);
            inside.with_sender(send::Sender::stop);
            inside.join(py);
        }
    }
}
