//! `weir load -s FILE.py` in a Python process.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir::base::Nanos;
use weir::load::program::{ScriptOptions, UserProgram, UserShape};
use weir::load::{LoadPlan, Options, Pacing};
use weir::measure::Run;
use weir::scenario::plan::RequestOrigin;
use weir::scripts::{PythonHost, PythonScript, PythonScriptSettings, ScriptRole};

use super::blocked::{attached, has_blocked};
use super::call_schemas::CallRoute;
use super::program::PythonProgram;
use super::shared_program::SharedProgram;
use crate::run::RunHandle;

/// Runs a command line whose Python script `opener` opens; returns the exit code.
#[pyfunction]
pub(crate) fn run_script(py: Python<'_>, args: Vec<OsString>, opener: Py<PyAny>) -> u8 {
    let host = OpenerHost(opener);
    py.detach(|| {
        let code = weir::cli::run_with(args, Some(&host));
        if has_blocked() {
            let flushed = |py: Python<'_>| py.import("weir._script")?.call_method0("flush").map(drop);
            let _ = attached(flushed);
            // Python would wait for the thread at its end, or not get its lock again.
            weir::command::exit::at_once(code);
        }
        code
    })
}

/// Function in Python that opens scripts.
#[derive(Debug)]
struct OpenerHost(Py<PyAny>);

/// Script that Python has loaded: an object with the methods that are called here.
#[derive(Debug)]
pub(crate) struct OpenedScript(pub(crate) Arc<Py<PyAny>>);

impl PythonHost for OpenerHost {
    fn open(&self, script: &ScriptOptions, role: ScriptRole) -> Result<Box<dyn PythonScript>, String> {
        Python::attach(|py| {
            let given = PyDict::new(py);
            given.set_item("url", &script.url)?;
            given.set_item("args", &script.args)?;
            given.set_item("tags", &script.tags)?;
            given.set_item("exclude_tags", &script.exclude_tags)?;
            given.set_item("classes", &script.classes)?;
            given.set_item("user", &script.user)?;
            given.set_item("folders", &script.folders)?;
            given.set_item("users", script.users)?;
            given.set_item("ramp_up_s", script.ramp_up.map(|time| time.as_secs_f64()))?;
            given.set_item("duration_s", script.duration.map(|time| time.as_secs_f64()))?;
            let (role, number) = match role {
                ScriptRole::Single => ("single", None),
                ScriptRole::Coordinator => ("coordinator", None),
                ScriptRole::Agent(number) => ("agent", Some(number)),
            };
            given.set_item("role", role)?;
            given.set_item("agent", number)?;
            let opened = self.0.call(py, (&script.path,), Some(&given))?;
            Ok(Box::new(OpenedScript(Arc::new(opened))) as Box<dyn PythonScript>)
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
                scenarios: script.getattr("scenarios").and_then(|value| value.extract()).unwrap_or_default(),
                url: script.getattr("url").and_then(|value| value.extract()).unwrap_or(None),
                users: script.getattr("users").and_then(|value| value.extract()).unwrap_or(None),
                duration: duration.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            }
        })
    }

    fn program(&self, plan: &LoadPlan, options: &Options) -> Result<Arc<dyn UserProgram>, String> {
        self.shared(plan, options).map(|program| Arc::new(program) as Arc<dyn UserProgram>)
    }

    fn coordinate(&self, users: u64) -> Result<(), String> {
        Python::attach(|py| self.0.call_method1(py, "coordinate", (users,)).map(drop)).map_err(|error| one_line(&error))
    }

    fn report(&self) -> Result<String, String> {
        let script = self.script();
        let reported = attached(move |py| {
            let report = script.call_method0(py, "end_part").and_then(|report| report.extract(py));
            report.map_err(|error| one_line(&error))
        });
        reported.unwrap_or_else(|| Ok("[]".to_owned()))
    }

    fn end_search(&self, reports: &[String]) -> Result<(), String> {
        Python::attach(|py| self.0.call_method1(py, "end_search", (reports,)).map(drop))
            .map_err(|error| one_line(&error))
    }

    fn done(&self, run: &Run, reports: &[String]) -> Result<Option<u8>, String> {
        let (script, handle, reports) = (self.script(), RunHandle(run.clone()), reports.to_vec());
        attached(move |py| {
            let code = script.call_method1(py, "done", (handle, reports)).and_then(|code| code.extract(py));
            code.map_err(|error| one_line(&error))
        })
        .unwrap_or(Ok(None))
    }
}

impl OpenedScript {
    /// The script, for another thread.
    fn script(&self) -> Arc<Py<PyAny>> {
        Arc::clone(&self.0)
    }

    /// Passes what scripts of agents have left.
    ///
    /// # Errors
    /// One line.
    pub(crate) fn add_reports(&self, reports: &[String]) -> Result<(), String> {
        Python::attach(|py| self.0.call_method1(py, "add_reports", (reports,)).map(drop))
            .map_err(|error| one_line(&error))
    }

    /// Program of the users.
    ///
    /// # Errors
    /// One line; details are printed already.
    pub(crate) fn shared(&self, plan: &LoadPlan, options: &Options) -> Result<SharedProgram, String> {
        let headers = plan.script_headers(options).map_err(|error| error.to_string())?;
        let route = CallRoute(Arc::new(Options { bodies: Vec::new(), scenarios: Vec::new(), ..options.clone() }));
        let target = &plan.target;
        let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
        let origin = RequestOrigin { is_tls: target.tls, host, port: target.port };
        let is_open = matches!(plan.pacing, Pacing::Open(_));
        Python::attach(|py| {
            let settings = PyDict::new(py);
            settings.set_item("users", all_users(plan))?;
            settings.set_item("seed", plan.seed)?;
            settings.set_item("headers", headers)?;
            settings.set_item("route", route)?;
            settings.set_item("until_s", (plan.until < Nanos::NEVER).then(|| plan.until.as_secs_f64()))?;
            let factory = self.0.call_method(py, "factory", (), Some(&settings))?;
            let scenarios = factory.getattr(py, "scenarios")?.extract(py)?;
            let makes_calls = match factory.bind(py).getattr_opt("makes_calls")? {
                Some(makes_calls) => makes_calls.extract()?,
                None => false,
            };
            let shape: Vec<(f64, u64)> = factory.getattr(py, "shape")?.extract(py)?;
            let shape = shape.into_iter().map(|(at_s, users)| (Nanos((at_s * 1e9) as u64), users)).collect();
            let shape = if is_open { UserShape::default() } else { UserShape(shape) };
            let program = PythonProgram::new(factory, scenarios, shape, (is_open, makes_calls), origin);
            Ok(SharedProgram(Arc::new(program)))
        })
        .map_err(|error| one_line(&error))
    }
}

/// Number of users of all processes; in the open loop about.
fn all_users(plan: &LoadPlan) -> u64 {
    match &plan.pacing {
        Pacing::Closed(users) => users.count,
        Pacing::Open(_) | Pacing::Recorded => plan.users.saturating_mul(plan.shard.step()),
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
