//! Seam between the command line and a Python interpreter that this process has.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use weir_load::LoadPlan;
use weir_load::program::UserProgram;
use weir_measure::Run;

/// Python interpreter that this process has.
pub trait PythonHost: fmt::Debug {
    /// Loads a script.
    ///
    /// # Errors
    /// One line; details are printed already.
    fn open(&self, path: &Path, args: &PythonScriptArgs) -> Result<Box<dyn PythonScript>, String>;
}

/// What the command line says of a Python script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PythonScriptArgs {
    /// URL; empty if none is given.
    pub url: String,
    /// Arguments of its own.
    pub args: Vec<String>,
    /// Names of the tags of the tasks that run; all if empty.
    pub tags: Vec<String>,
    /// Names of the tags of tasks that do not run.
    pub exclude_tags: Vec<String>,
    /// Number of users of the closed loop, if it is given.
    pub users: Option<u64>,
    /// Time over which they start.
    pub ramp_up: Option<Duration>,
    /// Duration, if it is given.
    pub duration: Option<Duration>,
}

/// Python script that is loaded.
pub trait PythonScript {
    /// Load that the script describes itself, where the command line says nothing.
    fn settings(&self) -> PythonScriptSettings;

    /// Program of the users; `headers` are those of the command line.
    ///
    /// # Errors
    /// One line; details are printed already.
    fn program(&self, plan: &LoadPlan, headers: &[(String, String)]) -> Result<Arc<dyn UserProgram>, String>;

    /// Passes the result to the script, which may set the exit code.
    ///
    /// # Errors
    /// One line; details are printed already.
    fn done(&self, run: &Run) -> Result<Option<u8>, String>;
}

/// Load that a script describes itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PythonScriptSettings {
    /// URL of the service, if the script names it.
    pub url: Option<String>,
    /// Number of users of the closed loop.
    pub users: Option<u64>,
    /// Duration.
    pub duration: Option<Duration>,
}
