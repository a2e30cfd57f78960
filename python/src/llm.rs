//! `weir.llm`: load of a language model's server, with the GIL released and Ctrl-C handled.

use std::ffi::OsString;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use weir::cli::llm::{self, LlmCallError};

use crate::errors;
use crate::run::RunHandle;

/// Runs the load of `weir llm ARGS...`; returns it, and notes for a person. `command` is recorded in the manifest.
///
/// Python's signal handlers run as in [`crate::load::load`].
#[pyfunction]
#[pyo3(name = "llm")]
#[expect(clippy::needless_pass_by_value, reason = "Python hands over owned values")]
pub(crate) fn run_llm(py: Python<'_>, args: Vec<OsString>, command: Vec<String>) -> PyResult<(RunHandle, Vec<String>)> {
    let mut raised: Option<PyErr> = None;
    let run = py.detach(|| {
        let call = llm::parse(args).map_err(|reason| errors::flags(&reason))?;
        let mut go_on = || {
            let go_on = Python::try_attach(|py| match py.check_signals() {
                Ok(()) => raised.is_none(),
                Err(error) => {
                    raised = Some(error);
                    false
                }
            });
            // Without an interpreter to attach to, Python is shutting down.
            go_on.unwrap_or(false)
        };
        let run = call.run(&command, &mut go_on).map_err(|error| match error {
            LlmCallError::Load(error) => errors::load(&error),
            LlmCallError::Tokens(reason) => errors::flags(&reason),
        })?;
        Ok((run, call.notes().to_vec()))
    });
    match (raised, run) {
        (Some(error), Ok(_)) if !error.is_instance_of::<PyKeyboardInterrupt>(py) => Err(error),
        (_, Ok((run, notes))) => Ok((RunHandle(run), notes)),
        // Ctrl-C while connecting takes precedence over an error of the connection.
        (raised, Err(error)) => Err(raised.or_else(|| py.check_signals().err()).unwrap_or(error)),
    }
}
