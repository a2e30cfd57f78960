//! Script of a search for the highest load.

use std::ffi::OsString;

use super::python_script::open_script_for;
use crate::agent_args::AgentArgs;
use crate::python_host::{PythonHost, PythonScript, ScriptRole};
use crate::python_process::replace_process;
use crate::request_args::RequestArgs;
use weir_load::program::ScriptOptions;

/// Script of a search for the highest load: agents drive its users in one load after the other.
#[derive(Default)]
pub(crate) struct SearchScript {
    options: Option<ScriptOptions>,
    python: Option<Box<dyn PythonScript>>,
    reports: Vec<String>,
}

impl SearchScript {
    /// Opens the script of the arguments, if there is one; without agents it gets one.
    ///
    /// # Errors
    /// One line.
    pub(crate) fn open(
        request_args: &mut RequestArgs,
        agent_args: &mut AgentArgs,
        args: &[OsString],
        host: Option<&dyn PythonHost>,
    ) -> Result<Self, String> {
        let (path, is_python) = match request_args.take_python()? {
            Some(path) => (path, true),
            None => match request_args.take_script()? {
                Some(path) => (path, false),
                None => return Ok(Self::default()),
            },
        };
        if agent_args.are_remote() {
            return Err("--on does not go with a script; its processes are on this machine: --on local".to_owned());
        }
        let mut options = ScriptOptions { url: request_args.url().to_owned(), ..ScriptOptions::of_file(path) };
        let python = match (is_python, host) {
            (true, None) => return Err(replace_process(args)),
            (true, Some(host)) => {
                let (script, _) = open_script_for(host, &mut options, request_args, ScriptRole::Coordinator)?;
                script.coordinate(1)?;
                Some(script)
            }
            (false, _) => None,
        };
        if !agent_args.has_agents() {
            agent_args.set_processes(1);
        }
        Ok(Self { options: Some(options), python, reports: Vec::new() })
    }

    /// Whether it is in Python, which runs on one thread.
    pub(crate) fn is_python(&self) -> bool {
        self.python.is_some()
    }

    /// The script for agents.
    pub(crate) fn options(&self) -> Option<ScriptOptions> {
        self.options.clone()
    }

    /// Takes what the script of an agent has left after a load.
    pub(crate) fn add_report(&mut self, report: &str) {
        self.reports.push(report.to_owned());
    }

    /// Ends the search.
    ///
    /// # Errors
    /// One line; details are printed already.
    pub(crate) fn end(&self) -> Result<(), String> {
        self.python.as_ref().map_or(Ok(()), |script| script.end_search(&self.reports))
    }
}
