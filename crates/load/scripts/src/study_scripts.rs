//! Scripts that drive the users of a study's loads.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::python_host::{PythonHost, PythonScript, PythonScriptSettings, ScriptRole, open_script};
use crate::python_process::replace_process;
use weir_load::program::ScriptOptions;
use weir_machine::lock::lock;

/// Scripts that drive the users of a study's loads, in processes of their own. One in Python is opened here once, for
/// the load that it defines, and for the exceptions of its tasks.
#[derive(Debug)]
pub struct StudyScripts<'a> {
    args: &'a [OsString],
    host: Option<&'a dyn PythonHost>,
    opened: Mutex<Vec<OpenStudyScript>>,
}

#[derive(Debug)]
struct OpenStudyScript {
    path: PathBuf,
    python: Box<dyn PythonScript>,
    reports: Vec<String>,
}

impl<'a> StudyScripts<'a> {
    /// Scripts of a process with this interpreter; `args` is its command line.
    pub fn new(args: &'a [OsString], host: Option<&'a dyn PythonHost>) -> Self {
        Self { args, host, opened: Mutex::default() }
    }

    /// Opens a script in Python, unless it is open; returns the load that it describes. Without an interpreter in this
    /// process another one takes the process over.
    ///
    /// # Errors
    /// One line.
    pub fn open_python(&self, script: &mut ScriptOptions) -> Result<PythonScriptSettings, String> {
        let Some(host) = self.host else { return Err(replace_process(self.args)) };
        let mut opened = lock(&self.opened);
        if let Some(known) = opened.iter().find(|it| it.path == script.path) {
            let settings = known.python.settings();
            script.scenarios.clone_from(&settings.scenarios);
            return Ok(settings);
        }
        let (python, settings) = open_script(host, script, ScriptRole::Coordinator)?;
        python.coordinate(1)?;
        opened.push(OpenStudyScript { path: script.path.clone(), python, reports: Vec::new() });
        Ok(settings)
    }

    /// Takes what a script has left in the process that ran it.
    pub fn add_report(&self, script: &ScriptOptions, report: &str) {
        let mut opened = lock(&self.opened);
        if let Some(open) = opened.iter_mut().find(|it| it.path == script.path) {
            open.reports.push(report.to_owned());
        }
    }

    /// Ends the scripts, which report the exceptions of their tasks.
    ///
    /// # Errors
    /// One line; details are printed already.
    pub fn end(&self) -> Result<(), String> {
        lock(&self.opened).iter().try_for_each(|it| it.python.end_search(&it.reports))
    }
}
