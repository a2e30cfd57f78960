//! Load of a language model's server, checked and ready to run.

use std::sync::Arc;

use super::LlmCommandArgs;
use super::endpoint_args::{EndpointArgs, LlmEndpoint};
use super::llm_program::LlmProgram;
use super::load_args::LlmLoadArgs;
use super::prompt_args::{LlmPrompts, PromptArgs};
use super::sweep_values::SweepValues;
use super::token_counter::TokenCounter;
use crate::agent_args::AgentArgs;
use crate::objectives::Objectives;
use weir_base::Nanos;
use weir_llm::Dataset;
use weir_load::event_streams::StreamOptions;
use weir_load::{LoadPlan, Options};
use weir_request::secret_mask::SecretMask;

/// Load of a language model's server, or several of a sweep.
#[derive(Debug)]
pub(super) struct PreparedLlm {
    /// Options of each load, and its plan.
    pub(super) loads: Vec<(Options, LoadPlan)>,
    pub(super) program: Arc<LlmProgram>,
    /// Counter of tokens that the server does not report.
    pub(super) counter: Option<TokenCounter>,
    pub(super) objectives: Objectives,
    /// Values that are left out of what is saved.
    pub(super) secrets: SecretMask,
    /// Notes for a person.
    pub(super) notes: Vec<String>,
}

impl PreparedLlm {
    /// Checks the arguments, and reads the prompts.
    ///
    /// # Errors
    /// One line with the invalid flag, or with the data set's line.
    pub(super) fn new(asked: LlmCommandArgs, sweep: Option<&SweepValues>) -> Result<Self, String> {
        let LlmCommandArgs { endpoint_args, prompt_args, load_args, agent_args } = asked;
        let objectives = Objectives::of_flags(load_args.slos.clone(), None, None)?;
        load_args.check_ramp_up()?;
        let goodput = load_args.goodput()?;
        let counter = load_args.token_counter()?;
        if agent_args.has_agents() {
            check_agents(&load_args, &agent_args, counter.is_some())?;
        }
        let (prompts, endpoint) = prompts_and_endpoint(endpoint_args, prompt_args, load_args.seed())?;
        let prompts = LlmPrompts { counts_tokens: counter.is_some(), ..prompts };
        let notes = prompts.notes.clone();
        let streams = StreamOptions {
            stall_timeout: endpoint.stall_timeout.map(Nanos::from),
            api: Some(endpoint.settings.api.reads()),
            objectives: goodput,
            ..StreamOptions::default()
        };
        let options = Options { streams: Some(streams), ..load_args.options(endpoint.options) };
        let loads = match sweep {
            Some(sweep) => sweep.loads(&options),
            None => vec![options],
        };
        let plan = |options: &Options| LoadPlan::new(options).map_err(|error| error.to_string());
        let plans = loads.iter().map(plan).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = plans.first() else { return Err("--sweep has no values".to_owned()) };
        let program = Arc::new(LlmProgram::new(endpoint.settings, prompts, first)?);
        let driven = |(plan, options): (LoadPlan, Options)| {
            let plan = plan.driven_by(Arc::<LlmProgram>::clone(&program), &options);
            plan.map(|plan| (options, plan)).map_err(|error| error.to_string())
        };
        let loads = plans.into_iter().zip(loads).map(driven).collect::<Result<Vec<_>, _>>()?;
        loads.first().map_or(Ok(()), |(_, plan)| objectives.check(plan))?;
        Ok(Self { loads, program, counter, objectives, secrets: endpoint.secrets, notes })
    }
}

/// Prompts, and the endpoint that they are sent to.
///
/// # Errors
/// One line with the invalid flag, or with the data set's line.
pub(super) fn prompts_and_endpoint(
    endpoint_args: EndpointArgs,
    prompt_args: PromptArgs,
    seed: u64,
) -> Result<(LlmPrompts, LlmEndpoint), String> {
    let prompts = prompt_args.into_prompts(seed)?;
    let batch_url = prompts.source.dataset().and_then(Dataset::batch_url).map(str::to_owned);
    let endpoint = endpoint_args.into_endpoint(batch_url.as_deref())?;
    Ok((prompts, endpoint))
}

/// Checks what does not go with agents.
fn check_agents(load_args: &LlmLoadArgs, agent_args: &AgentArgs, counts_tokens: bool) -> Result<(), String> {
    if agent_args.are_remote() {
        return Err("weir llm has its prompts on this machine: write --on local --agents N".to_owned());
    }
    if counts_tokens {
        return Err("--tokenizer and --on do not go together; agents send counts, and not each response".to_owned());
    }
    if load_args.live_args.has_traces() {
        return Err("--trace and --on do not go together; agents send counts, and not each request".to_owned());
    }
    if load_args.file_args.jtl.is_some() {
        return Err("--jtl and --on do not go together; agents send counts, and not each request".to_owned());
    }
    Ok(())
}
