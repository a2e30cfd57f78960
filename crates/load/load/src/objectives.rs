//! Objectives of a load, and the condition that ends it early.

use super::LoadPlan;
use weir_base::Nanos;
use weir_document::problem::suggestion;
use weir_measure::abort::{AbortRule, AbortWatch, DEFAULT_ABORT_WINDOW};
use weir_measure::run_steps::StepFacts;
use weir_measure::slo::Slo;
use weir_measure::{Run, RunProgress};

/// Objective, and where it is given.
#[derive(Clone, Debug)]
pub struct PlacedObjective {
    /// Objective.
    pub slo: Slo,
    /// Start of messages about it: `--slo 'p99<1s'`, or file, line, column and key.
    pub place: String,
}

/// Objectives of a load, and the condition that ends it early.
#[derive(Clone, Debug, Default)]
pub struct Objectives {
    /// Objectives, in order.
    pub slos: Vec<PlacedObjective>,
    /// Condition that ends the load.
    pub abort: Option<AbortRule>,
}

/// Evaluation of the condition of a run that is executed.
#[derive(Debug, Default)]
pub struct AbortState {
    watch: Option<AbortWatch>,
    reason: Option<String>,
}

impl PlacedObjective {
    /// Message, if a load with these steps lacks what the objective is about.
    fn problem(&self, steps: &[StepFacts]) -> Option<String> {
        let Self { slo, place } = self;
        if steps.is_empty() && slo.needs_scenarios() {
            return Some(format!("{place}: the load has no scenario and no --check"));
        }
        let name = slo.scope_name()?;
        if steps.iter().any(|step| step.name == name || step.scenario == name) {
            return None;
        }
        let names = steps.iter().flat_map(|step| [step.scenario.as_str(), step.name.as_str()]);
        let mut known: Vec<&str> = Vec::new();
        for name in names.chain(["iterations"]) {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        Some(format!("{place}: unknown scenario or step '{name}'; {}", suggestion(name, &known)))
    }
}

impl Objectives {
    /// Objectives of flags.
    ///
    /// # Errors
    /// One line, if the condition is none of a run that is executed.
    pub fn of_flags(slos: Vec<Slo>, abort: Option<Slo>, window: Option<Nanos>) -> Result<Self, String> {
        let window_s = window.unwrap_or(DEFAULT_ABORT_WINDOW);
        let abort = match abort {
            Some(when) => Some(AbortRule::new(when, window_s).map_err(|why| format!("--abort: {why}"))?),
            None if window.is_some() => return Err("--abort-after needs --abort, e.g. --abort 'errors>20%'".to_owned()),
            None => None,
        };
        let placed = |slo: Slo| PlacedObjective { place: format!("--slo '{slo}'"), slo };
        Ok(Self { slos: slos.into_iter().map(placed).collect(), abort })
    }

    /// Checks that the load has what the objectives are about.
    ///
    /// # Errors
    /// A line for each objective that is about something else.
    pub fn check(&self, plan: &LoadPlan) -> Result<(), String> {
        self.check_streams(plan)?;
        let steps = plan.step_facts();
        if plan.program.is_some() && steps.is_empty() {
            // Steps of a script have names once its users have sent something.
            return Ok(());
        }
        let wrong: Vec<String> = self.slos.iter().filter_map(|objective| objective.problem(&steps)).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    /// Checks that the load has the streams that objectives are about.
    ///
    /// # Errors
    /// One line with the first objective that is about something else.
    pub fn check_streams(&self, plan: &LoadPlan) -> Result<(), String> {
        let is_llm = plan.streams.is_some_and(|streams| streams.api.is_some());
        for PlacedObjective { slo, place } in &self.slos {
            if slo.needs_llm() && !is_llm {
                return Err(format!("{place}: figures of language models are those of 'weir llm'"));
            }
            if slo.needs_streams() && plan.streams.is_none() {
                return Err(format!("{place}: figures of streams need --stream"));
            }
        }
        Ok(())
    }

    /// Evaluation of the condition during a run.
    pub fn watch(&self, plan: &LoadPlan) -> AbortState {
        let watch = self.abort.clone().map(|rule| AbortWatch::new(rule, plan.interval));
        AbortState { watch, reason: None }
    }

    /// Adds the outcomes to a run that has ended.
    pub fn judge(&self, run: &mut Run, state: AbortState, is_interrupted: bool) {
        if state.reason.is_some() && !is_interrupted {
            (run.aborted, run.interrupted) = (state.reason, false);
        }
        let own: Vec<_> = self.slos.iter().map(|objective| objective.slo.check(run)).collect();
        // After those of a script.
        run.slo.extend(own);
    }
}

impl AbortState {
    /// Whether the run goes on after this progress.
    pub fn goes_on(&mut self, progress: &RunProgress<'_>) -> bool {
        if let (None, Some(watch), Some(interval)) = (&self.reason, &mut self.watch, progress.interval) {
            self.reason = watch.add(interval);
        }
        self.reason.is_none()
    }
}
