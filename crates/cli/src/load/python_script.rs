//! `weir load -s FILE.py`: the Python process that it needs, and the load that the script drives.

use std::ffi::OsString;
use std::path::Path;
use std::str::FromStr;

use clap::Args;

use super::LoadArgs;
use crate::python_host::{PythonHost, PythonScript, PythonScriptSettings, ScriptRole};
use crate::python_process::replace_process;
use crate::request_args::RequestArgs;
use weir_load::program::ScriptOptions;
use weir_load::{LoadPlan, Options};
use weir_machine as machine;
use weir_measure::Run;

const SCRIPT: &str = "Python script (as Locust)";

/// Flags of Python scripts.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct PythonFlags {
    /// run only tasks of a Python script with this tag; repeatable
    #[arg(long, value_name = "TAG", num_args = 1.., value_delimiter = ',', help_heading = SCRIPT)]
    tags: Vec<String>,
    /// leave out tasks of a Python script with this tag; repeatable
    #[arg(long, value_name = "TAG", num_args = 1.., value_delimiter = ',', help_heading = SCRIPT)]
    exclude_tags: Vec<String>,
    /// processes of a Python script; auto: one per core [default: 1]
    #[arg(long, value_name = "N|auto", help_heading = SCRIPT)]
    processes: Option<ProcessCount>,
}

/// Number of processes of a Python script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessCount {
    /// One per core, but not more than users.
    Auto,
    /// This many.
    Exactly(u64),
}

impl FromStr for ProcessCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Self::Auto),
            (_, Ok(count @ 1..=MAX_PROCESSES)) => Ok(Self::Exactly(count)),
            _ => Err(format!("write a number from 1 to {MAX_PROCESSES}, or auto")),
        }
    }
}

/// Maximum of `--processes`; more is a typing error.
const MAX_PROCESSES: u64 = 1000;

/// Python script of a load.
pub(super) struct PythonLoad {
    script: Box<dyn PythonScript>,
    options: ScriptOptions,
    has_agents: bool,
}

impl PythonFlags {
    /// Checks that nothing is said of a script that is not there.
    fn check_unused(&self) -> Result<(), String> {
        let given = [
            ("--tags", !self.tags.is_empty()),
            ("--exclude-tags", !self.exclude_tags.is_empty()),
            ("--processes", self.processes.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(format!("{flag} needs a Python script; name one with -s FILE.py")),
            None => Ok(()),
        }
    }
}

impl PythonLoad {
    /// Loads the script of the arguments, if there is one. Without an interpreter in this process another one takes the
    /// process over.
    ///
    /// # Errors
    /// One line.
    pub(super) fn open(
        asked: &mut LoadArgs,
        args: &[OsString],
        host: Option<&dyn PythonHost>,
    ) -> Result<Option<Self>, String> {
        let Some(path) = asked.request_args.take_python()? else {
            return asked.python_args.check_unused().map(|()| None);
        };
        let conflict = |flag: &str, why: &str| Err(format!("{flag} does not go with a Python script; {why}"));
        if asked.agent_args.are_remote() {
            return conflict("--on", "its processes are on this machine; write --processes N");
        }
        if asked.agent_args.has_agents() && asked.python_args.processes.is_some() {
            return Err("--processes and --on do not go together; --processes N is --on local --agents N".to_owned());
        }
        if asked.once {
            return conflict("--once", &format!("write weir run {}", path.display()));
        }
        if asked.threads.unwrap_or(1) > 1 {
            return conflict("--threads", "Python runs on one thread; write --processes N");
        }
        asked.threads = Some(1);
        let Some(host) = host else { return Err(replace_process(args)) };
        let mut own = asked.script_args.take_args();
        // Without a URL the first argument after -- stands in its place.
        if asked.request_args.url().starts_with('-') {
            own.insert(0, asked.request_args.take_url());
        }
        let mut options = ScriptOptions {
            path,
            url: asked.request_args.url().to_owned(),
            args: own,
            tags: asked.python_args.tags.clone(),
            exclude_tags: asked.python_args.exclude_tags.clone(),
            users: asked.users.or(asked.connections),
            ramp_up: asked.ramp_up,
            duration: asked.duration,
            ..ScriptOptions::default()
        };
        let processes = asked.python_args.processes;
        let is_single = matches!(processes, None | Some(ProcessCount::Exactly(1))) && !asked.agent_args.has_agents();
        let role = if is_single { ScriptRole::Single } else { ScriptRole::Coordinator };
        let (script, settings) = open_script_for(host, &mut options, &mut asked.request_args, role)?;
        let is_open = asked.rate.is_some() || asked.stages.is_some();
        if !is_open && asked.connections.is_none() {
            asked.users = asked.users.or(settings.users);
        }
        if asked.requests.is_none() && asked.loops.is_none() {
            asked.duration = asked.duration.or(settings.duration);
        }
        if let Some(processes) = processes.filter(|_| !is_single) {
            let users = asked.users.or(asked.connections).into_iter().chain(asked.requests).min();
            asked.agent_args.set_processes(processes.of_users(users)?);
        }
        Ok(Some(Self { script, options, has_agents: !is_single }))
    }

    /// The script for agents, if they drive the users.
    pub(super) fn for_agents(&self) -> Option<ScriptOptions> {
        self.has_agents.then(|| self.options.clone())
    }

    /// The load with the script's users.
    ///
    /// # Errors
    /// One line.
    pub(super) fn prepare(&self, options: &Options, plan: LoadPlan) -> Result<LoadPlan, String> {
        if self.has_agents {
            return self.script.coordinate(plan.users).map(|()| plan);
        }
        let headers = plan.script_headers(options).map_err(|error| error.to_string())?;
        let program = self.script.program(&plan, &headers)?;
        plan.driven_by(program, options).map_err(|error| error.to_string())
    }

    /// Passes the result and the reports of agents to the script, which may set the exit code.
    ///
    /// # Errors
    /// One line; details are printed already.
    pub(super) fn done(&self, run: &Run, reports: &[String]) -> Result<Option<u8>, String> {
        self.script.done(run, reports)
    }
}

impl ProcessCount {
    /// Number of processes for this number of users, or of tasks, if there are fewer.
    fn of_users(self, users: Option<u64>) -> Result<u64, String> {
        let users = users.unwrap_or(u64::MAX);
        match self {
            Self::Auto => Ok(machine::cores().min(users).max(1)),
            Self::Exactly(count) if count > users => {
                Err(format!("--processes: {count} processes cannot share {users} users or tasks; give fewer processes"))
            }
            Self::Exactly(count) => Ok(count),
        }
    }
}

/// Opens a script, which may name the URL.
///
/// # Errors
/// One line; details are printed already.
pub(super) fn open_script_for(
    host: &dyn PythonHost,
    options: &mut ScriptOptions,
    request_args: &mut RequestArgs,
    role: ScriptRole,
) -> Result<(Box<dyn PythonScript>, PythonScriptSettings), String> {
    let (script, settings) = open_script(host, options, role)?;
    if request_args.url().is_empty() {
        let url = settings.url.clone().ok_or_else(|| no_url(&options.path))?;
        request_args.set_url(url);
    }
    Ok((script, settings))
}

/// Opens a script, and takes the names of its scenarios over.
///
/// # Errors
/// One line; details are printed already.
pub(super) fn open_script(
    host: &dyn PythonHost,
    options: &mut ScriptOptions,
    role: ScriptRole,
) -> Result<(Box<dyn PythonScript>, PythonScriptSettings), String> {
    let script = host.open(options, role)?;
    let settings = script.settings();
    options.scenarios.clone_from(&settings.scenarios);
    Ok((script, settings))
}

/// Message of a script without a URL.
pub(super) fn no_url(path: &Path) -> String {
    let name = path.display();
    format!("{name}: no class has a host; write it there, or the URL: weir load -s {name} http://localhost:8080")
}
