//! One iteration of a script.

use crate::k6_load::{K6Load, K6Role};
use crate::lua_script::{LuaLoad, LuaRole};
use crate::python_host::{PythonHost, ScriptRole};
use weir_command::stdout::print;
use weir_command::{Interrupt, Messages, exit};
use weir_load::grpc::for_users;
use weir_load::program::{ScriptOptions, is_javascript, is_python};
use weir_load::{LoadPlan, Options};
use weir_session::not_begun;
use weir_session::play::{PlayOutput, play_plan};

/// Plays an iteration of a script: of one user, its first task. Exit code 1 if it failed. `options` have the service's
/// URL, unless a script in Python names it; these need an interpreter.
///
/// # Errors
/// One line, if the script cannot begin.
pub fn play_script(
    script: &ScriptOptions,
    options: Options,
    output: &PlayOutput,
    host: Option<&dyn PythonHost>,
    messages: &Messages,
) -> Result<u8, String> {
    match host.filter(|_| is_python(&script.path)) {
        Some(host) => play_python(script, options, output, host, messages),
        None if is_javascript(&script.path) => play_k6(script, &options, output, messages),
        None if script.user.is_some() => Err("--user is for Python scripts".to_owned()),
        None => play_lua(script, &options, output, messages),
    }
}

fn play_python(
    script: &ScriptOptions,
    mut options: Options,
    output: &PlayOutput,
    host: &dyn PythonHost,
    messages: &Messages,
) -> Result<u8, String> {
    let opened = host.open(script, ScriptRole::Single)?;
    if options.url.is_empty() {
        let name = script.path.display();
        let no_url = || {
            format!("{name}: no class has a host; set it there, or give the URL: weir run {name} http://localhost:8080")
        };
        options.url = opened.settings().url.ok_or_else(no_url)?;
    }
    let (options, plan) = plan_of(&for_users(options))?;
    let program = opened.program(&plan, &options)?;
    let plan = plan.driven_by(program, &options).map_err(|error| error.to_string())?;
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let name = script.path.display().to_string();
    let Some((run, code)) = play_plan(plan, &name, output, &interrupt, messages)? else {
        return Ok(exit::INTERRUPTED);
    };
    // The first traceback of the tasks is printed by it.
    let of_script = opened.done(&run, &[])?;
    let of_script = of_script.filter(|own| code == exit::OK && *own != code);
    if let Some(own) = of_script {
        messages.note(&format!("exit code {own}, set by the file (environment.process_exit_code)"));
    }
    Ok(of_script.unwrap_or(code))
}

fn play_k6(script: &ScriptOptions, options: &Options, output: &PlayOutput, messages: &Messages) -> Result<u8, String> {
    let mut load = K6Load::open(script)?;
    let mut options = options.single_iteration(Vec::new());
    load.apply(&mut options, true);
    let plan = LoadPlan::new(&options).map_err(|error| error.to_string())?;
    let plan = load.prepare(&options, plan, true, K6Role::Played)?;
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    if let Err(why) = load.set_up(&options, &|| !interrupt.is_requested()) {
        return not_begun(&why, messages);
    }
    let name = script.path.display().to_string();
    let played = play_plan(plan, &name, output, &interrupt, messages);
    load.tear_down(&options)?;
    let Some((mut run, code)) = played? else { return Ok(exit::INTERRUPTED) };
    load.complete(&mut run);
    let Some(results) = run.script.filter(|_| !output.is_json) else { return Ok(code) };
    for check in &results.checks {
        let sign = if check.failed == 0 { "✓" } else { "✗" };
        let group = check.group.trim_start_matches("::").replace("::", " / ");
        let name = if group.is_empty() { check.name.clone() } else { format!("{group}: {}", check.name) };
        print(&format!("  {sign} {name}\n"), false)?;
    }
    Ok(code)
}

fn play_lua(script: &ScriptOptions, options: &Options, output: &PlayOutput, messages: &Messages) -> Result<u8, String> {
    let name = script.path.display().to_string();
    if options.url.is_empty() {
        return Err(format!("a Lua script needs a URL; write e.g. weir run {name} http://localhost:8080/"));
    }
    let (options, plan) = plan_of(options)?;
    let (plan, made) = LuaLoad::prepare(script, &options, plan, LuaRole::Played)?;
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let Some((run, code)) = play_plan(plan, &name, output, &interrupt, messages)? else {
        return Ok(exit::INTERRUPTED);
    };
    made.done(&run).map(|()| code)
}

/// Load of one iteration, without its users.
fn plan_of(options: &Options) -> Result<(Options, LoadPlan), String> {
    let options = options.single_iteration(Vec::new());
    let plan = LoadPlan::new(&options).map_err(|error| error.to_string())?;
    Ok((options, plan))
}
