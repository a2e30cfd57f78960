//! Results of a search so far, and the report that they become.

use std::fmt;

use super::drive::{Driver, StepOutcome};
use super::{CapacityCallback, CapacityError, CapacityOptions, RecoveryOptions, is_agent_failure};
use weir_base::Nanos;
use weir_load::steps::ScenarioSource;
use weir_load::{LoadError, Options};
use weir_measure::LoadModel;
use weir_measure::capacity::report::{Bottleneck, CapacityReport, SCHEMA_VERSION, StepReport, StepResult, UslSummary};
use weir_measure::capacity::search::{SearchRange, Trial};
use weir_measure::capacity::usl::{Usl, UslPoint};
use weir_measure::capacity::{Search, StopReason};
use weir_measure::recovery::RecoveryReport;
use weir_measure::run::Manifest;
use weir_measure::slo::Slo;

/// Results so far.
#[derive(Debug, Default)]
pub(super) struct SearchProgress {
    pub(super) steps: Vec<StepReport>,
    usl_points: Vec<UslPoint>,
    manifest: Manifest,
    pub(super) interrupted: bool,
    /// Whether the maximum time was over.
    pub(super) out_of_time: bool,
    /// Reason why the search cannot continue.
    pub(super) abort_reason: Option<String>,
    /// Whether an objective is missed without load.
    misses_idle: bool,
    /// Reason why an agent was lost, if one was.
    lost_agent: Option<String>,
    /// Whether the load of the test of recovery was given, so that there is no search.
    pub(super) has_load: bool,
    recovery: Option<RecoveryReport>,
}

impl SearchProgress {
    /// Progress without results; `has_load` is whether a test of recovery has its load, so that there is no search.
    pub(super) fn new(has_load: bool) -> Self {
        Self { has_load, ..Self::default() }
    }

    /// Reason why the search stopped, as a sentence.
    fn stop_reason(&self, search_options: &CapacityOptions, search: &Search) -> String {
        let SearchRange { precision, min_gap: gap, max_load: most, .. } = search_options.range;
        if self.interrupted {
            return "interrupted".into();
        }
        if self.has_load {
            return "no search: --load sets the load".into();
        }
        if self.out_of_time {
            return format!("--max-time of {} ran out", Nanos::from(search_options.max_time));
        }
        if self.misses_idle {
            return "an objective is missed even without load".into();
        }
        if self.abort_reason.is_some() {
            return "the search could not continue".into();
        }
        match search.stop_reason() {
            None => "the search could not continue".into(),
            Some(StopReason::Precise) => format!("the bounds are within {}%", precision * 100.0),
            Some(StopReason::Gap) => format!("the bounds are within {}", format_load(search_options, gap)),
            Some(StopReason::Noise) => format!(
                "steps of {} s cannot narrow the bounds further; use a longer --step-time, or --arrivals constant",
                search_options.step_length.max_s
            ),
            Some(StopReason::TooFew) => {
                "too few requests in a step for an outcome; use a longer --step-time, or objectives that allow more"
                    .into()
            }
            Some(StopReason::MinLoad) if self.steps.iter().any(|tried| tried.outcome == StepResult::Passes) => {
                "no load passed every time, down to the lowest".into()
            }
            Some(StopReason::MinLoad) => "no load passed, down to the lowest".into(),
            Some(StopReason::MaxLoad) => {
                format!("{} is the highest load level (--to)", format_load(search_options, most))
            }
        }
    }

    /// Takes the finding of a probe without load, which ends the search if an objective is missed.
    pub(super) fn add_probe(&mut self, finding: Result<Option<String>, CapacityError>) {
        match finding {
            Ok(None) => {}
            Ok(Some(why)) => (self.abort_reason, self.misses_idle) = (Some(why), true),
            Err(why) => self.abort(&why, format_args!("without load")),
        }
    }

    pub(super) fn set_manifest(&mut self, manifest: &Manifest) {
        self.manifest = manifest.clone();
    }

    /// Tests the recovery at a load, if there is one.
    pub(super) fn test_recovery(
        &mut self,
        driver: &mut Driver<'_>,
        test: &RecoveryOptions,
        passes: Option<f64>,
        watch: &mut CapacityCallback<'_>,
    ) {
        let Some(load) = test.load_of(passes).filter(|_| !self.interrupted && self.abort_reason.is_none()) else {
            return;
        };
        // What the last load has left in the service is not of the baseline.
        let is_loaded = self.steps.last().is_some_and(|tried| tried.outcome != StepResult::Passes);
        let waited = if is_loaded { driver.wait_for_recovery(watch).map(drop) } else { Ok(()) };
        match waited.and_then(|()| driver.test_recovery(test, load, watch)) {
            Ok(tested) => {
                self.interrupted = tested.interrupted;
                self.recovery = Some(tested.report);
            }
            Err(why) => self.abort(&why, format_args!("in the test of recovery")),
        }
    }

    pub(super) fn add_step(&mut self, driven: StepOutcome) {
        self.usl_points.push(UslPoint { users: driven.report.load, rate_per_s: driven.report.achieved_per_s });
        self.steps.push(driven.report);
    }

    pub(super) fn abort_unrecovered(&mut self, trial: Trial) {
        self.abort_reason =
            Some(format!("after {:.0} the service did not recover within 30 s without load", trial.load));
    }

    pub(super) fn abort(&mut self, why: &CapacityError, place: fmt::Arguments<'_>) {
        if let CapacityError::Load(LoadError::Interrupted) = why {
            self.interrupted = true;
            return;
        }
        self.lost_agent = is_agent_failure(why).then(|| why.to_string());
        self.abort_reason = Some(format!("{place} the search could not continue: {why}"));
    }

    pub(super) fn into_report(self, search_options: &CapacityOptions, search: &Search) -> CapacityReport {
        let bracket = search.bracket();
        let last = |is: &dyn Fn(&StepReport) -> bool| self.steps.iter().rev().find(|tried| is(tried)).cloned();
        let passes = bracket.passes.and_then(|passes| last(&|tried| tried.sustained == Some(passes)));
        let is_over = |tried: &StepReport| matches!(tried.outcome, StepResult::Fails | StepResult::Generator);
        let fails = bracket.fails.and_then(|fails| last(&|tried| tried.load == fails && is_over(tried)));
        let limit = match fails.as_ref().filter(|_| self.lost_agent.is_none()).map(|tried| tried.outcome) {
            Some(StepResult::Generator) => Bottleneck::Generator,
            Some(_) => Bottleneck::Service,
            None if self.lost_agent.is_some() => Bottleneck::Generator,
            None if self.misses_idle => Bottleneck::Service,
            None => Bottleneck::None,
        };
        let why = match (&self.abort_reason, &fails) {
            (Some(why), _) => why.clone(),
            (None, Some(tried)) => tried.reason.clone().unwrap_or_default(),
            (None, None) if self.has_load => "--load sets the load".into(),
            (None, None) if self.interrupted => "interrupted before a load failed".into(),
            (None, None) if self.out_of_time => "no load failed before --max-time ran out".into(),
            (None, None) if matches!(search.stop_reason(), Some(StopReason::MinLoad | StopReason::TooFew)) => {
                "too few requests in a step for an outcome; use a longer --step-time".into()
            }
            (None, None) => "the highest load passes; raise --to".into(),
        };
        let both = [&passes, &fails].into_iter().flatten().map(|tried| tried.confidence);
        let confidence = if passes.is_some() || fails.is_some() { both.product() } else { 0.0 };
        let saturated = fails.as_ref().and_then(|tried| saturated_resource(tried, self.manifest.cores));
        let closed = search_options.model == LoadModel::Closed;
        let usl = closed.then(|| Usl::fit(&self.usl_points).map(UslSummary::of)).flatten();
        let mut ended = self.stop_reason(search_options, search);
        let is_untested = search_options.recovery.is_some() && self.recovery.is_none();
        if is_untested && !self.interrupted && self.abort_reason.is_none() {
            ended.push_str("; recovery was not tested, since no load of at least 5/s passed");
        }
        CapacityReport {
            weir: env!("CARGO_PKG_VERSION").into(),
            schema: SCHEMA_VERSION,
            model: search_options.model,
            url: search_options.options.secret_mask().shown(&target(&search_options.options)),
            iterations: search_options.model == LoadModel::Open && !search_options.options.scenarios.is_empty(),
            objectives: search_options.slos.iter().map(Slo::to_string).collect(),
            passes: bracket.passes,
            fails: bracket.fails,
            confidence,
            limited_by: limit,
            reason: why,
            saturated,
            usl,
            stop_reason: ended,
            interrupted: self.interrupted,
            lost_agent: self.lost_agent,
            recovery: self.recovery,
            manifest: self.manifest,
            steps: self.steps,
        }
    }
}

/// URL, or names of scenarios, or of a script that names its hosts, and the URL before their paths.
fn target(options: &Options) -> String {
    let mut names: Vec<&str> = options.scenarios.iter().map(ScenarioSource::scenario_name).collect();
    names.extend(options.script_name.as_deref());
    match (names.is_empty(), options.url.as_str()) {
        (true, url) => url.to_owned(),
        (false, "") => names.join(", "),
        (false, url) => format!("{} at {url}", names.join(", ")),
    }
}

/// Load or difference of loads with its unit.
fn format_load(search_options: &CapacityOptions, load: f64) -> String {
    match search_options.model {
        LoadModel::Open => format!("{load}/s"),
        LoadModel::Closed if load == 1.0 => "1 user".into(),
        LoadModel::Closed => format!("{load} users"),
    }
}

/// Resource of the service's machine that was saturated at a load level, if its CPU use is known.
fn saturated_resource(tried: &StepReport, cores: u64) -> Option<String> {
    let (used, own) = (tried.service_cores?, tried.cpu_utilization);
    let busy = tried.machine_utilization.unwrap_or(0.0) * cores as f64;
    Some(if busy > 0.9 * cores as f64 {
        let others = (busy - used - own).max(0.0);
        format!("all {cores} cores: the service used {used:.2}, weir's busiest thread {own:.2}, others {others:.2}")
    } else if used > 0.9 && (used - used.round()).abs() < 0.1 {
        format!("CPU: the service used {used:.2} of {cores} cores, probably the number of its busy threads")
    } else {
        format!("no CPU: the service used {used:.2} of {cores} cores, so it waited for something else")
    })
}
