//! Scripts of the arguments of loads.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::LoadArgs;
use super::k6_load::k6_script;
use super::python_flags::{ProcessCount, python_script};
use crate::agent_args::AgentArgs;
use crate::k6_flags::K6Flags;
use crate::request_args::RequestArgs;
use weir_load::program::ScriptOptions;
use weir_report::ReportFormat;
use weir_scripts::{
    LoadScript, PythonHost, PythonLoad, PythonScriptSettings, SearchScript, StudyScripts, WrkScript, replace_process,
};

impl LoadArgs {
    /// Checks that nothing is said of a script of k6, which is not there.
    pub(super) fn check_without_k6(&self) -> Result<(), String> {
        self.k6_flags.check_unused()?;
        if self.k6_result_flags.summary_export.is_some() || self.format == ReportFormat::K6 {
            return Err("--summary-export and --format k6 need a k6 script; name one with -s FILE.js".to_owned());
        }
        Ok(())
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
        asked.check_without_k6()?;
        return asked.script_args.check_unused().map(|()| LoadScript::Python(python));
    }
    if let Some(script) = k6_script(asked)? {
        return asked.script_args.check_unused().map(|()| LoadScript::JavaScript(script));
    }
    asked.check_without_k6()?;
    let Some(path) = asked.request_args.take_script()? else {
        return asked.script_args.check_unused().map(|()| LoadScript::Nothing);
    };
    if asked.agent_args.are_remote() {
        return Err(
            "--on cannot be used with a Lua script; its interpreters run on this machine: --on local".to_owned()
        );
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
    if asked.threads.unwrap_or(1) > 1 {
        return conflict("--threads", "Python runs on one thread; write --processes N");
    }
    asked.threads = Some(1);
    let Some(host) = host else { return Err(replace_process(args)) };
    let options = python_script(asked, path);
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
