//! Scripts that drive the users of a study's loads.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::LoadArgs;
use super::python_script::open_script;
use crate::python_host::{PythonHost, PythonScript, ScriptRole};
use crate::python_process::replace_process;
use weir_load::program::ScriptOptions;
use weir_machine::lock::lock;

/// Scripts that drive the users of a study's loads, in processes of their own. One in Python is opened here once, for
/// the load that it defines, and for the exceptions of its tasks.
pub(crate) struct StudyScripts<'a> {
    args: &'a [OsString],
    host: Option<&'a dyn PythonHost>,
    opened: Mutex<Vec<OpenStudyScript>>,
}

struct OpenStudyScript {
    path: PathBuf,
    python: Box<dyn PythonScript>,
    reports: Vec<String>,
}

impl<'a> StudyScripts<'a> {
    /// Scripts of a command line, for a process with this interpreter.
    pub(crate) fn new(args: &'a [OsString], host: Option<&'a dyn PythonHost>) -> Self {
        Self { args, host, opened: Mutex::default() }
    }

    /// Takes the script out of the arguments of a load, if there is one, and applies the load that it defines. Its path
    /// is relative to a folder. Without an interpreter in this process another one takes the process over.
    ///
    /// # Errors
    /// One line.
    pub(super) fn take(&self, asked: &mut LoadArgs, folder: &Path) -> Result<Option<ScriptOptions>, String> {
        let of_file = |path: PathBuf| ScriptOptions::of_file(folder.join(path));
        let Some(path) = asked.request_args.take_python()? else {
            let script = asked.request_args.take_script()?.map(of_file);
            return match script {
                Some(script) if !script.path.is_file() => Err(no_file(&script.path)),
                script => Ok(script),
            };
        };
        if asked.threads.unwrap_or(1) > 1 {
            return Err("--threads does not go with a Python script; Python runs on one thread".to_owned());
        }
        let mut script = of_file(path);
        if !script.path.is_file() {
            return Err(no_file(&script.path));
        }
        let Some(host) = self.host else { return Err(replace_process(self.args)) };
        asked.threads = Some(1);
        let mut opened = lock(&self.opened);
        let settings = match opened.iter().find(|it| it.path == script.path) {
            Some(known) => known.python.settings(),
            None => {
                let (python, settings) = open_script(host, &mut script, ScriptRole::Coordinator)?;
                python.coordinate(1)?;
                opened.push(OpenStudyScript { path: script.path.clone(), python, reports: Vec::new() });
                settings
            }
        };
        script.scenarios = settings.scenarios;
        if asked.request_args.url().is_empty() {
            asked.request_args.set_url(settings.url.ok_or_else(|| super::python_script::no_url(&script.path))?);
        }
        script.url = asked.request_args.url().to_owned();
        let is_open = asked.rate.is_some() || asked.stages.is_some();
        if !is_open && asked.connections.is_none() {
            asked.users = asked.users.or(settings.users);
        }
        if asked.requests.is_none() && asked.loops.is_none() {
            asked.duration = asked.duration.or(settings.duration);
        }
        Ok(Some(script))
    }

    /// Takes what a script has left in the process that ran it.
    pub(crate) fn add_report(&self, script: &ScriptOptions, report: &str) {
        let mut opened = lock(&self.opened);
        if let Some(open) = opened.iter_mut().find(|it| it.path == script.path) {
            open.reports.push(report.to_owned());
        }
    }

    /// Ends the scripts, which report the exceptions of their tasks.
    ///
    /// # Errors
    /// One line; details are printed already.
    pub(crate) fn end(&self) -> Result<(), String> {
        lock(&self.opened).iter().try_for_each(|it| it.python.end_search(&it.reports))
    }
}

fn no_file(path: &Path) -> String {
    format!("cannot read the script '{}': no such file", path.display())
}
