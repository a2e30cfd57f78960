//! One load level of a capacity search.

use std::sync::Arc;
use std::time::Duration;

use super::sampling::{ServiceUsage, ServiceUsageSampler};
use super::{CapacityCallback, CapacityError, CapacityEvent, CapacityOptions};
use weir_agents::Coordinator;
use weir_base::Nanos;
use weir_base::terminal_text::beginning;
use weir_load::{self as load, LoadError, LoadPlan, Options};
use weir_machine::clock::Clock;
use weir_measure::capacity::report::{StepReport, StepResult};
use weir_measure::capacity::search::Trial;
use weir_measure::capacity::step::{StepDecision, StepFailure};
use weir_measure::capacity::{CapacityStep, IdleFinding, IdleProbe, TrialResult};
use weir_measure::run::Manifest;
use weir_measure::slo::{Slo, SloCriterion};
use weir_measure::trust::{MIN_SUCCESSES, is_wake_up_late};
use weir_measure::{LoadModel, Run, RunProgress};

/// Requests of a single user that measure the response time without load.
const SINGLE_USER_REQUESTS: u64 = 10;
/// Maximum time for a service to recover from a load that failed.
const RECOVERY_TIMEOUT: Nanos = Nanos::from_secs(30);
/// Maximum warm-up excluded from a step, in seconds.
const MAX_WARMUP_S: u64 = 10;

/// Generator of one load level after the other.
#[derive(Debug)]
pub(super) struct Driver<'a> {
    pub(super) search: &'a CapacityOptions,
    demands: &'a [SloCriterion],
    pub(super) command: &'a [String],
    sampling: Option<ServiceUsageSampler>,
    clock: Clock,
    /// Median response time of a single user, in milliseconds; None before it was measured.
    single_user_p50_ms: Option<f64>,
    /// Warm-up excluded from the next step, in seconds.
    pub(super) warmup_s: u64,
    /// Connections to open before the next step starts: twice the mean number in flight of the last one that passed.
    preconnect: u64,
    pub(super) steps: u64,
    /// Coordinator of the agents; none: this process generates the load.
    pub(super) coordinator: Option<Coordinator>,
}

/// Result of a step.
#[derive(Debug)]
pub(super) struct StepOutcome {
    pub(super) report: StepReport,
    pub(super) verdict: TrialResult,
    /// Whether the callback ended it before it was decided.
    pub(super) interrupted: bool,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        search_options: &'a CapacityOptions,
        demands: &'a [SloCriterion],
        command: &'a [String],
        watch: &mut CapacityCallback<'_>,
    ) -> Result<Self, CapacityError> {
        let progress = &RunProgress::default();
        let mut go_on = || watch(&CapacityEvent::StepProgress { step: 1, load: 0.0, progress });
        let place = |agents| Coordinator::place(agents, &search_options.options, &mut go_on);
        Ok(Self {
            search: search_options,
            demands,
            command,
            sampling: search_options.pid.map(ServiceUsageSampler::for_process).transpose()?,
            clock: Clock::starting_in(Nanos::ZERO),
            single_user_p50_ms: None,
            warmup_s: search_options.warmup_s.max(1),
            preconnect: 0,
            steps: 0,
            coordinator: search_options.agents.as_ref().map(place).transpose()?,
        })
    }

    /// Measures the response time of a single user; returns the manifest of that run, and whether it missed an
    /// objective, which of few requests may be chance.
    pub(super) fn measure_single_user(
        &mut self,
        watch: &mut CapacityCallback<'_>,
    ) -> Result<(Manifest, bool), CapacityError> {
        // Errors in the options of later steps are reported before anything is sent.
        self.plan(self.search.range.start)?;
        let run = self.run_single_user(watch)?;
        if run.interrupted {
            return Err(LoadError::Interrupted.into());
        }
        if run.requests.ok == 0 {
            return Err(CapacityError::NoSuccess(self.failure_of_single_user(&run, watch)));
        }
        self.single_user_p50_ms = run.response_ms.p50;
        let is_suspicious = self.search.slos.iter().any(|slo| !slo.check(&run).ok);
        Ok((run.manifest, is_suspicious))
    }

    /// Failure of a single user in a few words: the status and the beginning of the response, without secrets.
    fn failure_of_single_user(&mut self, run: &Run, watch: &mut CapacityCallback<'_>) -> String {
        let kind = run.failures.keys().next().map_or("no response", String::as_str);
        let details = run.target.failure_details.get(kind).map_or("", String::as_str);
        if run.response_count() == 0 {
            return format!("{kind} {details}").trim_end().to_owned();
        }
        // Checks make the request a step, which keeps samples; one on the body makes it keep that.
        let checks = ["status < 400", "bytes count >= 0"].map(str::to_owned).to_vec();
        let options = Options { connections: Some(1), requests: Some(1), checks, ..self.search.options.clone() };
        let has_steps = !run.steps.is_empty() || self.coordinator.is_some();
        let again = if has_steps { None } else { self.run_one_user(&options, watch).ok() };
        let steps = again.as_ref().map_or(&run.steps, |run| &run.steps);
        let sample = steps.iter().find_map(|step| step.samples.first());
        let status = run.status.keys().next().filter(|_| kind.ends_with("xx"));
        let what = match (status, sample) {
            (Some(status), _) => format!("status {status}"),
            (None, Some(sample)) => format!("{kind}: {}", sample.reason),
            (None, None) => format!("{kind} {details}").trim_end().to_owned(),
        };
        let body = sample.and_then(|sample| sample.response.split_once("\n\n")).map(|(_, body)| body);
        let body = body.map(|body| body.split_whitespace().collect::<Vec<_>>().join(" "));
        body.filter(|body| !body.is_empty()).map_or(what.clone(), |body| format!("{what}: {}", beginning(&body, 100)))
    }

    /// Looks whether the service misses an objective with one request at a time; a sentence if it does.
    pub(super) fn probe_idle(&mut self, watch: &mut CapacityCallback<'_>) -> Result<Option<String>, CapacityError> {
        let (warmup_s, max_s) = (self.search.warmup_s.max(1), self.search.step_length.max_s);
        let seconds = Duration::from_secs(warmup_s + max_s + 1);
        let options = &self.search.options;
        let options = Options {
            connections: Some(1),
            rate: None,
            duration: Some(seconds),
            warmup: Some(Duration::from_secs(warmup_s)),
            ..options.clone()
        };
        let plan = self.plan_of(&options)?;
        let (mut seen, mut probe, mut finding) = (0, IdleProbe::new(self.demands, max_s), None);
        let (step, load, mut cut_off) = (self.steps as usize + 1, 0.0, false);
        let ended = run(&mut self.coordinator, &options, &plan, self.command, &mut |progress| {
            if let Some(second) = progress.interval {
                seen += 1;
                // The first seconds are of a connection that is made, and of caches that are cold.
                finding = finding.or_else(|| (seen > warmup_s).then(|| probe.add(second)).flatten());
            }
            cut_off = !watch(&CapacityEvent::StepProgress { step, load, progress });
            finding.is_none() && !cut_off
        });
        self.pass_script_reports(watch);
        let ended = match ended {
            _ if cut_off => return Err(LoadError::Interrupted.into()),
            ended => ended?,
        };
        let Some(IdleFinding::Misses(index)) = finding else { return Ok(None) };
        Ok(self.search.slos.get(index).map(|slo| {
            let held = slo.check(&ended);
            format!(
                "the service misses {} without load (one request at a time: {}, {} requests): no load will meet it",
                held.objective, held.measured, ended.requests.total
            )
        }))
    }

    /// Waits until the response time of a single user is about as at first; false after [`RECOVERY_TIMEOUT`].
    pub(super) fn wait_for_recovery(&mut self, watch: &mut CapacityCallback<'_>) -> Result<bool, CapacityError> {
        let begun = self.clock.now();
        while self.clock.now() - begun < RECOVERY_TIMEOUT {
            let run = self.run_single_user(watch)?;
            if run.interrupted {
                return Err(LoadError::Interrupted.into());
            }
            let both = run.response_ms.p50.zip(self.single_user_p50_ms);
            if run.requests.failed == 0 && both.is_some_and(|(now, at_first)| now <= 2.0 * at_first + 1.0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn run_single_user(&mut self, watch: &mut CapacityCallback<'_>) -> Result<Run, CapacityError> {
        let options =
            Options { connections: Some(1), requests: Some(SINGLE_USER_REQUESTS), ..self.search.options.clone() };
        self.run_one_user(&options, watch)
    }

    fn run_one_user(&mut self, options: &Options, watch: &mut CapacityCallback<'_>) -> Result<Run, CapacityError> {
        let plan = self.plan_of(options)?;
        let (step, load) = (self.steps as usize + 1, 0.0);
        let mut on_progress = |progress: &RunProgress<'_>| watch(&CapacityEvent::StepProgress { step, load, progress });
        let run = run(&mut self.coordinator, options, &plan, self.command, &mut on_progress);
        self.pass_script_reports(watch);
        run
    }

    /// Passes what scripts have left in agents.
    fn pass_script_reports(&mut self, watch: &mut CapacityCallback<'_>) {
        let reports = self.coordinator.as_mut().map(Coordinator::take_script_reports).unwrap_or_default();
        for report in &reports {
            watch(&CapacityEvent::ScriptReport(report));
        }
    }

    pub(super) fn plan_of(&self, options: &Options) -> Result<LoadPlan, CapacityError> {
        let plan = LoadPlan::new(options)?;
        match &self.search.program {
            Some(program) => Ok(plan.driven_by(Arc::clone(program), options)?),
            None => Ok(plan),
        }
    }

    /// Options and plan of a load level, in requests per second or users.
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
        let mut plan = self.plan_of(&options)?;
        // Connections of scenarios belong to users.
        if self.search.model == LoadModel::Open && plan.keep_alive && !plan.has_users() {
            plan.preconnect = self.preconnect.min(plan.connections);
        }
        Ok((options, plan))
    }

    /// Runs a load level until its outcome is decided.
    pub(super) fn drive(
        &mut self,
        trial: Trial,
        number: usize,
        watch: &mut CapacityCallback<'_>,
    ) -> Result<StepOutcome, CapacityError> {
        let (options, plan) = self.plan(trial.load)?;
        self.steps += 1;
        let (warmup_s, length) = (self.warmup_s, self.search.step_length);
        let offered = (self.search.model == LoadModel::Open).then_some(trial.load);
        let (mut seen, mut step, mut decision): (_, Option<CapacityStep>, Option<StepDecision>) = (0, None, None);
        let mut cut_off = false;
        let (sampling, clock) = (&mut self.sampling, &self.clock);
        let driven = run(&mut self.coordinator, &options, &plan, self.command, &mut |progress| {
            if let Some(second) = progress.interval {
                seen += 1;
                if let Some(step) = &mut step {
                    decision = decision.or_else(|| step.add(second, trial.thorough));
                } else if seen >= warmup_s {
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
        self.pass_script_reports(watch);
        let mut run = match driven {
            // Stopping the agents detects one that hangs; an interrupt takes precedence over the lost agent.
            Err(CapacityError::AgentLost(_)) if cut_off => return Err(LoadError::Interrupted.into()),
            driven => driven?,
        };
        exclude_cut_off_requests(&mut run);
        let used = self.sampling.as_mut().and_then(|sampling| sampling.end(self.clock.now()));
        let decision = decision.or_else(|| step.as_ref().map(CapacityStep::decide));
        let cut_off = cut_off || decision.is_none();
        let decision = decision.unwrap_or(StepDecision { failure: None, confidence: 0.0 });
        self.adapt_next_step(&run, decision.end());
        let sustained = step.filter(|_| decision.end() == TrialResult::Passes).map(|step| step.sustained(trial.load));
        let tried = StepReport { sustained, ..self.step_report(&run, trial, decision, used) };
        Ok(StepOutcome { verdict: decision.end(), report: tried, interrupted: cut_off })
    }

    /// Sets warm-up and connections of the next step by response times and concurrency of this one.
    fn adapt_next_step(&mut self, run: &Run, end: TrialResult) {
        if end == TrialResult::Passes {
            let twice = run.response_ms.p99.map_or(0, |p99| (2.0 * p99 / 1e3).ceil() as u64);
            self.warmup_s = twice.clamp(self.search.warmup_s.max(1), MAX_WARMUP_S.max(self.search.warmup_s));
            self.preconnect = (2.0 * run.in_flight_mean).ceil() as u64;
        }
    }

    fn step_report(&self, run: &Run, trial: Trial, decision: StepDecision, used: Option<ServiceUsage>) -> StepReport {
        let own_fault = run.is_generator_fault();
        let end = match decision.end() {
            TrialResult::Passes => StepResult::Passes,
            TrialResult::Inconclusive => StepResult::Inconclusive,
            TrialResult::Fails if own_fault => StepResult::Generator,
            TrialResult::Fails => StepResult::Fails,
        };
        let why = decision.failure.map(|failing| match end {
            StepResult::Generator => format!(
                "weir itself was the limit: sent late by {:.1} ms at the 99th percentile, busiest thread {:.0}% of a core; \
                 {}",
                run.lateness_ms.p99.unwrap_or(0.0),
                run.cpu_utilization * 100.0,
                if is_wake_up_late(run.cpu_utilization) {
                    "its threads were idle, and the system woke them late: leave a core for each of them, or use another machine"
                } else {
                    "use more threads (-t) or another machine"
                }
            ),
            _ => self.failure_message(run, failing),
        });
        StepReport {
            load: trial.load,
            sustained: None,
            outcome: end,
            reason: why,
            confidence: decision.confidence,
            duration_s: run.duration_s,
            achieved_per_s: run.rate_per_s.achieved,
            p50_ms: run.response_ms.p50,
            p99_ms: run.response_ms.p99.filter(|_| run.requests.ok >= MIN_SUCCESSES),
            errors: run.error_fraction(),
            in_flight: run.in_flight_mean,
            lateness_p99_ms: run.lateness_ms.p99,
            cpu_utilization: run.cpu_utilization,
            service_cores: used.map(|used| used.service_cores),
            machine_utilization: used.and_then(|used| used.machine_fraction),
        }
    }

    fn failure_message(&self, run: &Run, failing: StepFailure) -> String {
        let waiting = match run.connections.max_backlog {
            n if n * 10 < run.connections.max => String::new(),
            n => format!("; up to {n} requests waited for a free connection (-c is {})", run.connections.max),
        };
        match failing {
            StepFailure::Growing(per_s) => format!(
                "the service does not keep up: {:.0} responses/s, and its backlog grows by {per_s:.0} requests/s{waiting}",
                run.rate_per_s.achieved
            ),
            StepFailure::Objective(index) => {
                let held = self.search.slos.get(index).map(|slo: &Slo| slo.check(run));
                held.map_or_else(String::new, |held| format!("{}: {}{waiting}", held.objective, held.measured))
            }
        }
    }
}

/// Runs a load in this process or by agents. A run that lost an agent is an error: its load was not the planned one.
pub(super) fn run(
    coordinator: &mut Option<Coordinator>,
    options: &Options,
    plan: &LoadPlan,
    command: &[String],
    watch: &mut load::ProgressCallback<'_>,
) -> Result<Run, CapacityError> {
    let Some(coordinator) = coordinator else { return Ok(load::run(plan, command, watch, None)?) };
    let run = coordinator.run(options, plan, command, watch)?;
    match run.failed_agent() {
        Some(why) => Err(CapacityError::AgentLost(why.to_owned())),
        None => Ok(run),
    }
}

/// Removes requests that were still waiting for a connection when the step was decided: they were not dropped by
/// timeout.
fn exclude_cut_off_requests(run: &mut Run) {
    if run.interrupted {
        run.failures.remove("dropped");
        run.requests.total -= run.requests.dropped;
        run.requests.failed -= run.requests.dropped;
        run.requests.dropped = 0;
    }
}
