//! `weir.start_load`: a load on a thread of its own, which the program changes while it runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir::agents::{AgentSpec, Coordinator};
use weir::load::program::ProgramOptions;
use weir::load::{ControlError, LoadControl, LoadPlan, Options, setup};
use weir::machine::clock;
use weir::machine::lock::lock;
use weir::measure::slo::Slo;
use weir::measure::{Run, RunProgress};
use weir::pace::live_load::LoadChange;

use crate::errors;
use crate::form::LoadRequest;
use crate::run::RunHandle;

/// Time between two checks of Python's signals, and of a load that has not started yet.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Load that goes on; dropping it ends the load.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct StartedLoadHandle(Arc<LoadState>);

/// State shared by a load and its handle.
#[derive(Default)]
struct LoadState {
    /// Control of the load, once it is prepared.
    control: OnceLock<LoadControl>,
    is_ended: AtomicBool,
    outcome: Mutex<LoadOutcome>,
    ended: Condvar,
}

/// Outcome of a load.
#[derive(Default)]
enum LoadOutcome {
    /// Still running.
    #[default]
    Running,
    Done(Arc<Run>),
    Failed(PyErr),
}

/// Starts the load that the arguments describe. What is wrong with them is an error here, what happens later one of the
/// result.
#[pyfunction]
pub(crate) fn start_load(
    py: Python<'_>,
    form: &Bound<'_, PyDict>,
    command: Vec<String>,
) -> PyResult<StartedLoadHandle> {
    let LoadRequest { options, slos, agents } = LoadRequest::read(form)?;
    if options.program.as_ref().is_some_and(ProgramOptions::is_javascript) {
        return Err(errors::usage("script cannot be used with start_load(); write weir.load(script=...)"));
    }
    py.detach(|| {
        let plan = LoadPlan::new(&options).map_err(|e| errors::plan(&e))?;
        if let Some(agents) = &agents {
            agents.check(Some(plan.connections)).map_err(|why| errors::agents(&why))?;
        }
        let state = Arc::new(LoadState::default());
        let own = Arc::clone(&state);
        let run = move || {
            let outcome = match own.run(&options, plan, &slos, agents.as_ref(), &command) {
                Ok(run) => LoadOutcome::Done(Arc::new(run)),
                Err(error) => LoadOutcome::Failed(error),
            };
            *lock(&own.outcome) = outcome;
            own.ended.notify_all();
        };
        let thread = thread::Builder::new().name("weir-started-load".to_owned()).spawn(run);
        thread.map_err(|error| errors::usage(&format!("the system has no thread for the load: {error}")))?;
        Ok(StartedLoadHandle(state))
    })
}

impl LoadState {
    fn run(
        &self,
        options: &Options,
        mut plan: LoadPlan,
        slos: &[Slo],
        agents: Option<&AgentSpec>,
        command: &[String],
    ) -> PyResult<Run> {
        let mut go_on = || !self.is_ended.load(Ordering::Relaxed);
        let options = setup::set_up(options, &mut go_on).map_err(|e| errors::load(&e))?;
        if plan.has_setup() {
            plan = LoadPlan::new(&options).map_err(|e| errors::plan(&e))?;
        }
        let (plan, control) = plan.controlled();
        self.control.get_or_init(|| control);
        let mut watch = |_: &RunProgress<'_>| go_on();
        let run = match agents {
            None => weir::load::run(&plan, command, &mut watch, None),
            Some(spec) => Coordinator::place(spec, &options, &mut || !self.is_ended.load(Ordering::Relaxed))
                .and_then(|mut coordinator| coordinator.run(&options, &plan, command, &mut watch)),
        };
        let torn_down = setup::tear_down(&options, &mut || true);
        let mut run = run.map_err(|e| errors::load(&e))?;
        torn_down.map_err(|e| errors::load(&e))?;
        run.slo = slos.iter().map(|slo| slo.check(&run)).collect();
        Ok(run)
    }

    fn is_running(&self) -> bool {
        matches!(*lock(&self.outcome), LoadOutcome::Running)
    }

    /// Changes the load once it has started; the instant from which the change holds. None: it is over.
    fn change(&self, change: LoadChange, mut go_on: impl FnMut() -> PyResult<()>) -> PyResult<Option<f64>> {
        loop {
            if !self.is_running() {
                return Ok(None);
            }
            match self.control.get().map(|control| control.change(change)) {
                Some(Ok(at)) => return Ok(Some(at.as_secs_f64())),
                Some(Err(ControlError::NotStarted)) | None => {}
                Some(Err(why)) => return Err(errors::usage(&why.to_string())),
            }
            go_on()?;
            // Until it has ended, or a moment later.
            let _ = self.ended.wait_timeout(lock(&self.outcome), POLL_INTERVAL);
        }
    }
}

#[pymethods]
impl StartedLoadHandle {
    /// Changes the load, once it has started; the time from which the change holds, in seconds since its start.
    #[pyo3(signature = (kind, level=0.0))]
    #[allow(clippy::redundant_closure_for_method_calls, reason = "the method itself is of one lifetime only")]
    fn change(&self, py: Python<'_>, kind: &str, level: f64) -> PyResult<f64> {
        let change = match kind {
            "rate" => LoadChange::Rate(level),
            "users" => LoadChange::Users(level as u64),
            "pause" => LoadChange::Pause,
            "resume" => LoadChange::Resume,
            _ => LoadChange::Stop,
        };
        let changed = py.detach(|| self.0.change(change, || Python::attach(|py| py.check_signals())))?;
        changed.ok_or_else(|| errors::usage("the load is over"))
    }

    /// Whether the load goes on.
    fn is_running(&self) -> bool {
        self.0.is_running()
    }

    /// Ends the load as Ctrl-C does; returns at once.
    fn end(&self) {
        self.0.is_ended.store(true, Ordering::Relaxed);
    }

    /// Waits for the end of the load; None: it has not come within the timeout, in seconds.
    #[pyo3(signature = (timeout))]
    fn result(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<RunHandle>> {
        let limit = timeout.map(|timeout| Duration::try_from_secs_f64(timeout).unwrap_or_default());
        let began = clock::monotonic();
        let elapsed = || Duration::from_nanos((clock::monotonic() - began).0);
        loop {
            let is_over = py.detach(|| {
                let outcome = lock(&self.0.outcome);
                let left = limit.map_or(POLL_INTERVAL, |limit| limit.saturating_sub(elapsed()).min(POLL_INTERVAL));
                let waited = self.0.ended.wait_timeout_while(outcome, left, |now| matches!(now, LoadOutcome::Running));
                waited.is_ok_and(|(now, _)| !matches!(*now, LoadOutcome::Running))
            });
            if is_over {
                return match &*lock(&self.0.outcome) {
                    LoadOutcome::Running => Ok(None),
                    LoadOutcome::Done(run) => Ok(Some(RunHandle((**run).clone()))),
                    LoadOutcome::Failed(error) => Err(error.clone_ref(py)),
                };
            }
            py.check_signals()?;
            if limit.is_some_and(|limit| elapsed() >= limit) {
                return Ok(None);
            }
        }
    }
}

impl Drop for StartedLoadHandle {
    fn drop(&mut self) {
        self.end();
    }
}
