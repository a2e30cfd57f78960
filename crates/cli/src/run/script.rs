//! One iteration of a script.

use std::ffi::OsString;

use super::super::load::{LuaLoad, LuaRole};
use super::super::python_process::replace_process;
use super::RunArgs;
use crate::python_host::{PythonHost, ScriptRole};
use weir_command::Interrupt;
use weir_command::Messages;
use weir_command::exit;
use weir_command::stdout::reserve_stdout;
use weir_load::program::{ScriptOptions, is_python};
use weir_load::{LoadPlan, Options};
use weir_session::play::play_plan;

/// Plays an iteration of a script: of one user, its first task. Exit code 1 if it failed.
///
/// # Errors
/// One line, if the script cannot begin.
pub(super) fn play_script(
    mut asked: RunArgs,
    args: &[OsString],
    messages: &Messages,
    host: Option<&dyn PythonHost>,
) -> Result<u8, String> {
    let given = [
        ("--variable", !asked.variables.is_empty()),
        ("--variables-file", !asked.variable_files.is_empty()),
        ("--secret", !asked.secrets.is_empty()),
        ("--file-root", asked.file_root.is_some()),
    ];
    if let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given) {
        return Err(format!("{flag} does not go with a script; give arguments after --"));
    }
    let mut own = std::mem::take(&mut asked.script_args);
    // Without a URL the first argument after -- stands in its place.
    if asked.base_url.starts_with('-') {
        own.insert(0, std::mem::take(&mut asked.base_url));
    }
    let script = ScriptOptions {
        path: asked.file.clone(),
        url: asked.base_url.clone(),
        args: own,
        user: asked.user.clone(),
        users: Some(1),
        ..ScriptOptions::default()
    };
    if is_python(&script.path) && host.is_none() {
        return Err(replace_process(args));
    }
    if asked.output().is_json {
        reserve_stdout()?;
    }
    if is_python(&script.path)
        && let Some(host) = host
    {
        return play_python(asked, &script, host, messages);
    }
    if script.user.is_some() {
        return Err("--user is for Python scripts".to_owned());
    }
    play_lua(&asked, &script, messages)
}

fn play_python(
    mut asked: RunArgs,
    script: &ScriptOptions,
    host: &dyn PythonHost,
    messages: &Messages,
) -> Result<u8, String> {
    let opened = host.open(script, ScriptRole::Single)?;
    if asked.base_url.is_empty() {
        let name = script.path.display();
        let no_url = || {
            format!("{name}: no class has a host; write it there, or the URL: weir run {name} http://localhost:8080")
        };
        asked.base_url = opened.settings().url.ok_or_else(no_url)?;
    }
    let (options, plan) = plan_of(&asked)?;
    let headers = plan.script_headers(&options).map_err(|error| error.to_string())?;
    let program = opened.program(&plan, &headers)?;
    let plan = plan.driven_by(program, &options).map_err(|error| error.to_string())?;
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let (run, code) = play_plan(plan, &script.path.display().to_string(), &asked.output(), &interrupt, messages)?;
    // The first traceback of the tasks is printed by it.
    let of_script = opened.done(&run, &[])?;
    let of_script = of_script.filter(|own| code == exit::OK && *own != code);
    if let Some(own) = of_script {
        messages.note(&format!("exit code {own}, set by the file (environment.process_exit_code)"));
    }
    Ok(of_script.unwrap_or(code))
}

fn play_lua(asked: &RunArgs, script: &ScriptOptions, messages: &Messages) -> Result<u8, String> {
    let name = script.path.display().to_string();
    if asked.base_url.is_empty() {
        return Err(format!("a Lua script needs a URL; write e.g. weir run {name} http://localhost:8080/"));
    }
    let (options, plan) = plan_of(asked)?;
    let (plan, made) = LuaLoad::prepare(script, &options, plan, LuaRole::Played)?;
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let (run, code) = play_plan(plan, &name, &asked.output(), &interrupt, messages)?;
    made.done(&run).map(|()| code)
}

/// Load of one iteration, without its users.
fn plan_of(asked: &RunArgs) -> Result<(Options, LoadPlan), String> {
    let options = Options {
        url: asked.base_url.clone(),
        headers: asked.headers.clone(),
        auth: asked.auth.clone(),
        timeout: asked.timeout,
        seed: Some(asked.seed),
        no_template: true,
        ..asked.connection_args.clone().into_options()
    };
    let options = options.single_iteration(Vec::new());
    let plan = LoadPlan::new(&options).map_err(|error| error.to_string())?;
    Ok((options, plan))
}
