//! Capacity search: generates one load level after the other until the bounds are close.
//!
//! [`weir_measure::capacity`] decides the next load level and the outcome of a step; this module generates the load.
//!
//! - [`find`]: the whole search
//! - [`SearchOptions`]: options of the range, precision and length; [`CapacityOptions`]: all parameters
//! - `drive`: one load level; and a single user, for the response time without load
//! - `sampling`: CPU use of the service's processes

mod drive;
mod sampling;
mod search_options;

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use self::drive::{Driver, StepOutcome};
pub use self::search_options::{SearchOptions, SearchScale};
use weir_agents as agents;
use weir_base::Nanos;
use weir_load::program::UserProgram;
use weir_load::steps::ScenarioSource;
use weir_load::{LoadError, Options, PlanError};
use weir_machine::clock::Clock;
use weir_measure::capacity::report::{Bottleneck, CapacityReport, SCHEMA_VERSION, StepReport, StepResult, UslSummary};
use weir_measure::capacity::search::{SearchRange, Trial};
use weir_measure::capacity::step::StepLength;
use weir_measure::capacity::usl::{Usl, UslPoint};
use weir_measure::capacity::{Search, StopReason, TrialResult};
use weir_measure::run::Manifest;
use weir_measure::slo::{Slo, SloCriterion};
use weir_measure::{LoadModel, RunProgress};

/// A capacity search: the request or program, objectives to meet, range of loads, and length of each step.
#[derive(Clone, Debug)]
pub struct CapacityOptions {
    /// Request, connections and seed; rate, users and length are set by the search.
    pub options: Options,
    /// Program that drives the users, in place of one request.
    pub program: Option<Arc<dyn UserProgram>>,
    /// Objectives to meet; at least one, and each with a [`Slo::criterion`].
    pub slos: Vec<Slo>,
    /// Kind of loop: loads are users (closed) or requests per second (open).
    pub model: LoadModel,
    /// Range and precision of the search.
    pub range: SearchRange,
    /// Minimum and maximum length of a step.
    pub step_length: StepLength,
    /// Minimum warm-up excluded from each step, in seconds.
    pub warmup_s: u64,
    /// Maximum time of the search.
    pub max_time: Duration,
    /// Process ID of the service, if it runs on this machine.
    pub pid: Option<u32>,
    /// Agents that generate the load; none: this process does.
    pub agents: Option<agents::AgentSpec>,
}

/// Progress of a search.
#[derive(Debug)]
pub enum CapacityEvent<'a> {
    /// A step is running.
    StepProgress {
        /// Number of the step, from 1 on.
        step: usize,
        /// Requests per second, or users.
        load: f64,
        /// Progress of its run.
        progress: &'a RunProgress<'a>,
    },
    /// A step has ended.
    StepDone(&'a StepReport),
    /// Final report of an agent's script after a load, for the coordinator's script.
    ScriptReport(&'a str),
}

/// Callback for each event; `false` ends the search.
pub type CapacityCallback<'a> = dyn FnMut(&CapacityEvent<'_>) -> bool + 'a;

/// Error of a search that could not start, or of a step.
#[derive(Debug)]
pub enum CapacityError {
    /// The options are invalid.
    Plan(PlanError),
    /// The first load could not start.
    Load(LoadError),
    /// An objective that is not an upper bound, so that no load is too high for it.
    UnboundedObjective(String),
    /// No process has this ID.
    NoSuchProcess(u32),
    /// The CPU of other processes is not known to this build.
    NoSampling,
    /// No request of a single user succeeded.
    NoSuccess(String),
    /// An agent was lost during a step; a sentence with its name and the reason.
    AgentLost(String),
}

impl std::error::Error for CapacityError {}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(e) => e.fmt(f),
            Self::Load(e) => e.fmt(f),
            Self::AgentLost(why) => f.write_str(why),
            Self::UnboundedObjective(text) => {
                write!(f, "--slo: '{text}' is not an upper bound on times or errors; write e.g. p99<200ms or errors<1%")
            }
            Self::NoSuchProcess(pid) => write!(f, "--pid: no process {pid}"),
            Self::NoSampling => f.write_str("--pid: CPU is sampled on Linux only; leave the flag out"),
            Self::NoSuccess(why) => write!(f, "no request of a single user succeeds: {why}"),
        }
    }
}

impl From<PlanError> for CapacityError {
    fn from(e: PlanError) -> Self {
        Self::Plan(e)
    }
}

impl From<LoadError> for CapacityError {
    fn from(e: LoadError) -> Self {
        Self::Load(e)
    }
}

/// Searches until the bounds are close, time is over, or `watch` returns false.
///
/// # Errors
/// When the search cannot start. Later errors end it and are part of the report.
pub fn find(
    search_options: &CapacityOptions,
    command: &[String],
    watch: &mut CapacityCallback<'_>,
) -> Result<CapacityReport, CapacityError> {
    let demand = |slo: &Slo| slo.criterion().ok_or_else(|| CapacityError::UnboundedObjective(slo.to_string()));
    // A service that rejects nearly all of a load does not take it, however fast the rest is.
    let slos: Vec<Slo> =
        search_options.slos.iter().cloned().chain(Slo::implied_error_slo(&search_options.slos)).collect();
    let search_options = &CapacityOptions { slos, ..search_options.clone() };
    let demands = search_options.slos.iter().map(demand).collect::<Result<Vec<SloCriterion>, _>>()?;
    let (clock, late) = (Clock::starting_in(Nanos::ZERO), Cell::new(false));
    let max_time = Nanos::from(search_options.max_time);
    let watch: &mut CapacityCallback<'_> = &mut |event| {
        late.set(late.get() || clock.now() >= max_time);
        watch(event) && !late.get()
    };
    let command = &search_options.options.secret_mask().command(command);
    let mut driver = Driver::new(search_options, &demands, command, watch)?;
    let mut search = Search::new(search_options.range);
    let mut found = SearchProgress::default();
    let (manifest, is_suspicious) = driver.measure_single_user(watch)?;
    found.set_manifest(&manifest);
    let mut is_probed = is_suspicious;
    if is_suspicious {
        found.add_probe(driver.probe_idle(watch));
    }
    while let Some(trial) = search.next().filter(|_| !found.interrupted && found.abort_reason.is_none()) {
        match driver.drive(trial, found.steps.len() + 1, watch) {
            Ok(driven) if driven.interrupted => found.interrupted = true,
            Ok(driven) => {
                search.record(trial, driven.verdict, driven.report.sustained.unwrap_or(trial.load));
                found.interrupted = !watch(&CapacityEvent::StepDone(&driven.report));
                let overloaded = driven.verdict != TrialResult::Passes;
                found.add_step(driven);
                if overloaded && !found.interrupted && search.next().is_some() {
                    match driver.wait_for_recovery(watch) {
                        Ok(true) if search.bracket().passes.is_none() && !is_probed => {
                            is_probed = true;
                            found.add_probe(driver.probe_idle(watch));
                        }
                        Ok(true) => {}
                        Ok(false) => found.abort_unrecovered(trial),
                        Err(why) => found.abort(&why, format_args!("after {:.0}", trial.load)),
                    }
                }
            }
            Err(why) if found.steps.is_empty() && !is_agent_failure(&why) => return Err(why),
            Err(why) => found.abort(&why, format_args!("at {}", trial.load)),
        }
    }
    // The end of --max-time is not an interruption.
    found.out_of_time = late.get() && found.interrupted;
    found.interrupted &= !late.get();
    Ok(found.into_report(search_options, &search))
}

/// Whether the error means that agents were lost.
fn is_agent_failure(why: &CapacityError) -> bool {
    matches!(why, CapacityError::AgentLost(_) | CapacityError::Load(LoadError::Agents(_)))
}

/// Results so far.
#[derive(Debug, Default)]
struct SearchProgress {
    steps: Vec<StepReport>,
    usl_points: Vec<UslPoint>,
    manifest: Manifest,
    interrupted: bool,
    /// Whether the maximum time was over.
    out_of_time: bool,
    /// Reason why the search cannot continue.
    abort_reason: Option<String>,
    /// Whether an objective is missed without load.
    misses_idle: bool,
    /// Reason why an agent was lost, if one was.
    lost_agent: Option<String>,
}

impl SearchProgress {
    /// Reason why the search stopped, as a sentence.
    fn stop_reason(&self, search_options: &CapacityOptions, search: &Search) -> String {
        let SearchRange { precision, min_gap: gap, max_load: most, .. } = search_options.range;
        if self.interrupted {
            return "interrupted".into();
        }
        if self.out_of_time {
            return format!("--max-time of {} was over", Nanos::from(search_options.max_time));
        }
        if self.misses_idle {
            return "an objective is missed without load".into();
        }
        if self.abort_reason.is_some() {
            return "the search could not continue".into();
        }
        match search.stop_reason() {
            None => "the search could not continue".into(),
            Some(StopReason::Precise) => format!("the bounds are within {}%", precision * 100.0),
            Some(StopReason::Gap) => format!("the bounds are within {}", format_load(search_options, gap)),
            Some(StopReason::Noise) => format!(
                "steps of {} s give no closer bounds; use a longer --step-time, or --arrivals constant",
                search_options.step_length.max_s
            ),
            Some(StopReason::TooFew) => {
                "steps have too few requests for an outcome; use a longer --step-time, or objectives that allow more"
                    .into()
            }
            Some(StopReason::MinLoad) => "no load passed, and the lowest one was tried".into(),
            Some(StopReason::MaxLoad) => {
                format!("{} is the highest load level (--to)", format_load(search_options, most))
            }
        }
    }

    /// Takes the finding of a probe without load, which ends the search if an objective is missed.
    fn add_probe(&mut self, finding: Result<Option<String>, CapacityError>) {
        match finding {
            Ok(None) => {}
            Ok(Some(why)) => (self.abort_reason, self.misses_idle) = (Some(why), true),
            Err(why) => self.abort(&why, format_args!("without load")),
        }
    }

    fn set_manifest(&mut self, manifest: &Manifest) {
        self.manifest = manifest.clone();
    }

    fn add_step(&mut self, driven: StepOutcome) {
        self.usl_points.push(UslPoint { users: driven.report.load, rate_per_s: driven.report.achieved_per_s });
        self.steps.push(driven.report);
    }

    fn abort_unrecovered(&mut self, trial: Trial) {
        self.abort_reason =
            Some(format!("after {:.0} the service did not recover within 30 s without load", trial.load));
    }

    fn abort(&mut self, why: &CapacityError, place: fmt::Arguments<'_>) {
        if let CapacityError::Load(LoadError::Interrupted) = why {
            self.interrupted = true;
            return;
        }
        self.lost_agent = is_agent_failure(why).then(|| why.to_string());
        self.abort_reason = Some(format!("{place} the search could not continue: {why}"));
    }

    fn into_report(self, search_options: &CapacityOptions, search: &Search) -> CapacityReport {
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
            (None, None) if self.interrupted => "interrupted before a load failed".into(),
            (None, None) if self.out_of_time => "no load failed before --max-time was over".into(),
            (None, None) if matches!(search.stop_reason(), Some(StopReason::MinLoad | StopReason::TooFew)) => {
                "too few requests for an outcome within a step; use a longer --step-time".into()
            }
            (None, None) => "the highest load passes; raise --to".into(),
        };
        let both = [&passes, &fails].into_iter().flatten().map(|tried| tried.confidence);
        let confidence = if passes.is_some() || fails.is_some() { both.product() } else { 0.0 };
        let saturated = fails.as_ref().and_then(|tried| saturated_resource(tried, self.manifest.cores));
        let closed = search_options.model == LoadModel::Closed;
        let usl = closed.then(|| Usl::fit(&self.usl_points).map(UslSummary::of)).flatten();
        let ended = self.stop_reason(search_options, search);
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
            manifest: self.manifest,
            steps: self.steps,
        }
    }
}

/// URL, or names of scenarios and the URL before their paths.
fn target(options: &Options) -> String {
    let names: Vec<&str> = options.scenarios.iter().map(ScenarioSource::scenario_name).collect();
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
