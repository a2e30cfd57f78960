//! One run of a plan, with its progress.

use super::super::interrupt::Interrupt;
use super::super::live_session::{LiveSession, step_names};
use super::super::messages::Messages;
use super::super::objectives::Objectives;
use super::llm_program::LlmProgram;
use super::token_counter::TokenCounter;
use weir_agents::{AgentSpec, Coordinator};
use weir_live::progress_bar::{Extent, ProgressBar};
use weir_load::request_log::RequestLog;
use weir_load::{self as load, LoadError, LoadPlan, Options};
use weir_measure::{Run, RunProgress};

/// Settings and reports that all runs of a command share.
#[derive(Debug)]
pub(super) struct LlmMeasurement<'m> {
    pub(super) messages: &'m Messages,
    pub(super) interrupt: &'m Interrupt,
    /// Command line for the manifest, without secrets.
    pub(super) command: &'m [String],
    pub(super) objectives: &'m Objectives,
    /// Agents that hold the conversations; `None`: this process does.
    pub(super) agents: Option<AgentSpec>,
    /// Counter of tokens that the server does not report, and the program that has the texts.
    pub(super) counter: Option<(&'m TokenCounter, &'m LlmProgram)>,
}

impl LlmMeasurement<'_> {
    /// Executes a plan, with what shows and changes it, and the log of its requests; none if it was interrupted before
    /// its start.
    ///
    /// # Errors
    /// One line, if the run cannot start.
    pub(super) fn run(
        &self,
        (options, plan): (&Options, &LoadPlan),
        mut live: Option<&mut LiveSession>,
        log: Option<&RequestLog>,
    ) -> Result<Option<Run>, String> {
        let extent = Extent { until: plan.until, requests: plan.expected_requests() };
        let has_screen = live.as_ref().is_some_and(|live| live.has_screen());
        let mut bar =
            (!self.messages.is_quiet() && !has_screen).then(|| ProgressBar::of_steps(extent, &step_names(plan)));
        let mut watch = |progress: &RunProgress<'_>| {
            if let Some(live) = live.as_deref_mut() {
                live.update(progress, bar.as_mut(), (plan, self.messages));
            }
            if let Some(line) = bar.as_mut().and_then(|bar| bar.update(progress)) {
                self.messages.note(&line);
            }
            !self.interrupt.is_requested()
        };
        let mut crew = None;
        let run = match &self.agents {
            None => load::run(plan, self.command, &mut watch, log),
            Some(asked) => Coordinator::place(asked, options, &mut || !self.interrupt.is_requested())
                .and_then(|placed| crew.insert(placed).run(options, plan, self.command, &mut watch)),
        };
        if let Some(live) = live {
            live.end_keys();
        }
        if let Some(bar) = bar {
            bar.finish();
        }
        match run {
            Ok(mut run) => {
                if let Some((counter, program)) = self.counter {
                    counter.count(program, plan, &mut run)?;
                }
                self.objectives.judge(&mut run, self.objectives.watch(plan), self.interrupt.is_requested());
                Ok(Some(run))
            }
            Err(why @ LoadError::Interrupted) => {
                self.messages.error(&why.to_string());
                Ok(None)
            }
            Err(why) => Err(why.to_string()),
        }
    }
}
