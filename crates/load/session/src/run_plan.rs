//! One run of a plan, with its progress.

use crate::exit_code::not_begun;
use crate::live::{LiveSession, step_names};
use weir_agents::{AgentSpec, Coordinator};
use weir_command::Interrupt;
use weir_command::Messages;
use weir_load::objectives::AbortState;
use weir_load::request_log::RequestLog;
use weir_load::{self as load, LoadError, LoadPlan, Options};
use weir_measure::{Run, RunProgress};
use weir_terminal::progress_bar::{Extent, ProgressBar};

/// Plan that is run, and who watches it.
#[derive(Debug)]
pub struct PlanRun<'p> {
    /// Options of the plan, which agents get.
    pub options: &'p Options,
    /// Plan.
    pub plan: &'p LoadPlan,
    /// Command line for the manifest, without secrets.
    pub command: &'p [String],
    /// Agents that generate the load, if not this process.
    pub agents: Option<&'p AgentSpec>,
    /// Length of the progress bar; that of the plan, with its steps, without one.
    pub extent: Option<Extent>,
    /// Writer of notes.
    pub messages: &'p Messages,
    /// Signals that end the run.
    pub interrupt: &'p Interrupt,
}

/// Run that has ended.
#[derive(Debug)]
pub(crate) struct EndedPlan {
    pub(crate) run: Result<Run, LoadError>,
    /// Final reports of the agents' scripts.
    pub(crate) script_reports: Vec<String>,
    /// Agents; dropped after the result has been written, since their end may take seconds.
    pub(crate) crew: Option<Coordinator>,
}

/// Executes a plan with a progress bar and nothing else that shows or changes it; none if it was interrupted before its
/// start.
///
/// # Errors
/// One line, if the run cannot start.
pub fn run_plan(asked: &PlanRun<'_>) -> Result<Option<Run>, String> {
    match execute(asked, None, None, &mut AbortState::default()).run {
        Ok(run) => Ok(Some(run)),
        Err(why) => not_begun(&why, asked.messages).map(|_| None),
    }
}

/// Executes a plan, with what shows and changes it, the log of its requests, and the condition that ends it.
pub(crate) fn execute(
    asked: &PlanRun<'_>,
    mut live: Option<&mut LiveSession>,
    log: Option<&RequestLog>,
    abort: &mut AbortState,
) -> EndedPlan {
    let PlanRun { options, plan, command, agents, extent, messages, interrupt } = *asked;
    let has_screen = live.as_ref().is_some_and(|live| live.has_screen());
    let mut bar = (!messages.is_quiet() && !has_screen).then(|| match extent {
        Some(extent) => ProgressBar::new(extent),
        None => {
            let extent = Extent { until: plan.until, requests: plan.expected_requests() };
            ProgressBar::of_steps(extent, &step_names(plan))
        }
    });
    let mut watch = |progress: &RunProgress<'_>| {
        if let Some(live) = live.as_deref_mut() {
            live.update(progress, bar.as_mut(), (plan, messages));
        }
        if let Some(line) = bar.as_mut().and_then(|bar| bar.update(progress)) {
            messages.note(&line);
        }
        abort.goes_on(progress) && !interrupt.is_requested()
    };
    let mut crew = None;
    let run = match agents {
        None => load::run(plan, command, &mut watch, log),
        Some(asked) => Coordinator::place(asked, options, &mut || !interrupt.is_requested())
            .and_then(|placed| crew.insert(placed).run(options, plan, command, &mut watch)),
    };
    let script_reports = crew.as_mut().map(Coordinator::take_script_reports).unwrap_or_default();
    if let Some(live) = live {
        live.end_keys();
    }
    if let Some(bar) = bar {
        bar.finish();
    }
    EndedPlan { run, script_reports, crew }
}
