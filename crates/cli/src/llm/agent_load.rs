//! Conversations in agents: each reads the command line again, and has its part of them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;

use super::LlmCommandArgs;
use super::llm_program::LlmProgram;
use super::prepared::prompts_and_endpoint;
use crate::{Cli, CliCommand, one_line};
use weir_load::program::ScriptOptions;
use weir_load::{LoadPlan, Options};

/// Name of the scenario in place of a file's.
const NAME: &str = "weir llm";

/// Options and plan of a load whose conversations agents have; `args` is the command line.
///
/// # Errors
/// One line: the load does not go with agents.
pub(super) fn on_agents(options: Options, plan: &LoadPlan, args: &[OsString]) -> Result<(Options, LoadPlan), String> {
    let text = |arg: &OsString| arg.to_str().map(str::to_owned);
    let args = args.iter().map(text).collect::<Option<Vec<_>>>();
    let args = args.ok_or("--on: an argument is not UTF-8, and agents get the command line as text")?;
    let script = ScriptOptions {
        path: PathBuf::from(NAME),
        scenarios: plan.scenario_names(),
        url: options.url.clone(),
        args,
        is_llm: true,
        ..ScriptOptions::default()
    };
    let options = Options { script: Some(script), ..options };
    let plan = LoadPlan::new(&options).map_err(|error| error.to_string())?;
    Ok((options, plan))
}

/// The agent's part of a load, with its conversations.
///
/// # Errors
/// One line, e.g. about a file that has changed.
pub(crate) fn agent_plan(script: &ScriptOptions, options: &Options, plan: LoadPlan) -> Result<LoadPlan, String> {
    let cli = Cli::try_parse_from(&script.args).map_err(|error| one_line(&error, "llm"))?;
    let CliCommand::Llm(asked) = cli.command else { return Err("the command line is not one of weir llm".to_owned()) };
    let LlmCommandArgs { endpoint_args, prompt_args, load_args, .. } = *asked;
    let (prompts, endpoint) = prompts_and_endpoint(endpoint_args, prompt_args, load_args.seed())?;
    // Their head: the plan of an agent has no request of its own.
    let head = LoadPlan::new(&Options { script: None, ..options.clone() }).map_err(|error| error.to_string())?;
    let program = LlmProgram::new(endpoint.settings, prompts, &head)?;
    plan.driven_by(Arc::new(program), options).map_err(|error| error.to_string())
}
