//! Services for Python, on threads of their own.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use pyo3::prelude::*;
use weir::machine::lock::lock;
use weir::machine::logger::Logger;
use weir::serve::ServeError;
use weir::server::RunningServer;

use crate::errors;
use crate::flag_form::FlagForm;
use crate::serve_form::serve_options;

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

/// Starts a service with its arguments, by name.
#[pyfunction]
#[pyo3(name = "serve")]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python are owned")]
pub(crate) fn start_service(
    py: Python<'_>,
    service: String,
    flags: BTreeMap<String, Vec<String>>,
) -> PyResult<ServiceHandle> {
    py.detach(|| {
        let logger = Logger::new(|text| eprintln!("weir: {text}"));
        let options = serve_options(&service, FlagForm::new(flags), logger)?;
        let scheme = options.service.scheme();
        let running = options.start().map_err(|error| match error {
            ServeError::Options(reason) => errors::flags(&reason),
            ServeError::Start(reason) => errors::serve(&reason),
        })?;
        let address = running.address();
        Ok(ServiceHandle {
            host: address.ip().to_string(),
            port: address.port(),
            url: format!("{scheme}://{address}"),
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
