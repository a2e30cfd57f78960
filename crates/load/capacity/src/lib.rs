//! Capacity search: generates one load level after the other until the bounds are close.
//!
//! [`weir_measure::capacity`] decides the next load level and the outcome of a step; this module generates the load.
//!
//! - [`find`]: the whole search
//! - [`SearchOptions`]: options of the range, precision and length; [`CapacityOptions`]: all parameters
//! - [`RecoveryOptions`]: whether the service comes back after a disturbance; `recovery_drive`: the test of it
//! - `drive`: one load level; and a single user, for the response time without load
//! - `search_progress`: results so far, and the report that they become
//! - `sampling`: CPU use of the service's processes

mod drive;
mod recovery_drive;
mod recovery_options;
mod sampling;
mod search_options;
mod search_progress;

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use self::drive::Driver;
pub use self::recovery_options::{RecoveryLoad, RecoveryOptions, RecoveryTrigger};
pub use self::search_options::{SearchOptions, SearchScale};
use self::search_progress::SearchProgress;
use weir_agents as agents;
use weir_base::Nanos;
use weir_load::program::UserProgram;
use weir_load::{LoadError, Options, PlanError};
use weir_machine::clock::Clock;
use weir_measure::capacity::report::{CapacityReport, StepReport};
use weir_measure::capacity::search::SearchRange;
use weir_measure::capacity::step::StepLength;
use weir_measure::capacity::{Search, TrialResult};
use weir_measure::recovery::RecoveryPhase;
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
    /// Test of the recovery from a disturbance, after the search or in place of it; open loop only.
    pub recovery: Option<RecoveryOptions>,
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
    /// The test of recovery is running.
    RecoveryProgress {
        /// Calls per second.
        load: f64,
        /// Progress of its run.
        progress: &'a RunProgress<'a>,
    },
    /// The test of recovery has entered a phase, with this number of calls per second.
    RecoveryPhase(RecoveryPhase, f64),
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
    let test = search_options.recovery.as_ref();
    let mut found = SearchProgress::new(test.is_some_and(RecoveryOptions::has_load));
    let all_events = watch;
    let watch: &mut CapacityCallback<'_> = &mut |event| {
        late.set(late.get() || clock.now() >= max_time);
        all_events(event) && !late.get()
    };
    let command = &search_options.options.secret_mask().command(command);
    let mut driver = Driver::new(search_options, &demands, command, watch)?;
    let mut search = Search::new(search_options.range);
    let (manifest, is_suspicious) = driver.measure_single_user(watch)?;
    found.set_manifest(&manifest);
    let mut is_probed = is_suspicious;
    if is_suspicious && !found.has_load {
        found.add_probe(driver.probe_idle(watch));
    }
    let goes_on = |found: &SearchProgress| !found.interrupted && found.abort_reason.is_none() && !found.has_load;
    while let Some(trial) = search.next().filter(|_| goes_on(&found)) {
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
    if let Some(test) = test {
        found.test_recovery(&mut driver, test, search.bracket().passes, all_events);
    }
    Ok(found.into_report(search_options, &search))
}

/// Whether the error means that agents were lost.
fn is_agent_failure(why: &CapacityError) -> bool {
    matches!(why, CapacityError::AgentLost(_) | CapacityError::Load(LoadError::Agents(_)))
}
