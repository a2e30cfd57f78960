//! Python's signal handlers while a call without the GIL goes on.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// Exception that a signal handler has raised while a call went on, if one has. In the main thread, the handlers run
/// each time that the call asks whether it goes on.
#[derive(Debug, Default)]
pub(crate) struct SignalWatch(Option<PyErr>);

impl SignalWatch {
    /// Runs the handlers; whether the call goes on.
    pub(crate) fn goes_on(&mut self) -> bool {
        let goes_on = Python::try_attach(|py| match py.check_signals() {
            Ok(()) => self.0.is_none(),
            Err(error) => {
                self.0 = Some(error);
                false
            }
        });
        // Without an interpreter to attach to, Python is shutting down.
        goes_on.unwrap_or(false)
    }

    /// The exception that a handler has raised, if one has.
    pub(crate) fn raised(self) -> PyResult<()> {
        self.0.map_or(Ok(()), Err)
    }

    /// Result of the call: of one that a KeyboardInterrupt has ended what was measured; any other exception is raised.
    pub(crate) fn settle<T>(self, py: Python<'_>, result: PyResult<T>) -> PyResult<T> {
        match (self.0, result) {
            (Some(error), Ok(_)) if !error.is_instance_of::<PyKeyboardInterrupt>(py) => Err(error),
            (_, Ok(value)) => Ok(value),
            // Ctrl-C while connecting takes precedence over an error of the connection.
            (raised, Err(error)) => Err(raised.or_else(|| py.check_signals().err()).unwrap_or(error)),
        }
    }
}
