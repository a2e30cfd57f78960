//! `weir.load`: one call of the core, with the GIL released and Ctrl-C handled.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir::agents::Coordinator;
use weir::load::{LoadPlan, setup};
use weir::measure::RunProgress;

use crate::errors;
use crate::form::LoadRequest;
use crate::k6_script::{PythonK6, Summaries};
use crate::run::RunHandle;
use crate::script::command::OpenedScript;
use crate::signals::SignalWatch;

/// Runs the load that the arguments describe, with the users of a script, if it has one. `command` is recorded in the manifest.
///
/// In the main thread, Python's signal handlers run about ten times per second. An exception of theirs ends the run: a
/// KeyboardInterrupt returns what was measured, any other exception is raised. Beside the result: the texts of the
/// summaries that a script of k6 writes itself, and why it could not.
#[pyfunction]
#[pyo3(signature = (form, command, script=None))]
#[expect(clippy::needless_pass_by_value, reason = "Python hands over owned values")]
pub(crate) fn load(
    py: Python<'_>,
    form: &Bound<'_, PyDict>,
    command: Vec<String>,
    script: Option<Py<PyAny>>,
) -> PyResult<(RunHandle, Summaries, Option<String>)> {
    let LoadRequest { mut options, slos, agents } = LoadRequest::read(form)?;
    let (mut signals, mut reports) = (SignalWatch::default(), Vec::new());
    let run = py.detach(|| {
        let mut k6 = PythonK6::open(&mut options, agents.is_some())?;
        if let Some(k6) = &k6 {
            k6.set_up(&mut options, &mut || signals.goes_on())?;
        }
        let mut plan = LoadPlan::new(&options).map_err(|e| errors::plan(&e))?;
        if let Some(agents) = &agents {
            agents.check(Some(plan.connections)).map_err(|why| errors::agents(&why))?;
        }
        let script = script.map(|script| OpenedScript(Arc::new(script)));
        if let Some(script) = script.as_ref().filter(|_| options.program.is_none()) {
            let program = script.shared(&plan, &options).map_err(|why| errors::flags(&why))?;
            plan = plan.driven_by(Arc::new(program), &options).map_err(|e| errors::plan(&e))?;
        }
        if let Some(k6) = &mut k6 {
            plan = k6.prepare(&options, plan)?;
        }
        let mut go_on = || signals.goes_on();
        let options = setup::set_up(&options, &mut go_on).map_err(|e| errors::load(&e))?;
        if plan.has_setup() {
            plan = LoadPlan::new(&options).map_err(|e| errors::plan(&e))?;
        }
        let run = match &agents {
            None => weir::load::run(&plan, &command, &mut |_: &RunProgress<'_>| go_on(), None),
            Some(spec) => Coordinator::place(spec, &options, &mut go_on).and_then(|mut coordinator| {
                let run = coordinator.run(&options, &plan, &command, &mut |_: &RunProgress<'_>| go_on());
                reports = coordinator.take_script_reports();
                run
            }),
        };
        if let Some(script) = &script {
            script.add_reports(&reports).map_err(|why| errors::usage(&why))?;
        }
        // Also after Ctrl-C.
        let torn_down = setup::tear_down(&options, &mut || true);
        let mut run = run.map_err(|e| errors::load(&e))?;
        if let Some(k6) = &k6 {
            k6.complete(&options, &mut run, &reports)?;
        }
        torn_down.map_err(|e| errors::load(&e))?;
        Ok((run, k6))
    });
    let (mut run, k6) = signals.settle(py, run)?;
    // Beside the thresholds of a script.
    let checked: Vec<_> = slos.iter().map(|slo| slo.check(&run)).collect();
    run.slo.extend(checked);
    let Some(k6) = k6 else { return Ok((RunHandle(run), Vec::new(), None)) };
    // A signal that has ended the load ends no summary.
    let mut signals = SignalWatch::default();
    let written = py.detach(|| k6.own_summaries(&run, &mut || signals.goes_on()));
    signals.raised()?;
    let (summaries, failure) = match written {
        Ok(summaries) => (summaries, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    Ok((RunHandle(run), summaries, failure))
}
