//! Objectives of a load, and the condition that ends it early.

use weir_decide::Nanos;
use weir_document::problem::suggestion;
use weir_load::LoadPlan;
use weir_load::steps::ScenarioMix;
use weir_measure::abort::{AbortRule, AbortWatch, DEFAULT_ABORT_WINDOW};
use weir_measure::slo::Slo;
use weir_measure::{Run, RunProgress};

/// Objectives of a load, and the condition that ends it early.
#[derive(Clone, Debug, Default)]
pub(super) struct Objectives {
    pub(super) slos: Vec<Slo>,
    pub(super) abort: Option<AbortRule>,
}

/// Evaluation of the condition of a run that is executed.
#[derive(Debug, Default)]
pub(super) struct AbortState {
    watch: Option<AbortWatch>,
    reason: Option<String>,
}

impl Objectives {
    /// Objectives of flags.
    ///
    /// # Errors
    /// One line, if the condition is none of a run that is executed.
    pub(super) fn of_flags(slos: Vec<Slo>, abort: Option<Slo>, window: Option<Nanos>) -> Result<Self, String> {
        let window_s = window.unwrap_or(DEFAULT_ABORT_WINDOW);
        let abort = match abort {
            Some(when) => Some(AbortRule::new(when, window_s).map_err(|why| format!("--abort: {why}"))?),
            None if window.is_some() => return Err("--abort-after needs --abort, e.g. --abort 'errors>20%'".to_owned()),
            None => None,
        };
        Ok(Self { slos, abort })
    }

    /// Checks that the load has what the objectives are about.
    ///
    /// # Errors
    /// One line with the first objective that is about something else.
    pub(super) fn check(&self, plan: &LoadPlan) -> Result<(), String> {
        let steps = plan.scenarios.as_ref().map(ScenarioMix::step_facts).unwrap_or_default();
        for slo in &self.slos {
            if steps.is_empty() && slo.needs_scenarios() {
                return Err(format!("--slo '{slo}': the load has no scenario and no --check"));
            }
            let Some(name) = slo.scope_name() else { continue };
            if !steps.iter().any(|step| step.name == name || step.scenario == name) {
                let mut known: Vec<&str> =
                    steps.iter().flat_map(|step| [step.scenario.as_str(), step.name.as_str()]).collect();
                known.dedup();
                known.push("iterations");
                return Err(format!("--slo '{slo}': unknown scenario or step '{name}'; {}", suggestion(name, &known)));
            }
        }
        Ok(())
    }

    /// Evaluation of the condition during a run.
    pub(super) fn watch(&self, plan: &LoadPlan) -> AbortState {
        let watch = self.abort.clone().map(|rule| AbortWatch::new(rule, plan.interval));
        AbortState { watch, reason: None }
    }

    /// Adds the outcomes to a run that has ended.
    pub(super) fn judge(&self, run: &mut Run, state: AbortState, is_interrupted: bool) {
        if state.reason.is_some() && !is_interrupted {
            (run.aborted, run.interrupted) = (state.reason, false);
        }
        run.slo = self.slos.iter().map(|slo| slo.check(run)).collect();
    }
}

impl AbortState {
    /// Whether the run goes on after this progress.
    pub(super) fn goes_on(&mut self, progress: &RunProgress<'_>) -> bool {
        if let (None, Some(watch), Some(interval)) = (&self.reason, &mut self.watch, progress.interval) {
            self.reason = watch.add(interval);
        }
        self.reason.is_none()
    }
}
