//! `weir.llm`: load of a language model's server, with the GIL released and Ctrl-C handled.

use std::ffi::OsString;

use pyo3::prelude::*;
use weir::cli::llm::{self, LlmCallError};

use crate::errors;
use crate::run::RunHandle;
use crate::signals::SignalWatch;

/// Runs the load of `weir llm ARGS...`; returns it, and notes for a person. `command` is recorded in the manifest.
///
/// Python's signal handlers run as in [`crate::load::load`].
#[pyfunction]
#[pyo3(name = "llm")]
#[expect(clippy::needless_pass_by_value, reason = "Python hands over owned values")]
pub(crate) fn run_llm(py: Python<'_>, args: Vec<OsString>, command: Vec<String>) -> PyResult<(RunHandle, Vec<String>)> {
    let mut signals = SignalWatch::default();
    let run = py.detach(|| {
        let call = llm::parse(args).map_err(|reason| errors::flags(&reason))?;
        let run = call.run(&command, &mut || signals.goes_on()).map_err(|error| match error {
            LlmCallError::Load(error) => errors::load(&error),
            LlmCallError::Tokens(reason) => errors::flags(&reason),
        })?;
        Ok((run, call.notes().to_vec()))
    });
    let (run, notes) = signals.settle(py, run)?;
    Ok((RunHandle(run), notes))
}
