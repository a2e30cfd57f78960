//! `weir llm`: load of a language model's server, in tokens.
//!
//! - `LlmCommandArgs`: the command line; `load_args`, `endpoint_args`, `prompt_args`: its parts
//! - `llm_program`, `llm_shared`, `llm_thread`: conversations as users of a load
//! - `error_body`: error messages of servers
//! - `uncounted`, `token_counter`: tokens that a server does not report
//! - `prepared`: all of it, checked; `call`: as a call of another program; `agent_load`: in agents
//! - `measurement`: one run of a plan; `sweep`, `sweep_values`: several; `search`, `searched_load`: for capacity

mod agent_load;
mod call;
mod endpoint_args;
mod error_body;
mod llm_program;
mod llm_shared;
mod llm_thread;
mod load_args;
mod measurement;
mod prepared;
mod prompt_args;
mod search;
mod searched_load;
mod sweep;
mod sweep_values;
mod token_counter;
mod uncounted;

use std::ffi::OsString;
use std::sync::Arc;

use clap::Args;

pub(crate) use self::agent_load::agent_plan;
use self::agent_load::on_agents;
pub use self::call::{LlmCall, LlmCallError, parse};
use self::endpoint_args::EndpointArgs;
use self::load_args::LlmLoadArgs;
use self::measurement::LlmMeasurement;
use self::prepared::PreparedLlm;
use self::prompt_args::PromptArgs;
use self::searched_load::SearchedLoad;
use super::agent_args::AgentArgs;
use super::exit;
use super::interrupt::Interrupt;
use super::live_session::LiveSession;
use super::load::{exit_code, samplers};
use super::messages::Messages;
use super::request_args::redacted;
use super::run_files::RunFiles;
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
    let (load_args, agent_args) = (asked.load_args.clone(), asked.agent_args.clone());
    let (sweep, searched) = (load_args.sweep()?, load_args.capacity()?);
    let PreparedLlm { loads, program, counter, objectives, secrets, notes } = PreparedLlm::new(asked, sweep.as_ref())?;
    notes.iter().for_each(|note| messages.note(note));
    let command = redacted(args, &secrets.with_values(&load_args.live_args.secrets()));
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let interrupt = Arc::new(interrupt);
    let loads = match agent_args.has_agents() {
        true => loads.into_iter().map(|(options, plan)| on_agents(options, &plan, args)).collect::<Result<_, _>>()?,
        false => loads,
    };
    if let (Some(searched), Some((options, plan))) = (searched, loads.first()) {
        let agents = agent_args.agent_spec(args, None)?;
        let asked = searched.options(&load_args, options.clone(), (program, agents))?;
        return SearchedLoad::run(&asked, plan, &load_args, &command, (messages, &interrupt));
    }
    let measurement = LlmMeasurement {
        messages,
        interrupt: &interrupt,
        command: &command,
        objectives: &objectives,
        agents: loads.first().map_or(Ok(None), |(_, plan)| agent_args.agent_spec(args, Some(plan.connections)))?,
        counter: counter.as_ref().map(|counter| (counter, &*program)),
    };
    if let Some(sweep) = sweep {
        return sweep.run(&loads, &measurement, &load_args);
    }
    let Some((options, plan)) = loads.into_iter().next() else { return Ok(exit::INTERRUPTED) };
    let live_args = &load_args.live_args;
    let mut files = RunFiles::open(&load_args.file_args, live_args.jsonl(), load_args.strict)?;
    files.ensure_not_arguments(args)?;
    let log = files.request_log(&samplers(&plan))?;
    let slos: Vec<String> = objectives.slos.iter().map(|placed| placed.slo.to_string()).collect();
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
