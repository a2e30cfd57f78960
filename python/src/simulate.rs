//! Simulation for Python, without the GIL and interruptible by Ctrl-C.

use std::ffi::OsString;

use pyo3::prelude::*;
use weir::cli::simulate;
use weir::simulate::text;

use crate::errors;

/// Runs the simulation of `weir simulate ARGS...`; returns it as JSON and as text.
#[pyfunction]
#[pyo3(name = "simulate")]
pub(crate) fn run_simulation(py: Python<'_>, args: Vec<OsString>) -> PyResult<(String, String)> {
    let mut raised: Option<PyErr> = None;
    let result = py.detach(|| {
        let plan = simulate::parse(args).and_then(|args| args.plan()).map_err(|reason| errors::flags(&reason))?;
        let mut go_on = || {
            #[expect(
                clippy::redundant_closure_for_method_calls,
                reason = "the method is not for any interpreter's lifetime"
            )]
            let signals = Python::try_attach(|py| py.check_signals());
            // Without an interpreter to attach to, it is shutting down.
            match signals {
                Some(Ok(())) => raised.is_none(),
                Some(Err(error)) => {
                    raised = Some(error);
                    false
                }
                None => false,
            }
        };
        let comparison = plan.run(&mut go_on);
        Ok((simulate::json(&comparison).map_err(|reason| errors::usage(&reason))?, text::render(&comparison)))
    });
    raised.map_or(result, Err)
}
