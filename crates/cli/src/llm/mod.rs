//! `weir llm`: load of a language model's server, in tokens.
//!
//! - [`LlmCommandArgs`]: the command line; `load_args`, `endpoint_args`, `prompt_args`: its parts
//! - `llm_program`, `llm_shared`, `llm_thread`: conversations as users of a load
//! - `error_body`: what a server says of an error
//! - `measurement`: one run of a plan; `sweep`, `sweep_values`: several; `search`, `searched_load`: for capacity; `outputs`: report and files

mod endpoint_args;
mod error_body;
mod llm_program;
mod llm_shared;
mod llm_thread;
mod load_args;
mod measurement;
mod outputs;
mod prompt_args;
mod search;
mod searched_load;
mod sweep;
mod sweep_values;

use std::ffi::OsString;
use std::sync::Arc;

use clap::Args;

use self::endpoint_args::EndpointArgs;
use self::llm_program::LlmProgram;
use self::load_args::LlmLoadArgs;
use self::measurement::LlmMeasurement;
use self::outputs::LlmOutputs;
use self::prompt_args::PromptArgs;
use self::searched_load::SearchedLoad;
use super::exit;
use super::interrupt::Interrupt;
use super::load::exit_code;
use super::messages::Messages;
use super::objectives::Objectives;
use super::request_args::redacted;
use weir_decide::Nanos;
use weir_llm::Dataset;
use weir_load::event_streams::StreamOptions;
use weir_load::{LoadPlan, Options};
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
    let LlmCommandArgs { endpoint_args, prompt_args, load_args } = asked;
    let (sweep, searched) = (load_args.sweep()?, load_args.capacity()?);
    let objectives = Objectives::of_flags(load_args.slos.clone(), None, None)?;
    let goodput = load_args.goodput()?;
    let prompts = prompt_args.into_prompts(load_args.seed())?;
    let batch_url = prompts.source.dataset().and_then(Dataset::batch_url).map(str::to_owned);
    let endpoint = endpoint_args.into_endpoint(batch_url.as_deref())?;
    prompts.notes.iter().for_each(|note| messages.note(note));
    let command = redacted(args, &endpoint.secrets);
    let streams = StreamOptions {
        stall_timeout: endpoint.stall_timeout.map(Nanos::from),
        api: Some(endpoint.settings.api.reads()),
        objectives: goodput,
        ..StreamOptions::default()
    };
    let options = Options { streams: Some(streams), ..load_args.options(endpoint.options) };
    let loads = match &sweep {
        Some(sweep) => sweep.loads(&options),
        None => vec![options],
    };
    let mut plans =
        loads.iter().map(LoadPlan::new).collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let Some(first) = plans.first() else { return Err("--sweep has no values".to_owned()) };
    let program = Arc::new(LlmProgram::new(endpoint.settings, prompts, first)?);
    plans = plans
        .into_iter()
        .zip(&loads)
        .map(|(plan, options)| plan.driven_by(Arc::<LlmProgram>::clone(&program), options))
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    plans.first().map_or(Ok(()), |plan| objectives.check(plan))?;
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    if let (Some(searched), Some(options), Some(plan)) = (searched, loads.first(), plans.first()) {
        let asked = searched.options(&load_args, options.clone(), program)?;
        return SearchedLoad::run(&asked, plan, &load_args, &command, (messages, &interrupt));
    }
    let measurement = LlmMeasurement { messages, interrupt: &interrupt, command: &command, objectives: &objectives };
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
