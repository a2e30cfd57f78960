//! Load of a language model's server, checked and ready to run.

use std::fmt;
use std::sync::Arc;

use super::endpoint_options::{EndpointOptions, LlmEndpoint};
use super::llm_options::LlmOptions;
use super::llm_program::{LlmProgram, TracedSessions};
use super::prompt_options::{LlmPrompts, PromptOptions};
use super::replayed_trace::ReplayedTrace;
use super::token_counter::TokenCounter;
use super::trace_options::{TraceLoop, TraceOptions};
use crate::trace::BlockText;
use crate::{Dataset, PromptSource, RequestSettings};
use weir_base::Nanos;
use weir_load::event_streams::StreamOptions;
use weir_load::objectives::Objectives;
use weir_load::{LoadError, LoadPlan, Options};
use weir_measure::goodput::GoodputObjectives;
use weir_measure::{Run, RunProgress};
use weir_request::secret_mask::SecretMask;

/// Load of a language model's server, or several of a sweep.
#[derive(Debug)]
pub struct LlmLoad {
    /// Options of each load, and its plan.
    pub loads: Vec<(Options, LoadPlan)>,
    /// Conversations of all loads.
    pub program: Arc<LlmProgram>,
    /// Trace that the first load replays; `None` without one.
    pub trace: Option<ReplayedTrace>,
    /// Counter of tokens that the server does not report.
    counter: Option<TokenCounter>,
    /// Objectives of each request.
    goodput: GoodputObjectives,
    /// End of the warm-up.
    warmup: Nanos,
    /// Objectives of each run.
    pub objectives: Objectives,
    /// Values that are left out of what is saved.
    pub secrets: SecretMask,
    /// Notes for a person, such as conversations that are left out.
    pub notes: Vec<String>,
}

/// Trace, the load that it becomes, and its requests.
type TraceLoad = (ReplayedTrace, Vec<(Options, LoadPlan)>, Arc<LlmProgram>);

/// Reason why a load has no result.
#[derive(Debug)]
pub enum LlmLoadError {
    /// The load cannot start.
    Load(LoadError),
    /// The tokens cannot be counted; in one line.
    Tokens(String),
    /// The trace cannot be read; in one line.
    Trace(String),
}

impl std::error::Error for LlmLoadError {}

impl fmt::Display for LlmLoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => write!(f, "{error}"),
            Self::Tokens(why) | Self::Trace(why) => f.write_str(why),
        }
    }
}

impl From<LoadError> for LlmLoadError {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

impl LlmLoad {
    /// Checks the options, and reads the prompts.
    ///
    /// # Errors
    /// One line with the invalid option, named as a flag, or with the data set's line.
    pub fn new(asked: &LlmOptions) -> Result<Self, String> {
        let LlmOptions { endpoint, prompts, load, trace } = asked;
        load.check()?;
        if let Some(trace) = trace {
            trace.check(prompts, load)?;
        }
        let objectives = Objectives::of_flags(load.slos.clone(), None, None)?;
        let goodput = load.goodput()?;
        let counter = load.token_counter()?;
        let (prompts, mut endpoint) = prompts_and_endpoint(endpoint, prompts, load.seed())?;
        let prompts = LlmPrompts { counts_tokens: counter.is_some(), ..prompts };
        let notes = prompts.notes.clone();
        let streams = StreamOptions {
            stall_timeout: endpoint.stall_timeout.map(Nanos::from),
            api: Some(endpoint.settings.api),
            objectives: goodput,
            ..StreamOptions::default()
        };
        if let Some(trace) = trace {
            let fixes_lengths = endpoint.settings.api.has_ignore_eos() && endpoint.settings.template.is_none();
            endpoint.settings.ignores_end |= fixes_lengths;
            endpoint.settings.has_minimum = fixes_lengths;
            let options = Options { streams: Some(streams), ..load.trace_options(endpoint.options.clone()) };
            let text = trace_text(counter.as_ref(), load.seed())?;
            let prompts = LlmPrompts { source: PromptSource::of_trace(text), ..prompts };
            let (replayed, loads, program) = Self::replaying(trace, options, (endpoint.settings.clone(), prompts))?;
            loads.first().map_or(Ok(()), |(_, plan)| objectives.check(plan))?;
            let warmup = Nanos::from(load.warmup.unwrap_or_default());
            let (trace, secrets) = (Some(replayed), endpoint.secrets);
            return Ok(Self { loads, program, trace, counter, goodput, warmup, objectives, secrets, notes });
        }
        let options = Options { streams: Some(streams), ..load.options(endpoint.options) };
        let loads = match &load.sweep {
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
        let warmup = Nanos::from(load.warmup.unwrap_or_default());
        Ok(Self { loads, program, trace: None, counter, goodput, warmup, objectives, secrets: endpoint.secrets, notes })
    }

    /// Load that a trace becomes.
    fn replaying(
        trace: &TraceOptions,
        options: Options,
        (settings, prompts): (RequestSettings, LlmPrompts),
    ) -> Result<TraceLoad, String> {
        let threads = options.threads.unwrap_or(1);
        let (replayed, inboxes) = ReplayedTrace::open(trace, &options, threads)?;
        let plan = LoadPlan::new(&replayed.plan_options(&options)).map_err(|error| error.to_string())?;
        let is_closed = trace.pacing == TraceLoop::Closed;
        let (clients, run) = (replayed.clients().to_vec(), replayed.traced());
        let traced = TracedSessions { has_turns: replayed.has_turns(), is_closed, clients, run, inboxes };
        let program = Arc::new(LlmProgram::of_trace(settings, prompts, &plan, traced)?);
        let options = Options { requests: None, ..options };
        let plan = plan.replaying(Arc::<LlmProgram>::clone(&program), &options).map_err(|error| error.to_string())?;
        Ok((replayed, vec![(options, plan)], program))
    }

    /// Executes the first load until its end, or until `go_on` is false; `command` is recorded in the manifest.
    ///
    /// # Errors
    /// If it cannot start, or tokens cannot be counted.
    pub fn run(&mut self, command: &[String], go_on: &mut dyn FnMut() -> bool) -> Result<Run, LlmLoadError> {
        if let Some(trace) = &mut self.trace {
            trace.start().map_err(LlmLoadError::Trace)?;
        }
        let Some((_, plan)) = self.loads.first() else { return Err(LoadError::Interrupted.into()) };
        let mut run = weir_load::run(plan, command, &mut |_: &RunProgress<'_>| go_on(), None)?;
        if let Some(trace) = &self.trace
            && let Some(why) = trace.finish(&mut run, plan.end()).map_err(LlmLoadError::Trace)?
        {
            return Err(LlmLoadError::Trace(why));
        }
        self.count_tokens(&mut run).map_err(LlmLoadError::Tokens)?;
        self.objectives.judge(&mut run, self.objectives.watch(plan), false);
        Ok(run)
    }

    /// Adds the tokens that the server has not reported to a run of one of the loads, if they are to be counted.
    ///
    /// # Errors
    /// One line, if a text cannot be tokenized.
    pub fn count_tokens(&self, run: &mut Run) -> Result<(), String> {
        let of_all = (&self.goodput, self.warmup);
        self.counter.as_ref().map_or(Ok(()), |counter| counter.count(&self.program, of_all, run))
    }
}

/// Text of a trace's prompts: words that are one token each.
fn trace_text(counter: Option<&TokenCounter>, seed: u64) -> Result<BlockText, String> {
    match counter {
        Some(counter) => Ok(BlockText::new(&counter.whole_words(BlockText::all_words())?, seed)),
        None => Ok(BlockText::of_short_words(seed)),
    }
}

/// Prompts, and the endpoint that they are sent to.
///
/// # Errors
/// One line with the invalid flag, or with the data set's line.
pub(super) fn prompts_and_endpoint(
    endpoint: &EndpointOptions,
    prompts: &PromptOptions,
    seed: u64,
) -> Result<(LlmPrompts, LlmEndpoint), String> {
    let prompts = prompts.prompts(seed)?;
    let batch_url = prompts.source.dataset().and_then(Dataset::batch_url).map(str::to_owned);
    let endpoint = endpoint.endpoint(batch_url.as_deref())?;
    Ok((prompts, endpoint))
}
