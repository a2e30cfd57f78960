//! One load.

use std::time::Duration;

use super::sampling::{ServiceUsage, ServiceUsageSampler};
use super::{CapacityCallback, CapacityError, CapacityEvent, CapacityOptions};
use crate::agents::Coordinator;
use crate::decide::Nanos;
use crate::load::{self, LoadError, LoadPlan, Options};
use crate::machine::clock::Clock;
use crate::measure::capacity::answer::{StepReport, StepResult};
use crate::measure::capacity::search::Trial;
use crate::measure::capacity::step::{StepDecision, StepFailure};
use crate::measure::capacity::{CapacityStep, TrialResult};
use crate::measure::run::{LoadModel, Manifest};
use crate::measure::slo::{Slo, SloCriterion};
use crate::measure::trust::is_generator_fault;
use crate::measure::{Run, RunProgress};

/// Requests of a single user that show how the service answers when it has nothing else to do.
const SINGLE_USER_REQUESTS: u64 = 10;
/// How long a service may take to get over a load that was too much.
const RECOVERY_TIMEOUT: Nanos = Nanos::from_secs(30);
/// The longest beginning of a step that is cut off, in seconds.
const MAX_WARMUP_S: u64 = 10;

/// Drives one load after the other.
#[derive(Debug)]
pub(super) struct Driver<'a> {
    search: &'a CapacityOptions,
    demands: &'a [SloCriterion],
    command: &'a [String],
    sampling: Option<ServiceUsageSampler>,
    clock: Clock,
    /// The median response time of a single user, in ms.
    single_user_p50_ms: f64,
    /// Seconds to cut off at the beginning of a step.
    warmup_s: u64,
    /// Connections that the load before had open: as many are made before the next one starts.
    preconnect: u64,
    steps: u64,
    /// Who drives the loads, if not we ourselves.
    coordinator: Option<Coordinator>,
}

/// A load that was driven.
#[derive(Debug)]
pub(super) struct StepOutcome {
    pub(super) report: StepReport,
    pub(super) verdict: TrialResult,
    /// Somebody ended it before it was decided.
    pub(super) interrupted: bool,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        asked: &'a CapacityOptions,
        demands: &'a [SloCriterion],
        command: &'a [String],
        watch: &mut CapacityCallback<'_>,
    ) -> Result<Self, CapacityError> {
        let progress = &RunProgress { elapsed: Nanos::ZERO, ended: 0, interval: None };
        let mut go_on = || watch(&CapacityEvent::StepProgress { step: 1, load: 0.0, progress });
        let place = |agents| Coordinator::place(agents, &asked.options, &mut go_on);
        Ok(Self {
            search: asked,
            demands,
            command,
            sampling: asked.pid.map(ServiceUsageSampler::for_process).transpose()?,
            clock: Clock::starting_in(Nanos::ZERO),
            single_user_p50_ms: 0.0,
            warmup_s: asked.warmup_s.max(1),
            preconnect: 0,
            steps: 0,
            coordinator: asked.agents.as_ref().map(place).transpose()?,
        })
    }

    /// Sees how the service answers a single user.
    pub(super) fn measure_single_user(&mut self, watch: &mut CapacityCallback<'_>) -> Result<Manifest, CapacityError> {
        // That all of the rest is in order, too, is said before anything is sent.
        self.plan(self.search.range.start)?;
        let run = self.run_single_user(watch)?;
        if run.interrupted {
            return Err(LoadError::Interrupted.into());
        }
        if run.requests.ok == 0 {
            let told = run.failures.keys().next().map_or("no answer", String::as_str);
            let words = run.target.failure_details.get(told).map_or("", String::as_str);
            return Err(CapacityError::NoSuccess(format!("{told} {words}").trim_end().to_owned()));
        }
        self.single_user_p50_ms = run.response_ms.p50;
        Ok(run.manifest)
    }

    /// Waits until the service answers a single user about as it did at first; whether it does.
    pub(super) fn wait_for_recovery(&mut self, watch: &mut CapacityCallback<'_>) -> Result<bool, CapacityError> {
        let begun = self.clock.now();
        while self.clock.now() - begun < RECOVERY_TIMEOUT {
            let run = self.run_single_user(watch)?;
            if run.interrupted {
                return Err(LoadError::Interrupted.into());
            }
            if run.requests.failed == 0 && run.response_ms.p50 <= 2.0 * self.single_user_p50_ms + 1.0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn run_single_user(&mut self, watch: &mut CapacityCallback<'_>) -> Result<Run, CapacityError> {
        let options =
            Options { connections: Some(1), requests: Some(SINGLE_USER_REQUESTS), ..self.search.options.clone() };
        let plan = LoadPlan::new(&options)?;
        let (step, load) = (self.steps as usize + 1, 0.0);
        let mut watch = |progress: &RunProgress<'_>| watch(&CapacityEvent::StepProgress { step, load, progress });
        run(&mut self.coordinator, &options, &plan, self.command, &mut watch)
    }

    /// The load that `load` requests per second, or users, make.
    fn plan(&self, load: f64) -> Result<(Options, LoadPlan), CapacityError> {
        let options = &self.search.options;
        let seconds = Duration::from_secs(self.warmup_s + self.search.step_length.max_s + 1);
        let paced = match self.search.model {
            LoadModel::Open => Options { rate: Some(load), ..options.clone() },
            LoadModel::Closed => Options { connections: Some(load as u64), rate: None, ..options.clone() },
        };
        let warmup = Some(Duration::from_secs(self.warmup_s));
        let seed = Some(options.seed.unwrap_or(0).wrapping_add(self.steps));
        let options = Options { duration: Some(seconds), warmup, seed, ..paced };
        let mut plan = LoadPlan::new(&options)?;
        if self.search.model == LoadModel::Open && plan.keep_alive {
            plan.preconnect = self.preconnect.min(plan.connections);
        }
        Ok((options, plan))
    }

    /// Drives a load until it is decided.
    pub(super) fn drive(
        &mut self,
        trial: Trial,
        number: usize,
        watch: &mut CapacityCallback<'_>,
    ) -> Result<StepOutcome, CapacityError> {
        let (options, plan) = self.plan(trial.load)?;
        self.steps += 1;
        let (settle, length) = (self.warmup_s, self.search.step_length);
        let offered = (self.search.model == LoadModel::Open).then_some(trial.load);
        let (mut seen, mut step, mut decision): (_, Option<CapacityStep>, Option<StepDecision>) = (0, None, None);
        let mut cut_off = false;
        let (sampling, clock) = (&mut self.sampling, &self.clock);
        let driven = run(&mut self.coordinator, &options, &plan, self.command, &mut |progress| {
            if let Some(second) = progress.interval {
                seen += 1;
                if let Some(step) = &mut step {
                    decision = decision.or_else(|| step.add(second, trial.thorough));
                } else if seen >= settle {
                    let before = second.in_flight + second.backlog;
                    step = Some(CapacityStep::new(self.demands, offered, trial.precision, length, before));
                    if let Some(sampling) = sampling.as_mut() {
                        sampling.begin(clock.now());
                    }
                }
            }
            cut_off = !watch(&CapacityEvent::StepProgress { step: number, load: trial.load, progress });
            decision.is_none() && !cut_off
        });
        let mut run = match driven {
            // An agent that hangs is found out when all are told to stop; whoever had enough is told that.
            Err(CapacityError::AgentLost(_)) if cut_off => return Err(LoadError::Interrupted.into()),
            driven => driven?,
        };
        exclude_cut_off_requests(&mut run);
        let used = self.sampling.as_mut().and_then(|sampling| sampling.end(self.clock.now()));
        let decision = decision.or_else(|| step.as_ref().map(CapacityStep::decide));
        let cut_off = cut_off || decision.is_none();
        let decision = decision.unwrap_or(StepDecision { failure: None, confidence: 0.0 });
        self.adapt_next_step(&run, decision.end());
        let surely = step.filter(|_| decision.end() == TrialResult::Holds).map(|step| step.sustained(trial.load));
        let tried = StepReport { sustained: surely, ..self.step_report(&run, trial, decision, used) };
        Ok(StepOutcome { verdict: decision.end(), report: tried, interrupted: cut_off })
    }

    /// What a load teaches about the next: how long answers are on their way, and how many connections it needs.
    fn adapt_next_step(&mut self, run: &Run, end: TrialResult) {
        if end == TrialResult::Holds {
            let twice = (2.0 * run.response_ms.p99 / 1e3).ceil() as u64;
            self.warmup_s = twice.clamp(self.search.warmup_s.max(1), MAX_WARMUP_S.max(self.search.warmup_s));
            self.preconnect = (2.0 * run.in_flight_mean).ceil() as u64;
        }
    }

    fn step_report(&self, run: &Run, trial: Trial, decision: StepDecision, used: Option<ServiceUsage>) -> StepReport {
        let own_fault = is_generator_fault(run);
        let end = match decision.end() {
            TrialResult::Holds => StepResult::Holds,
            TrialResult::Unclear => StepResult::Unclear,
            TrialResult::Fails if own_fault => StepResult::Generator,
            TrialResult::Fails => StepResult::Fails,
        };
        let why = decision.failure.map(|failing| match end {
            StepResult::Generator => format!(
                "weir itself was the limit: sent late by {:.1} ms at the 99th percentile, busiest thread {:.0} % of a core; \
                 use more threads (-t) or another machine",
                run.lateness_ms.p99,
                run.cpu_share * 100.0
            ),
            _ => self.failure_message(run, failing),
        });
        StepReport {
            load: trial.load,
            sustained: None,
            end,
            reason: why,
            confidence: decision.confidence,
            seconds: run.duration_s,
            achieved_per_s: run.rate_per_s.achieved,
            p50_ms: (run.requests.ok > 0).then_some(run.response_ms.p50),
            p99_ms: (run.requests.ok > 0).then_some(run.response_ms.p99),
            errors: run.error_fraction(),
            in_flight: run.in_flight_mean,
            lateness_p99_ms: run.lateness_ms.p99,
            generator_share: run.cpu_share,
            service_cores: used.map(|used| used.service_cores),
            machine_share: used.and_then(|used| used.machine_fraction),
        }
    }

    fn failure_message(&self, run: &Run, failing: StepFailure) -> String {
        let waiting = match run.connections.max_backlog {
            n if n * 10 < run.connections.limit => String::new(),
            n => format!("; up to {n} requests waited for a free connection (-c is {})", run.connections.limit),
        };
        match failing {
            StepFailure::Growing(per_s) => format!(
                "it does not keep up: {:.0}/s answered, and {per_s:.0} more in the service each second{waiting}",
                run.rate_per_s.achieved
            ),
            StepFailure::Objective(index) => {
                let held = self.search.slos.get(index).map(|slo: &Slo| slo.check(run));
                held.map_or_else(String::new, |held| format!("{}: {}{waiting}", held.objective, held.measured))
            }
        }
    }
}

/// Drives a load, by whomever. One that was not driven by all of the agents tells nothing about a service.
fn run(
    crew: &mut Option<Coordinator>,
    options: &Options,
    plan: &LoadPlan,
    command: &[String],
    watch: &mut load::ProgressCallback<'_>,
) -> Result<Run, CapacityError> {
    let Some(crew) = crew else { return Ok(load::run(plan, command, watch, None)?) };
    let run = crew.run(options, plan, command, watch)?;
    match run.failed_agent() {
        Some(why) => Err(CapacityError::AgentLost(why.to_owned())),
        None => Ok(run),
    }
}

/// What waited when the step was decided was not given up by anybody.
fn exclude_cut_off_requests(run: &mut Run) {
    if run.interrupted {
        run.failures.remove("dropped");
        run.requests.total -= run.requests.dropped;
        run.requests.failed -= run.requests.dropped;
        run.requests.dropped = 0;
    }
}
