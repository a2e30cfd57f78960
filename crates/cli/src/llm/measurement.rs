//! One run of a plan, with its progress.

use super::super::interrupt::Interrupt;
use super::super::messages::Messages;
use super::super::objectives::Objectives;
use super::llm_program::LlmProgram;
use super::token_counter::TokenCounter;
use weir_live::progress_bar::{Extent, ProgressBar};
use weir_load::{self as load, LoadError, LoadPlan};
use weir_measure::{Run, RunProgress};

/// What all runs of a command share.
#[derive(Debug)]
pub(super) struct LlmMeasurement<'m> {
    pub(super) messages: &'m Messages,
    pub(super) interrupt: &'m Interrupt,
    /// Command line for the manifest, without secrets.
    pub(super) command: &'m [String],
    pub(super) objectives: &'m Objectives,
    /// Counter of tokens that the server does not report, and the program that has the texts.
    pub(super) counter: Option<(&'m TokenCounter, &'m LlmProgram)>,
}

impl LlmMeasurement<'_> {
    /// Executes a plan; none if it was interrupted before its start.
    ///
    /// # Errors
    /// One line, if the run cannot start.
    pub(super) fn run(&self, plan: &LoadPlan) -> Result<Option<Run>, String> {
        let names: Vec<String> = plan.step_facts().into_iter().map(|step| step.name).collect();
        let extent = Extent { until: plan.until, requests: plan.expected_requests() };
        let mut bar = (!self.messages.is_quiet()).then(|| ProgressBar::of_steps(extent, &names));
        let mut watch = |progress: &RunProgress<'_>| {
            if let Some(line) = bar.as_mut().and_then(|bar| bar.update(progress)) {
                self.messages.note(&line);
            }
            !self.interrupt.is_requested()
        };
        let run = load::run(plan, self.command, &mut watch, None);
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
