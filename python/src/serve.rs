//! Services for Python, on threads of their own.

use std::ffi::OsString;
use std::sync::Mutex;
use std::time::Duration;

use pyo3::prelude::*;
use weir::machine::lock::lock;
use weir::machine::logger::Logger;
use weir::server::RunningServer;

use crate::errors;

/// Running service, stopped when Python drops it.
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

/// Starts the service of `weir serve ARGS...`.
#[pyfunction]
pub(crate) fn serve(py: Python<'_>, args: Vec<OsString>) -> PyResult<ServiceHandle> {
    py.detach(|| {
        let args = weir::cli::serve::parse(args).map_err(|reason| errors::flags(&reason))?;
        let running =
            args.start(Logger::new(|text| eprintln!("weir: {text}"))).map_err(|reason| errors::serve(&reason))?;
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
    /// Stops the service, with a timeout for requests in flight in seconds. A second call does nothing.
    fn stop(&self, py: Python<'_>, grace_s: f64) -> PyResult<()> {
        let grace = Duration::try_from_secs_f64(grace_s)
            .map_err(|_| errors::usage(&format!("invalid grace {grace_s}; write seconds, e.g. 5.0")))?;
        let running = lock(&self.running).take();
        py.detach(|| {
            if let Some(running) = running {
                running.stop(grace);
            }
        });
        Ok(())
    }
}
