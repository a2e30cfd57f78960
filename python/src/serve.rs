//! A service that runs beside Python, on threads of its own.

use std::ffi::OsString;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use weir::server::{Logger, RunningServer};

use crate::errors;

/// A running service; it stops when Python lets go of it.
#[pyclass(frozen, module = "weir._weir")]
pub(crate) struct ServiceHandle {
    running: Mutex<Option<RunningServer>>,
    #[pyo3(get)]
    host: String,
    #[pyo3(get)]
    port: u16,
    #[pyo3(get)]
    url: String,
}

/// Starts what `weir serve ARGS...` would start.
#[pyfunction]
pub(crate) fn serve(py: Python<'_>, args: Vec<OsString>) -> PyResult<ServiceHandle> {
    py.detach(|| {
        let asked = weir::cli::serve::parse(args).map_err(|why| errors::flags(&why))?;
        let running = asked.start(Logger::new(|text| eprintln!("weir: {text}"))).map_err(|why| errors::serve(&why))?;
        let address = running.address();
        Ok(ServiceHandle {
            host: address.ip().to_string(),
            port: address.port(),
            url: running.url(),
            running: Mutex::new(Some(running)),
        })
    })
}

#[pymethods]
impl ServiceHandle {
    /// Stops the service; answers that are owed have `grace_s` seconds. Does nothing the second time.
    fn stop(&self, py: Python<'_>, grace_s: f64) -> PyResult<()> {
        let grace = Duration::try_from_secs_f64(grace_s)
            .map_err(|_| errors::usage(&format!("grace: {grace_s} is not a length of time")))?;
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| {
            if let Some(running) = running {
                running.stop(grace);
            }
        });
        Ok(())
    }
}
