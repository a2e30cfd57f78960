//! Overload in virtual time, while other Python threads run and Ctrl-C works.

use std::ffi::OsString;

use pyo3::prelude::*;
use weir::cli::simulate;
use weir::simulate::text;

use crate::errors;

/// Runs what `weir simulate ARGS...` would run: the comparison as JSON, and as text.
#[pyfunction]
#[pyo3(name = "simulate")]
pub(crate) fn run_simulation(py: Python<'_>, args: Vec<OsString>) -> PyResult<(String, String)> {
    let mut raised: Option<PyErr> = None;
    let shown = py.detach(|| {
        let plan = simulate::parse(args).and_then(|asked| asked.plan()).map_err(|why| errors::flags(&why))?;
        let mut go_on = || {
            #[expect(
                clippy::redundant_closure_for_method_calls,
                reason = "the method is not for any interpreter's lifetime"
            )]
            let signals = Python::try_attach(|py| py.check_signals());
            // No interpreter to attach to: it is shutting down.
            match signals {
                Some(Ok(())) => raised.is_none(),
                Some(Err(error)) => {
                    raised = Some(error);
                    false
                }
                None => false,
            }
        };
        let all = plan.run(&mut go_on);
        Ok((simulate::json(&all).map_err(|why| errors::usage(&why))?, text::render(&all)))
    });
    raised.map_or(shown, Err)
}
