//! `weir llm`: load of a language model's server, in tokens.
//!
//! - `LlmCommandArgs`: the command line; `load_args`, `endpoint_args`, `prompt_args`, `trace_args`: its parts
//! - `sweep`: several; `search`: for capacity
//!
//! Its program and its options are those of [`weir_llm::load`].

mod endpoint_args;
mod load_args;
mod prompt_args;
mod search;
mod sweep;
mod trace_args;

use std::ffi::OsString;

use clap::Args;

use self::endpoint_args::EndpointArgs;
use self::load_args::LlmLoadArgs;
use self::prompt_args::PromptArgs;
use self::search::{run_search, search_options};
use self::sweep::{LlmSweepRun, run_sweep};
use self::trace_args::TraceArgs;
use super::agent_args::AgentArgs;
use super::request_args::redacted;
use weir_command::Messages;
use weir_command::exit;
use weir_llm::load::{ConversationOptions, LlmLoad, LlmOptions, ReplayedTrace};
use weir_load::LoadError;
use weir_report::llm::render;
use weir_session::{LoadSession, SessionLoad};
use weir_terminal::progress_bar::Extent;

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:\n  weir llm http://localhost:8000 --model my-model --concurrency 8 -d 1m\n  \
    weir llm http://localhost:8000 --model my-model --sweep concurrency=1,4,16\n  \
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
    trace_args: TraceArgs,
    #[command(flatten)]
    load_args: LlmLoadArgs,
    #[command(flatten)]
    agent_args: AgentArgs,
}

pub(super) fn run(asked: LlmCommandArgs, args: &[OsString], messages: &Messages) -> Result<u8, String> {
    let LlmCommandArgs { endpoint_args, prompt_args, trace_args, load_args, agent_args } = asked;
    endpoint_args.reject_file()?;
    let (session, format) = (load_args.session(trace_args.fraction()), load_args.format);
    let trace = trace_args.options()?;
    load_args.check(&session)?;
    if agent_args.has_agents() {
        load_args.check_agents(&agent_args, &session)?;
        if trace.is_some() {
            return Err("--trace FILE and --on cannot be combined; one process has the times of a trace".to_owned());
        }
    }
    let asked = LlmOptions {
        endpoint: endpoint_args.into_options(),
        prompts: prompt_args.into_options(),
        load: load_args.options(),
        trace,
    };
    let mut load = LlmLoad::new(&asked)?;
    load.notes.iter().for_each(|note| messages.note(note));
    let command = redacted(args, &load.secrets.clone().with_values(&session.live.secrets()));
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
        let of_search = (&asked.load, load_args.search_args.options());
        let search = search_options(searched, of_search, options.clone(), (load.program, agents))?;
        return run_search(&search, plan, (&session, format), &command, messages);
    }
    let agents = loads.first().map_or(Ok(None), |(_, plan)| agent_args.agent_spec(args, Some(plan.connections)))?;
    if let Some(sweep) = &asked.load.sweep {
        let sweep_run = LlmSweepRun { load: &load, agents, session: &session, format, command: &command, messages };
        return run_sweep(sweep, &loads, &sweep_run);
    }
    let Some((options, plan)) = loads.into_iter().next() else { return Ok(exit::INTERRUPTED) };
    let mut running = LoadSession::open(&session, args, messages)?;
    let objectives = load.objectives.clone();
    let mut trace = load.trace.take();
    // The end of a trace is unknown until it is read.
    let extent = trace.as_ref().map(|_| Extent { until: plan.until, requests: None });
    let asked = SessionLoad { options, plan, objectives, command, agents, samplers: None, extent };
    let mut start = || trace.as_mut().map_or(Ok(()), ReplayedTrace::start).map_err(LoadError::Program);
    let Some(mut measured) = running.run(asked, &mut start)? else { return Ok(exit::INTERRUPTED) };
    let unread = match &trace {
        Some(trace) => trace.finish(&mut measured.run, measured.plan_end)?,
        None => None,
    };
    if let Err(why) = load.count_tokens(&mut measured.run) {
        running.fail(measured, &why);
        return Err(why);
    }
    running.report(&mut measured, |run, colors| render(run, format, colors));
    if let Some(why) = unread {
        messages.error(&format!("{why}; what was read before was sent"));
        measured.written = exit::USAGE;
    }
    Ok(running.finish(measured))
}
