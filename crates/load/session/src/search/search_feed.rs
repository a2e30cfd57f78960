//! Outputs of a search while it goes on: its loads, one after the other, on one line of time.

use crate::live::{OutEnd, OutOptions, OutSession};
use crate::output::OutputFile;
use weir_base::Nanos;
use weir_command::Messages;
use weir_load::LoadPlan;
use weir_machine::clock::Clock;
use weir_measure::capacity::report::CapacityReport;
use weir_measure::run_steps::StepFacts;
use weir_measure::slo::Slo;
use weir_measure::{LoadModel, RunProgress};
use weir_pace::live_load::LevelKind;

/// Outputs of a search.
#[derive(Debug)]
pub struct SearchFeed {
    outputs: OutSession,
    clock: Clock,
    /// Time of the load that goes on, since its own start.
    elapsed: Nanos,
    kind: LevelKind,
    steps: Vec<StepFacts>,
}

impl SearchFeed {
    /// Starts the outputs of a search whose loads are like the one of the plan; `lines` is the file of JSON lines.
    ///
    /// # Errors
    /// One line: an output cannot begin.
    pub fn start(
        options: &OutOptions,
        (plan, model): (&LoadPlan, LoadModel),
        slos: &[Slo],
        (lines, messages): (Option<&OutputFile>, &Messages),
    ) -> Result<Self, String> {
        let objectives: Vec<String> = slos.iter().map(Slo::to_string).collect();
        let outputs = OutSession::start(options, plan, &objectives, lines)?;
        outputs.take_notes().iter().for_each(|note| messages.note(note));
        let kind = match model {
            LoadModel::Open => LevelKind::Rate,
            LoadModel::Closed => LevelKind::Users,
        };
        let clock = Clock::starting_in(Nanos::ZERO);
        Ok(Self { outputs, clock, elapsed: Nanos::ZERO, kind, steps: plan.step_facts() })
    }

    /// Takes the progress of a load level; 0 is a single user. Returns notes of the outputs.
    pub(super) fn update(&mut self, level: f64, progress: &RunProgress<'_>) -> Vec<String> {
        if progress.elapsed < self.elapsed {
            self.outputs.begin_run(self.clock.now() - progress.elapsed);
        }
        self.elapsed = progress.elapsed;
        self.outputs.update(progress, (level > 0.0).then_some((self.kind, level)), &|| self.steps.clone(), None);
        self.outputs.take_notes()
    }

    /// Delivers what is left, and the result of the search or why it failed; returns the exit code.
    pub(super) fn finish(self, result: Result<&CapacityReport, &str>, messages: &Messages) -> u8 {
        let end =
            || result.map_or_else(|why| OutEnd::Failure(why.to_owned()), |report| OutEnd::Capacity(report.to_json()));
        self.outputs.finish(end, messages)
    }
}
