//! Outputs of a load while it runs, or of the loads of a search.

use std::sync::{Arc, Mutex};

use super::out_options::OutOptions;
use crate::output::OutputFile;
use weir_base::Nanos;
use weir_command::Messages;
use weir_command::exit;
use weir_load::LoadPlan;
use weir_machine::lock::lock;
use weir_measure::RunProgress;
use weir_measure::run_script::RunScript;
use weir_measure::run_steps::StepFacts;
use weir_outputs::{OutputSubject, RunEnd, RunOutputs};
use weir_pace::live_load::LevelKind;
use weir_request::secret_mask::url_label;

/// Outputs of a load, or of the loads of a search.
#[derive(Debug, Default)]
pub(crate) struct OutSession {
    /// Notes that were not printed yet.
    notes: Arc<Mutex<Vec<String>>>,
    outputs: Option<RunOutputs>,
}

/// Result of what the outputs are of.
#[derive(Clone, Debug)]
pub(crate) enum OutEnd {
    /// A run as JSON.
    Run(String),
    /// A search for capacity as JSON.
    Capacity(String),
    /// Why there is none.
    Failure(String),
}

impl OutSession {
    /// Starts the outputs; `lines` is the file of JSON lines.
    ///
    /// # Errors
    /// One line: an output cannot begin.
    pub(crate) fn start(
        options: &OutOptions,
        plan: &LoadPlan,
        objectives: &[String],
        lines: Option<&OutputFile>,
    ) -> Result<Self, String> {
        let mut session = Self::default();
        let specs = options.specs(lines)?;
        if specs.is_empty() {
            return Ok(session);
        }
        let subject = OutputSubject {
            method: plan.method.clone(),
            url: url_label(&plan.shown_url()),
            objectives: objectives.to_vec(),
            labels: options.labels.clone(),
            interval: plan.interval,
            warmup: plan.warmup,
        };
        session.outputs = Some(RunOutputs::start(specs, subject, &session.logger())?);
        Ok(session)
    }

    /// Logger whose notes are printed when there is room for them.
    pub(super) fn logger(&self) -> weir_machine::logger::Logger {
        let notes = Arc::clone(&self.notes);
        weir_machine::logger::Logger::new(move |text| lock(&notes).push(text.to_owned()))
    }

    /// Begins another run, at this time since the start of the first one.
    pub(crate) fn begin_run(&mut self, at: Nanos) {
        if let Some(outputs) = &mut self.outputs {
            outputs.begin_run(at);
        }
    }

    /// Whether there is an output.
    pub(crate) fn has_any(&self) -> bool {
        self.outputs.is_some()
    }

    /// Takes the progress of the run, the level that is set, the steps that are known, and what a script has measured
    /// itself so far.
    pub(crate) fn update(
        &mut self,
        progress: &RunProgress<'_>,
        level: Option<(LevelKind, f64)>,
        steps: &dyn Fn() -> Vec<StepFacts>,
        script: Option<&RunScript>,
    ) {
        if let Some(outputs) = &mut self.outputs {
            outputs.update(progress, level, steps, script);
        }
    }

    /// Delivers what is left, and prints what was lost; returns the exit code.
    pub(crate) fn finish(self, end: impl FnOnce() -> OutEnd, messages: &Messages) -> u8 {
        let mut code = exit::OK;
        let Some(outputs) = self.outputs else { return code };
        let end = match end() {
            OutEnd::Run(json) => RunEnd::Run(json.into()),
            OutEnd::Capacity(json) => RunEnd::Capacity(json.into()),
            OutEnd::Failure(why) => RunEnd::Failure(why.into()),
        };
        for report in outputs.finish(&end) {
            let Some(loss) = report.loss() else { continue };
            if report.is_file {
                code = messages.usage_error(&loss);
            } else {
                messages.always(&loss);
            }
        }
        // What was said at the end only.
        lock(&self.notes).drain(..).for_each(|note| messages.note(&note));
        code
    }
}

impl OutSession {
    /// Notes since the last call.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.notes))
    }
}
