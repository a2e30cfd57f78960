//! Flags of Python scripts, and arguments of loads that scripts drive.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;

use super::LoadArgs;
use super::k6_load::k6_script;
use crate::agent_args::AgentArgs;
use crate::k6_flags::K6Flags;
use crate::request_args::RequestArgs;
use weir_load::program::ScriptOptions;
use weir_machine as machine;
use weir_report::ReportFormat;
use weir_scripts::{
    LoadScript, PythonHost, PythonLoad, PythonScriptSettings, SearchScript, StudyScripts, WrkScript, replace_process,
};

const SCRIPT: &str = "Python script (as Locust)";

/// Flags of Python scripts.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct PythonFlags {
    /// run only tasks of a Python script with this tag; repeatable
    #[arg(long, value_name = "TAG", num_args = 1.., value_delimiter = ',', help_heading = SCRIPT)]
    tags: Vec<String>,
    /// skip tasks of a Python script with this tag; repeatable
    #[arg(long, value_name = "TAG", num_args = 1.., value_delimiter = ',', help_heading = SCRIPT)]
    exclude_tags: Vec<String>,
    /// run a Python script in N processes; auto: one per core [default: 1]
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

/// Script of the arguments of a load.
///
/// # Errors
/// One line.
pub(super) fn load_script(
    asked: &mut LoadArgs,
    args: &[OsString],
    host: Option<&dyn PythonHost>,
) -> Result<LoadScript, String> {
    if let Some(python) = python_load(asked, args, host)? {
        return asked.script_args.check_unused().map(|()| LoadScript::Python(python));
    }
    if let Some(script) = k6_script(asked)? {
        return asked.script_args.check_unused().map(|()| LoadScript::JavaScript(script));
    }
    asked.k6_flags.check_unused()?;
    if asked.k6_result_flags.summary_export.is_some() || asked.format == ReportFormat::K6 {
        return Err("--summary-export and --format k6 need a k6 script; name one with -s FILE.js".to_owned());
    }
    let Some(path) = asked.request_args.take_script()? else {
        return asked.script_args.check_unused().map(|()| LoadScript::Nothing);
    };
    if asked.agent_args.are_remote() {
        return Err(
            "--on cannot be used with a Lua script; its interpreters run on this machine: --on local".to_owned()
        );
    }
    if asked.once {
        return Err(format!("--once cannot be used with a Lua script; write weir run {}", path.display()));
    }
    let script = asked.script_args.script(&path);
    Ok(LoadScript::Lua(WrkScript::new(script, asked.agent_args.has_agents(), asked.span_args.trace.is_some())))
}

/// Loads the script in Python, if there is one. Without an interpreter in this process another one takes the process
/// over.
fn python_load(
    asked: &mut LoadArgs,
    args: &[OsString],
    host: Option<&dyn PythonHost>,
) -> Result<Option<PythonLoad>, String> {
    let Some(path) = asked.request_args.take_python()? else {
        return asked.python_args.check_unused().map(|()| None);
    };
    let conflict = |flag: &str, why: &str| Err(format!("{flag} cannot be used with a Python script; {why}"));
    if asked.agent_args.are_remote() {
        return conflict("--on", "its processes run on this machine; write --processes N");
    }
    if asked.agent_args.has_agents() && asked.python_args.processes.is_some() {
        return Err("--processes and --on cannot be combined; --processes N is --on local --agents N".to_owned());
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
    let options = ScriptOptions {
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
    let name = options.path.clone();
    let processes = asked.python_args.processes;
    let is_single = matches!(processes, None | Some(ProcessCount::Exactly(1))) && !asked.agent_args.has_agents();
    let (script, settings) = PythonLoad::open(host, options, !is_single)?;
    add_url(&mut asked.request_args, &settings, &name)?;
    asked.add_settings(&settings);
    if let Some(processes) = processes.filter(|_| !is_single) {
        let users = asked.users.or(asked.connections).into_iter().chain(asked.requests).min();
        asked.agent_args.set_processes(processes.of_users(users)?);
    }
    Ok(Some(script))
}

/// Script of the arguments of a search; without agents it gets one.
///
/// # Errors
/// One line.
pub(crate) fn search_script(
    request_args: &mut RequestArgs,
    (agent_args, k6_flags): (&mut AgentArgs, &K6Flags),
    args: &[OsString],
    host: Option<&dyn PythonHost>,
) -> Result<SearchScript, String> {
    if let Some(path) = request_args.take_javascript()? {
        if agent_args.are_remote() {
            return Err("--on cannot be used with a k6 script; its users run on this machine: --on local".to_owned());
        }
        if !agent_args.has_agents() {
            agent_args.set_processes(1);
        }
        let collection = request_args.collection_input(Path::new(""))?;
        return SearchScript::k6(&ScriptOptions { collection, ..k6_flags.script(path, request_args.url()) });
    }
    k6_flags.check_unused()?;
    let (path, is_python) = match request_args.take_python()? {
        Some(path) => (path, true),
        None => match request_args.take_script()? {
            Some(path) => (path, false),
            None => return Ok(SearchScript::default()),
        },
    };
    if agent_args.are_remote() {
        return Err("--on cannot be used with a script; its processes run on this machine: --on local".to_owned());
    }
    if !agent_args.has_agents() {
        agent_args.set_processes(1);
    }
    let options = ScriptOptions { url: request_args.url().to_owned(), ..ScriptOptions::of_file(path.clone()) };
    if !is_python {
        return Ok(SearchScript::lua(options));
    }
    let Some(host) = host else { return Err(replace_process(args)) };
    let (script, settings) = SearchScript::python(host, options)?;
    add_url(request_args, &settings, &path)?;
    Ok(script)
}

/// Takes the script out of the arguments of a study's load, if there is one, and applies the load that it defines. Its
/// path is relative to a folder.
///
/// # Errors
/// One line.
pub(super) fn study_script(
    asked: &mut LoadArgs,
    folder: &Path,
    scripts: &StudyScripts<'_>,
) -> Result<Option<ScriptOptions>, String> {
    let of_file = |path: PathBuf| {
        let path = folder.join(path);
        match path.is_file() {
            true => Ok(ScriptOptions::of_file(path)),
            false => Err(format!("cannot read the script '{}': no such file", path.display())),
        }
    };
    if let Some(path) = asked.request_args.take_javascript()? {
        let script = of_file(path)?;
        return Ok(Some(ScriptOptions {
            has_own_load: true,
            calls_hooks: true,
            collection: asked.request_args.collection_input(folder)?,
            ..asked.k6_flags.script(script.path, asked.request_args.url())
        }));
    }
    let Some(path) = asked.request_args.take_python()? else {
        return asked.request_args.take_script()?.map(of_file).transpose();
    };
    if asked.threads.unwrap_or(1) > 1 {
        return Err("--threads cannot be used with a Python script; Python runs on one thread".to_owned());
    }
    let mut script = of_file(path)?;
    let settings = scripts.open_python(&mut script)?;
    asked.threads = Some(1);
    add_url(&mut asked.request_args, &settings, &script.path)?;
    script.url = asked.request_args.url().to_owned();
    asked.add_settings(&settings);
    Ok(Some(script))
}

/// Takes the URL of a script, if none is given.
fn add_url(request_args: &mut RequestArgs, settings: &PythonScriptSettings, path: &Path) -> Result<(), String> {
    if request_args.url().is_empty() {
        let name = path.display();
        let no_url = || {
            format!(
                "{name}: no class has a host; set it there, or give the URL: weir load -s {name} http://localhost:8080"
            )
        };
        request_args.set_url(settings.url.clone().ok_or_else(no_url)?);
    }
    Ok(())
}

impl LoadArgs {
    /// Adds the load that a script describes; the command line wins.
    fn add_settings(&mut self, settings: &PythonScriptSettings) {
        let is_open = self.rate.is_some() || self.stages.is_some();
        if !is_open && self.connections.is_none() {
            self.users = self.users.or(settings.users);
        }
        if self.requests.is_none() && self.loops.is_none() {
            self.duration = self.duration.or(settings.duration);
        }
    }
}
