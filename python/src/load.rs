//! One call of the core, during which other Python threads run and Ctrl-C works.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir::agents::Coordinator;
use weir::load::LoadPlan;
use weir::measure::RunProgress;

use crate::errors;
use crate::form::LoadRequest;
use crate::run::RunHandle;

/// Drives the load that the form describes. `command` goes into the manifest.
///
/// About ten times a second Python's signal handlers run, if this is its main thread. What they raise ends the run:
/// a KeyboardInterrupt gives what was measured, any other exception comes out as it is.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands over owned strings")]
pub(crate) fn load(py: Python<'_>, form: &Bound<'_, PyDict>, command: Vec<String>) -> PyResult<RunHandle> {
    let LoadRequest { options, slos, agents } = LoadRequest::read(form)?;
    let mut raised: Option<PyErr> = None;
    let run = py.detach(|| {
        let plan = LoadPlan::new(&options).map_err(|e| errors::plan(&e))?;
        if let Some(agents) = &agents {
            agents.check(Some(plan.connections)).map_err(|why| errors::agents(&why))?;
        }
        let mut go_on = || {
            let go_on = Python::try_attach(|py| match py.check_signals() {
                Ok(()) => raised.is_none(),
                Err(error) => {
                    raised = Some(error);
                    false
                }
            });
            // No interpreter to attach to: it is shutting down.
            go_on.unwrap_or(false)
        };
        let run = match &agents {
            None => weir::load::run(&plan, &command, &mut |_: &RunProgress<'_>| go_on(), None),
            Some(asked) => Coordinator::place(asked, &options, &mut go_on)
                .and_then(|mut crew| crew.run(&options, &plan, &command, &mut |_: &RunProgress<'_>| go_on())),
        };
        run.map_err(|e| errors::load(&e))
    });
    let mut run = match (raised, run) {
        (Some(error), Ok(_)) if !error.is_instance_of::<PyKeyboardInterrupt>(py) => return Err(error),
        (_, Ok(run)) => run,
        // Ctrl-C while it connects is what ended it, whatever became of the connection.
        (raised, Err(error)) => return Err(raised.or_else(|| py.check_signals().err()).unwrap_or(error)),
    };
    run.slo = slos.iter().map(|slo| slo.check(&run)).collect();
    Ok(RunHandle(run))
}
