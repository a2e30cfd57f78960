//! Search for the highest load of a language model's server that meets the objectives.

use std::sync::Arc;

use weir_agents::AgentSpec;
use weir_capacity::{CapacityOptions, SearchOptions, SearchScale};
use weir_command::Interrupt;
use weir_command::Messages;
use weir_llm::load::{LlmLoadOptions, LlmProgram, SearchedLoad};
use weir_load::objectives::Objectives;
use weir_load::program::UserProgram;
use weir_load::{LoadPlan, Options};
use weir_measure::slo::Slo;
use weir_report::llm::LlmReportFormat;
use weir_session::SessionOptions;
use weir_session::search::{ResultRules, SearchFeed, SearchOutputs, SearchPaths, conclude, search};

/// Objective of a search that has only objectives of each request.
const DEFAULT_GOODPUT: &str = "goodput>99%";

/// Parameters of the search.
///
/// # Errors
/// One line, if nothing is to be met or a value is out of range.
pub(super) fn search_options(
    searched: SearchedLoad,
    (load, range): (&LlmLoadOptions, SearchOptions),
    options: Options,
    (program, agents): (Arc<LlmProgram>, Option<AgentSpec>),
) -> Result<CapacityOptions, String> {
    let mut slos = load.slos.clone();
    if options.streams.is_some_and(|streams| !streams.objectives.is_empty()) && slos.is_empty() {
        slos.push(DEFAULT_GOODPUT.parse::<Slo>()?);
    }
    if slos.is_empty() {
        let examples = "--goodput 'ttft:500ms tpot:50ms' or --slo 'ttft.p99<500ms'";
        return Err(format!("--capacity: give an objective to meet, e.g. {examples}"));
    }
    let options = Options { requests: None, duration: None, rate: None, ..options };
    let search = range.of_load(options, (searched.0, SearchScale::CONVERSATIONS), slos)?;
    // Agents have programs of their own.
    let program = agents.is_none().then_some(program as Arc<dyn UserProgram>);
    Ok(CapacityOptions { program, agents, ..search })
}

/// Executes the search and reports it; returns the exit code.
///
/// # Errors
/// One line, if it cannot start or a file cannot be written.
pub(super) fn run_search(
    asked: &CapacityOptions,
    plan: &LoadPlan,
    (session, format): (&SessionOptions, LlmReportFormat),
    command: &[String],
    messages: &Messages,
) -> Result<u8, String> {
    Objectives::of_flags(asked.slos.clone(), None, None)?.check_streams(plan)?;
    let (files, out) = (&session.files, &session.live.outputs);
    let paths = SearchPaths { out: files.out.as_deref(), html: files.html.as_deref(), jsonl: out.jsonl.as_deref() };
    let outputs = SearchOutputs::open(paths, &[])?;
    let lines = (outputs.jsonl(), messages);
    let mut feed = SearchFeed::start(out, (plan, asked.model), &asked.slos, lines)?;
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let found = search(asked, command, (messages, &interrupt), &mut feed, &mut |_| ());
    conclude(
        found,
        (feed, outputs),
        ResultRules { as_json: format == LlmReportFormat::Json, strict: session.strict },
        messages,
    )
}
