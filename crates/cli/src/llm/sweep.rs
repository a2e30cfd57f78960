//! Several runs, one after the other, at different loads.

use weir_agents::AgentSpec;
use weir_command::Interrupt;
use weir_command::Messages;
use weir_command::exit;
use weir_command::stdout::{colors, print};
use weir_llm::load::{LlmLoad, SweepValues};
use weir_load::{LoadPlan, Options};
use weir_report::llm::{LlmReportFormat, LlmSweep, LlmSweepPoint, render};
use weir_report::page;
use weir_session::output::OutputFile;
use weir_session::{PlanRun, SessionOptions, exit_code, run_plan};

/// Options that all runs of a sweep share.
#[derive(Debug)]
pub(super) struct LlmSweepRun<'s> {
    pub(super) load: &'s LlmLoad,
    pub(super) agents: Option<AgentSpec>,
    pub(super) session: &'s SessionOptions,
    pub(super) format: LlmReportFormat,
    /// Command line for the manifest, without secrets.
    pub(super) command: &'s [String],
    pub(super) messages: &'s Messages,
}

/// Executes all plans, in the order of the values, and reports them; returns the exit code.
///
/// # Errors
/// One line, if a run cannot start or a file cannot be written.
pub(super) fn run_sweep(
    values: &SweepValues,
    loads: &[(Options, LoadPlan)],
    asked: &LlmSweepRun<'_>,
) -> Result<u8, String> {
    let LlmSweepRun { load, agents, session, format, command, messages } = asked;
    let format = *format;
    let (json, html) =
        (OutputFile::open(session.files.out.as_deref())?, OutputFile::open_page(session.files.html.as_deref())?);
    OutputFile::ensure_distinct(&[("--out", json.as_ref()), ("--html", html.as_ref())])?;
    let taken = [&json, &html].iter().any(|file| file.as_ref().is_some_and(OutputFile::is_stdout));
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let (mut sweep, mut code) = (LlmSweep { flag: values.flag().to_owned(), points: Vec::new() }, exit::OK);
    for (value, (options, plan)) in values.values.iter().zip(loads) {
        messages.note(&format!("{} {value}", values.flag()));
        let of_plan =
            PlanRun { options, plan, command, agents: agents.as_ref(), extent: None, messages, interrupt: &interrupt };
        let Some(mut run) = run_plan(&of_plan)? else { return Ok(exit::INTERRUPTED) };
        load.count_tokens(&mut run)?;
        load.objectives.judge(&mut run, load.objectives.watch(plan), interrupt.is_requested());
        code = code.max(exit_code(&run, session.strict, exit::OK, messages));
        if format == LlmReportFormat::Vllm {
            print(&format!("{} {value}\n{}", values.flag(), render(&run, format, false)), taken)?;
        }
        let is_interrupted = run.interrupted;
        sweep.points.push(LlmSweepPoint { value: *value, run });
        if is_interrupted {
            break;
        }
    }
    match format {
        LlmReportFormat::Text => print(&sweep.text(colors() && !taken), taken)?,
        LlmReportFormat::Json => print(&sweep.to_json(), taken)?,
        LlmReportFormat::Vllm => {}
    }
    if let Some(json) = json {
        json.write(&sweep.to_json())?;
    }
    if let Some(html) = html {
        html.write(&page::render(&sweep.page()))?;
    }
    Ok(code)
}
