//! `weir llm`: load of a language model's server, in tokens.
//!
//! - `LlmCommandArgs`: the command line; `load_args`, `endpoint_args`, `prompt_args`: its parts
//! - `llm_program`, `llm_shared`, `llm_thread`: conversations as users of a load
//! - `error_body`: what a server says of an error
//! - `uncounted`, `token_counter`: tokens that a server does not report
//! - `prepared`: all of it, checked; `call`: as a call of another program
//! - `measurement`: one run of a plan; `sweep`, `sweep_values`: several; `search`, `searched_load`: for capacity; `outputs`: report and files

mod call;
mod endpoint_args;
mod error_body;
mod llm_program;
mod llm_shared;
mod llm_thread;
mod load_args;
mod measurement;
mod outputs;
mod prepared;
mod prompt_args;
mod search;
mod searched_load;
mod sweep;
mod sweep_values;
mod token_counter;
mod uncounted;

use std::ffi::OsString;

use clap::Args;

pub use self::call::{LlmCall, LlmCallError, parse};
use self::endpoint_args::EndpointArgs;
use self::load_args::LlmLoadArgs;
use self::measurement::LlmMeasurement;
use self::outputs::LlmOutputs;
use self::prepared::PreparedLlm;
use self::prompt_args::PromptArgs;
use self::searched_load::SearchedLoad;
use super::exit;
use super::interrupt::Interrupt;
use super::load::exit_code;
use super::messages::Messages;
use super::request_args::redacted;
use weir_load::LoadPlan;
use weir_measure::Run;

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
    let load_args = asked.load_args.clone();
    let (sweep, searched) = (load_args.sweep()?, load_args.capacity()?);
    let PreparedLlm { loads, program, counter, objectives, secrets, notes } = PreparedLlm::new(asked, sweep.as_ref())?;
    notes.iter().for_each(|note| messages.note(note));
    let command = redacted(args, &secrets);
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    if let (Some(searched), Some((options, plan))) = (searched, loads.first()) {
        let asked = searched.options(&load_args, options.clone(), program)?;
        return SearchedLoad::run(&asked, plan, &load_args, &command, (messages, &interrupt));
    }
    let measurement = LlmMeasurement {
        messages,
        interrupt: &interrupt,
        command: &command,
        objectives: &objectives,
        counter: counter.as_ref().map(|counter| (counter, &*program)),
    };
    let plans: Vec<LoadPlan> = loads.into_iter().map(|(_, plan)| plan).collect();
    if let Some(sweep) = sweep {
        return sweep.run(&plans, &measurement, &load_args);
    }
    let outputs = LlmOutputs::open(&load_args)?;
    let Some(run) = plans.first().map_or(Ok(None), |plan| measurement.run(plan))? else {
        return Ok(exit::INTERRUPTED);
    };
    let written = outputs.write(&run, messages);
    Ok(result_code(&run, load_args.strict, written, messages))
}

/// Exit code of a run; where no request has succeeded, the reason that the server has given is logged.
fn result_code(run: &Run, strict: bool, written: u8, messages: &Messages) -> u8 {
    let reason = run.steps.iter().flat_map(|step| &step.samples).map(|sample| &sample.reason).next();
    match reason {
        Some(reason) if run.requests.ok == 0 && !run.interrupted && written == exit::OK => {
            messages.error(&format!("none of {} requests succeeded; {reason}", run.requests.total));
            exit::UNTRUSTED
        }
        _ => exit_code(run, strict, written, messages),
    }
}
