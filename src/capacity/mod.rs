//! Drives loads at a service, one after the other, until it is known how much it can take.
//!
//! What to try next, and what came of it, is decided in [`crate::measure::capacity`]; here loads are driven.
//!
//! - [`find`]: the whole search
//! - `drive`: one load; and a single user, to see how a service answers that has nothing else to do
//! - `sampling`: what the service's processes use meanwhile

mod drive;
mod sampling;

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use self::drive::{Driver, StepOutcome};
use crate::agents;
use crate::decide::Nanos;
use crate::load::{LoadError, Options, PlanError};
use crate::machine::clock::Clock;
use crate::measure::RunProgress;
use crate::measure::capacity::answer::{
    Bottleneck, CapacityReport, SCHEMA_VERSION, StepReport, StepResult, UslSummary,
};
use crate::measure::capacity::search::{SearchRange, Trial};
use crate::measure::capacity::step::StepLength;
use crate::measure::capacity::usl::{Usl, UslPoint};
use crate::measure::capacity::{Search, StopReason, TrialResult};
use crate::measure::run::{LoadModel, Manifest};
use crate::measure::slo::{Slo, SloCriterion};

/// What to find out.
#[derive(Clone, Debug)]
pub struct CapacityOptions {
    /// What is asked, and over which connections; its pace is left open.
    pub options: Options,
    /// What has to hold; at least one, and each with a [`Slo::criterion`].
    pub slos: Vec<Slo>,
    /// Closed: how many users. Open: how many requests per second.
    pub model: LoadModel,
    /// Where and how finely to search.
    pub range: SearchRange,
    /// How long a step may last, in seconds.
    pub step_length: StepLength,
    /// Seconds at the beginning of a step that are cut off, at least.
    pub warmup_s: u64,
    /// How long the search may take.
    pub max_time: Duration,
    /// The service's process, if it runs on this machine.
    pub pid: Option<u32>,
    /// Who drives the loads, if not we ourselves.
    pub agents: Option<agents::AgentSpec>,
}

/// What there is to tell while it goes.
#[derive(Debug)]
pub enum CapacityEvent<'a> {
    /// A load is being tried.
    StepProgress {
        /// Its number, from 1 on.
        step: usize,
        /// Requests per second, or users.
        load: f64,
        /// How far it is.
        progress: &'a RunProgress<'a>,
    },
    /// A load has been tried.
    StepDone(&'a StepReport),
}

/// Who looks on; `false` ends the search.
pub type CapacityCallback<'a> = dyn FnMut(&CapacityEvent<'_>) -> bool + 'a;

/// Why a search could not begin.
#[derive(Debug)]
pub enum CapacityError {
    /// What was asked for is no load.
    Plan(PlanError),
    /// The first load could not start.
    Load(LoadError),
    /// An objective that no load is too high for.
    UnboundedObjective(String),
    /// There is no such process.
    NoSuchProcess(u32),
    /// Not one request of a single user was answered well.
    NoSuccess(String),
    /// An agent was lost in the middle of a load: which, and how.
    AgentLost(String),
}

impl std::error::Error for CapacityError {}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plan(e) => e.fmt(f),
            Self::Load(e) => e.fmt(f),
            Self::AgentLost(why) => f.write_str(why),
            Self::UnboundedObjective(text) => write!(
                f,
                "--slo: '{text}' is nothing that a load can be too high for; give upper bounds on response times or errors, \
                 e.g. p99<200ms or errors<1%"
            ),
            Self::NoSuchProcess(pid) => write!(f, "--pid: there is no process {pid}"),
            Self::NoSuccess(why) => write!(f, "a single user gets no good answer: {why}"),
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

/// Searches until the limit is known, or `watch` says no.
///
/// # Errors
/// When it cannot begin; what happens later is part of the answer.
pub fn find(
    asked: &CapacityOptions,
    command: &[String],
    watch: &mut CapacityCallback<'_>,
) -> Result<CapacityReport, CapacityError> {
    let demand = |slo: &Slo| slo.criterion().ok_or_else(|| CapacityError::UnboundedObjective(slo.to_string()));
    // A service that refuses nearly all of a load does not take it, however fast it does the rest.
    let slos: Vec<Slo> = asked.slos.iter().cloned().chain(Slo::implied_error_slo(&asked.slos)).collect();
    let asked = &CapacityOptions { slos, ..asked.clone() };
    let demands = asked.slos.iter().map(demand).collect::<Result<Vec<SloCriterion>, _>>()?;
    let (clock, late) = (Clock::starting_in(Nanos::ZERO), Cell::new(false));
    let max_time = Nanos::from(asked.max_time);
    let watch: &mut CapacityCallback<'_> = &mut |news| {
        late.set(late.get() || clock.now() >= max_time);
        watch(news) && !late.get()
    };
    let mut driver = Driver::new(asked, &demands, command, watch)?;
    let mut search = Search::new(asked.range);
    let mut found = SearchProgress::default();
    found.set_manifest(&driver.measure_single_user(watch)?);
    while let Some(trial) = search.next().filter(|_| !found.interrupted && found.abort_reason.is_none()) {
        match driver.drive(trial, found.steps.len() + 1, watch) {
            Ok(driven) if driven.interrupted => found.interrupted = true,
            Ok(driven) => {
                search.record(trial, driven.verdict, driven.report.sustained.unwrap_or(trial.load));
                found.interrupted = !watch(&CapacityEvent::StepDone(&driven.report));
                let overloaded = driven.verdict != TrialResult::Holds;
                found.add_step(driven);
                if overloaded && !found.interrupted && search.next().is_some() {
                    match driver.wait_for_recovery(watch) {
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
    // Out of time is no interruption: nobody asked for it but beforehand.
    found.out_of_time = late.get() && found.interrupted;
    found.interrupted &= !late.get();
    Ok(found.into_report(asked, &search))
}

/// Whether agents that were there are not any more.
fn is_agent_failure(why: &CapacityError) -> bool {
    matches!(why, CapacityError::AgentLost(_) | CapacityError::Load(LoadError::Agents(_)))
}

/// What has been found out so far.
#[derive(Debug, Default)]
struct SearchProgress {
    steps: Vec<StepReport>,
    usl_points: Vec<UslPoint>,
    manifest: Manifest,
    interrupted: bool,
    /// It took as long as it was allowed to.
    out_of_time: bool,
    /// Why it cannot go on.
    abort_reason: Option<String>,
    /// Why an agent is gone, if one is.
    lost_agent: Option<String>,
}

impl SearchProgress {
    /// Why no more loads were tried.
    fn stop_reason(&self, asked: &CapacityOptions, search: &Search) -> String {
        let SearchRange { precision, min_gap: gap, max_load: most, .. } = asked.range;
        if self.interrupted {
            return "interrupted".into();
        }
        if self.out_of_time {
            return format!("--max-time of {} was over", Nanos::from(asked.max_time));
        }
        if self.abort_reason.is_some() {
            return "it could not go on".into();
        }
        match search.stop_reason() {
            None => "it could not go on".into(),
            Some(StopReason::Precise) => format!("the bounds are within {} %", precision * 100.0),
            Some(StopReason::Gap) => format!("the bounds are within {}", format_load(asked, gap)),
            Some(StopReason::Noise) => format!(
                "steps of {} s tell no closer bounds; a longer --step does, or --arrivals constant",
                asked.step_length.max_s
            ),
            Some(StopReason::MinLoad) => "no load that was tried held, and less is not worth a search".into(),
            Some(StopReason::MaxLoad) => format!("{} is the highest load to try (--most)", format_load(asked, most)),
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
        self.abort_reason = Some(format!("after {:.0} it did not recover within 30 s, with nothing to do", trial.load));
    }

    fn abort(&mut self, why: &CapacityError, place: fmt::Arguments<'_>) {
        if let CapacityError::Load(LoadError::Interrupted) = why {
            self.interrupted = true;
            return;
        }
        self.lost_agent = is_agent_failure(why).then(|| why.to_string());
        self.abort_reason = Some(format!("{place} it could not go on: {why}"));
    }

    fn into_report(self, asked: &CapacityOptions, search: &Search) -> CapacityReport {
        let bracket = search.bracket();
        let last = |is: &dyn Fn(&StepReport) -> bool| self.steps.iter().rev().find(|tried| is(tried)).cloned();
        let holds = bracket.holds.and_then(|holds| last(&|tried| tried.sustained == Some(holds)));
        let is_over = |tried: &StepReport| matches!(tried.end, StepResult::Fails | StepResult::Generator);
        let fails = bracket.fails.and_then(|fails| last(&|tried| tried.load == fails && is_over(tried)));
        let limit = match fails.as_ref().filter(|_| self.lost_agent.is_none()).map(|tried| tried.end) {
            Some(StepResult::Generator) => Bottleneck::Generator,
            Some(_) => Bottleneck::Service,
            None if self.lost_agent.is_some() => Bottleneck::Generator,
            None => Bottleneck::None,
        };
        let why = match (&self.abort_reason, &fails) {
            (Some(why), _) => why.clone(),
            (None, Some(tried)) => tried.reason.clone().unwrap_or_default(),
            (None, None) if self.interrupted => "interrupted before a load failed".into(),
            (None, None) if self.out_of_time => "no load failed before --max-time was over".into(),
            (None, None) if search.stop_reason() == Some(StopReason::MinLoad) => {
                "too few requests to tell anything within a step; give a longer --step".into()
            }
            (None, None) => "the highest load that was to be tried holds; raise --most".into(),
        };
        let both = [&holds, &fails].into_iter().flatten().map(|tried| tried.confidence);
        let sure = if holds.is_some() || fails.is_some() { both.product() } else { 0.0 };
        let saturated = fails.as_ref().and_then(|tried| saturated_resource(tried, self.manifest.cores));
        let closed = asked.model == LoadModel::Closed;
        let usl = closed.then(|| Usl::fit(&self.usl_points).map(UslSummary::of)).flatten();
        let ended = self.stop_reason(asked, search);
        CapacityReport {
            weir: env!("CARGO_PKG_VERSION").into(),
            schema: SCHEMA_VERSION,
            model: asked.model,
            url: asked.options.url.clone(),
            objectives: asked.slos.iter().map(Slo::to_string).collect(),
            holds: bracket.holds,
            fails: bracket.fails,
            confidence: sure,
            limit,
            reason: why,
            saturated,
            usl,
            ended,
            interrupted: self.interrupted,
            agent_failure: self.lost_agent,
            manifest: self.manifest,
            steps: self.steps,
        }
    }
}

/// A gap or a load as people write it.
fn format_load(asked: &CapacityOptions, load: f64) -> String {
    match asked.model {
        LoadModel::Open => format!("{load}/s"),
        LoadModel::Closed if load == 1.0 => "1 user".into(),
        LoadModel::Closed => format!("{load} users"),
    }
}

/// What of the service's machine was used up at a load, if something was.
fn saturated_resource(tried: &StepReport, cores: u64) -> Option<String> {
    let (used, own) = (tried.service_cores?, tried.generator_share);
    let busy = tried.machine_share.unwrap_or(0.0) * cores as f64;
    Some(if busy > 0.9 * cores as f64 {
        let others = (busy - used - own).max(0.0);
        format!("all {cores} cores: the service used {used:.2}, weir's busiest thread {own:.2}, others {others:.2}")
    } else if used > 0.9 && (used - used.round()).abs() < 0.1 {
        format!("CPU: the service used {used:.2} of {cores} cores, as many as it has threads that work, it seems")
    } else {
        format!("no CPU: the service used {used:.2} of {cores} cores, so it waited for something else")
    })
}
