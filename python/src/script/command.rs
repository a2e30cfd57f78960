//! `weir load -s FILE.py` in a Python process.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir::cli::python_host::{PythonHost, PythonScript, PythonScriptArgs, PythonScriptSettings};
use weir::decide::Nanos;
use weir::load::program::UserProgram;
use weir::load::{LoadPlan, Pacing};
use weir::measure::Run;
use weir::scenario::plan::RequestOrigin;

use super::program::PythonProgram;
use super::shape::UserShape;
use super::shared_program::SharedProgram;
use crate::run::RunHandle;

/// Runs a command line whose Python script `opener` opens; returns the exit code.
#[pyfunction]
pub(crate) fn run_script(py: Python<'_>, args: Vec<OsString>, opener: Py<PyAny>) -> u8 {
    let host = OpenerHost(opener);
    py.detach(|| weir::cli::run_with(args, Some(&host)))
}

/// Function in Python that opens scripts.
#[derive(Debug)]
struct OpenerHost(Py<PyAny>);

/// Script that Python has loaded: an object with the methods that are called here.
pub(crate) struct OpenedScript(pub(crate) Py<PyAny>);

impl PythonHost for OpenerHost {
    fn open(&self, path: &Path, args: &PythonScriptArgs) -> Result<Box<dyn PythonScript>, String> {
        Python::attach(|py| {
            let given = PyDict::new(py);
            given.set_item("url", &args.url)?;
            given.set_item("args", &args.args)?;
            given.set_item("tags", &args.tags)?;
            given.set_item("exclude_tags", &args.exclude_tags)?;
            given.set_item("users", args.users)?;
            given.set_item("ramp_up_s", args.ramp_up.map(|time| time.as_secs_f64()))?;
            given.set_item("duration_s", args.duration.map(|time| time.as_secs_f64()))?;
            let opened = self.0.call(py, (path,), Some(&given))?;
            Ok(Box::new(OpenedScript(opened)) as Box<dyn PythonScript>)
        })
        .map_err(|error| one_line(&error))
    }
}

impl PythonScript for OpenedScript {
    fn settings(&self) -> PythonScriptSettings {
        Python::attach(|py| {
            let script = self.0.bind(py);
            let duration: Option<f64> = script.getattr("duration_s").and_then(|value| value.extract()).unwrap_or(None);
            PythonScriptSettings {
                url: script.getattr("url").and_then(|value| value.extract()).unwrap_or(None),
                users: script.getattr("users").and_then(|value| value.extract()).unwrap_or(None),
                duration: duration.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            }
        })
    }

    fn program(&self, plan: &LoadPlan, headers: &[(String, String)]) -> Result<Arc<dyn UserProgram>, String> {
        self.shared(plan, headers).map(|program| Arc::new(program) as Arc<dyn UserProgram>)
    }

    fn done(&self, run: &Run) -> Result<Option<u8>, String> {
        Python::attach(|py| self.0.call_method1(py, "done", (RunHandle(run.clone()),))?.extract(py))
            .map_err(|error| one_line(&error))
    }
}

impl OpenedScript {
    /// Program of the users.
    ///
    /// # Errors
    /// One line; details are printed already.
    pub(crate) fn shared(&self, plan: &LoadPlan, headers: &[(String, String)]) -> Result<SharedProgram, String> {
        let target = &plan.target;
        let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
        let origin = RequestOrigin { is_tls: target.tls, host, port: target.port };
        let is_open = matches!(plan.pacing, Pacing::Open(_));
        Python::attach(|py| {
            let settings = PyDict::new(py);
            settings.set_item("users", plan.users)?;
            settings.set_item("seed", plan.seed)?;
            settings.set_item("headers", headers)?;
            settings.set_item("until_s", (plan.until < Nanos::NEVER).then(|| plan.until.as_secs_f64()))?;
            let factory = self.0.call_method(py, "factory", (), Some(&settings))?;
            let scenarios = factory.getattr(py, "scenarios")?.extract(py)?;
            let shape: Vec<(f64, u64)> = factory.getattr(py, "shape")?.extract(py)?;
            let shape = shape.into_iter().map(|(at_s, users)| (Nanos((at_s * 1e9) as u64), users)).collect();
            let shape = if is_open { UserShape::default() } else { UserShape(shape) };
            let program = PythonProgram::new(factory, scenarios, shape, is_open, origin);
            Ok(SharedProgram(Arc::new(program)))
        })
        .map_err(|error| one_line(&error))
    }
}

/// Exception as one line: the texts of those that mean to end the program stand alone.
fn one_line(error: &PyErr) -> String {
    Python::attach(|py| {
        let text = error.value(py).to_string();
        if error.is_instance_of::<PySystemExit>(py) || error.is_instance_of::<crate::errors::UsageError>(py) {
            return text;
        }
        let name = error.get_type(py).qualname().map_or_else(|_| "error".to_owned(), |name| name.to_string());
        format!("{name}: {text}")
    })
}
