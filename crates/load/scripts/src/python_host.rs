//! Seam to a Python interpreter that this process has.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use weir_load::program::{ScriptOptions, UserProgram};
use weir_load::{LoadPlan, Options};
use weir_measure::Run;

/// Python interpreter that this process has.
pub trait PythonHost: fmt::Debug + Sync {
    /// Loads a script.
    ///
    /// # Errors
    /// One line; details are printed already.
    fn open(&self, script: &ScriptOptions, role: ScriptRole) -> Result<Box<dyn PythonScript>, String>;
}

/// Role of a process in a load with a Python script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptRole {
    /// All of it.
    Single,
    /// Its coordination: agents drive the users.
    Coordinator,
    /// The part of the agent of this number, from 0.
    Agent(u64),
}

/// Python script that is loaded.
pub trait PythonScript: fmt::Debug + Send {
    /// Load that the script describes itself, where the command line says nothing.
    fn settings(&self) -> PythonScriptSettings;

    /// Program of the users of a plan that these options made.
    ///
    /// # Errors
    /// One line; details are printed already.
    fn program(&self, plan: &LoadPlan, options: &Options) -> Result<Arc<dyn UserProgram>, String>;

    /// Begins a load of this number of users, which agents drive.
    ///
    /// # Errors
    /// One line; details are printed already.
    fn coordinate(&self, users: u64) -> Result<(), String>;

    /// Ends an agent's part of a load; returns what the script of the coordinator takes.
    ///
    /// # Errors
    /// One line; details are printed already.
    fn report(&self) -> Result<String, String>;

    /// Ends a search, which has no single result, and passes the reports of agents to the script.
    ///
    /// # Errors
    /// One line; details are printed already.
    fn end_search(&self, reports: &[String]) -> Result<(), String>;

    /// Passes the result and the reports of agents to the script, which may set the exit code.
    ///
    /// # Errors
    /// One line; details are printed already.
    fn done(&self, run: &Run, reports: &[String]) -> Result<Option<u8>, String>;
}

/// Opens a script, and takes the names of its scenarios over.
///
/// # Errors
/// One line; details are printed already.
pub fn open_script(
    host: &dyn PythonHost,
    options: &mut ScriptOptions,
    role: ScriptRole,
) -> Result<(Box<dyn PythonScript>, PythonScriptSettings), String> {
    let script = host.open(options, role)?;
    let settings = script.settings();
    options.scenarios.clone_from(&settings.scenarios);
    Ok((script, settings))
}

/// Load that a script describes itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PythonScriptSettings {
    /// Names of its classes of users.
    pub scenarios: Vec<String>,
    /// URL of the service, if the script names it.
    pub url: Option<String>,
    /// Number of users of the closed loop.
    pub users: Option<u64>,
    /// Duration.
    pub duration: Option<Duration>,
}
