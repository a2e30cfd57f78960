//! `weir llm`: load of a language model's server, in tokens.
//!
//! - `LlmCommandArgs`: the command line; `load_args`, `endpoint_args`, `prompt_args`: its parts
//! - `measurement`: one run of a plan; `sweep`: several; `search`: for capacity
//!
//! Its program and its options are those of [`weir_llm::load`].

mod endpoint_args;
mod load_args;
mod measurement;
mod prompt_args;
mod search;
mod sweep;

use std::ffi::OsString;
use std::sync::Arc;

use clap::Args;

use self::endpoint_args::EndpointArgs;
use self::load_args::LlmLoadArgs;
use self::measurement::LlmMeasurement;
use self::prompt_args::PromptArgs;
use self::search::{run_search, search_options};
use self::sweep::run_sweep;
use super::agent_args::AgentArgs;
use super::exit;
use super::interrupt::Interrupt;
use super::live_session::LiveSession;
use super::load::{exit_code, samplers};
use super::messages::Messages;
use super::request_args::redacted;
use super::run_files::RunFiles;
use weir_llm::load::{ConversationOptions, LlmLoad, LlmOptions};
use weir_measure::Run;
use weir_report::llm::render;

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:\n  weir llm http://localhost:8000 --model my-model --concurrency 8 -d 1m\n  \
    weir llm http://localhost:8000 --model my-model --sweep rate=1,2,4,8 --goodput \"ttft:500ms\"\n  \
    weir llm http://localhost:8000 --model my-model --capacity rate --goodput \"ttft:500ms\"";

/// Load of a language model's server.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct LlmCommandArgs {
    #[command(flatten)]
    endpoint_args: EndpointArgs,
    #[command(flatten)]
    prompt_args: PromptArgs,
    #[command(flatten)]
    load_args: LlmLoadArgs,
    #[command(flatten)]
    agent_args: AgentArgs,
}

pub(super) fn run(asked: LlmCommandArgs, args: &[OsString], messages: &Messages) -> u8 {
    match try_run(asked, args, messages) {
        Ok(code) => code,
        Err(why) => {
            messages.errors(&why);
            exit::USAGE
        }
    }
}

fn try_run(asked: LlmCommandArgs, args: &[OsString], messages: &Messages) -> Result<u8, String> {
    let LlmCommandArgs { endpoint_args, prompt_args, load_args, agent_args } = asked;
    load_args.check()?;
    if agent_args.has_agents() {
        load_args.check_agents(&agent_args)?;
    }
    let asked = LlmOptions {
        endpoint: endpoint_args.into_options(),
        prompts: prompt_args.into_options(),
        load: load_args.options(),
    };
    let mut load = LlmLoad::new(&asked)?;
    load.notes.iter().for_each(|note| messages.note(note));
    let secrets = load.secrets.clone().with_values(&load_args.live_args.secrets());
    let command = redacted(args, &secrets);
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let interrupt = Arc::new(interrupt);
    let loads = std::mem::take(&mut load.loads);
    let seed = asked.load.seed();
    let loads = match agent_args.has_agents() {
        true => {
            let program = ConversationOptions { endpoint: asked.endpoint, prompts: asked.prompts, seed };
            loads.into_iter().map(|(options, plan)| program.on_agents(options, &plan)).collect::<Result<_, _>>()?
        }
        false => loads,
    };
    if let (Some(searched), Some((options, plan))) = (asked.load.capacity, loads.first()) {
        let agents = agent_args.agent_spec(args, None)?;
        let of_search = (&asked.load, &load_args.search_args);
        let search = search_options(searched, of_search, options.clone(), (load.program, agents))?;
        return run_search(&search, plan, &load_args, &command, (messages, &interrupt));
    }
    let measurement = LlmMeasurement {
        messages,
        interrupt: &interrupt,
        command: &command,
        load: &load,
        agents: loads.first().map_or(Ok(None), |(_, plan)| agent_args.agent_spec(args, Some(plan.connections)))?,
    };
    if let Some(sweep) = &asked.load.sweep {
        return run_sweep(sweep, &loads, &measurement, &load_args);
    }
    let Some((options, plan)) = loads.into_iter().next() else { return Ok(exit::INTERRUPTED) };
    let live_args = &load_args.live_args;
    let mut files = RunFiles::open(&load_args.file_args, live_args.jsonl(), load_args.strict)?;
    files.ensure_not_arguments(args)?;
    let log = files.request_log(&samplers(&plan))?;
    let slos: Vec<String> = load.objectives.slos.iter().map(|placed| placed.slo.to_string()).collect();
    let (plan, mut live) =
        LiveSession::open(live_args, (&options, plan), &slos, &interrupt, (messages, files.jsonl()))?;
    live_args.watch_stdin();
    let mut run = match measurement.run((&options, &plan), Some(&mut live), log.as_ref()) {
        Ok(Some(run)) => run,
        Ok(None) => return Ok(exit::INTERRUPTED),
        Err(why) => {
            live.finish(Err(&why), messages);
            return Err(why);
        }
    };
    files.finish_log(log, &mut run);
    let shown = files.print(messages, |colors| render(&run, load_args.format, colors));
    let written = shown.max(files.write(&run, messages)).max(live.finish(Ok(&run), messages));
    Ok(result_code(&run, load_args.strict, written, messages))
}

/// Exit code of a run; where no request has succeeded, the reason that the server has given is logged.
fn result_code(run: &Run, strict: bool, written: u8, messages: &Messages) -> u8 {
    let reason = run.steps.iter().flat_map(|step| &step.samples).map(|sample| &sample.reason).next();
    match reason {
        Some(reason) if run.requests.ok == 0 && !run.interrupted && written == exit::OK => {
            // Of a failure that has a kind alone, the words are those of the kind.
            let words = run.target.failure_details.get(reason).unwrap_or(reason);
            messages.error(&format!("none of {} requests succeeded; {words}", run.requests.total));
            exit::UNTRUSTED
        }
        _ => exit_code(run, strict, written, messages),
    }
}
