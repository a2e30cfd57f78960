//! One load.

use std::time::Duration;

use super::sampling::{Sampling, Used};
use super::{Asked, CapacityError, News, Watch};
use crate::agents::Crew;
use crate::decide::Nanos;
use crate::load::{self, LoadError, Options, Plan};
use crate::machine::clock::Clock;
use crate::measure::capacity::answer::{Ended, Tried};
use crate::measure::capacity::search::Trial;
use crate::measure::capacity::step::{Decision, Failing};
use crate::measure::capacity::{End, Step};
use crate::measure::run::{Manifest, Model};
use crate::measure::slo::{Demand, Slo};
use crate::measure::trust::is_own_fault;
use crate::measure::{Progress, Run};

/// Requests of a single user that show how the service answers when it has nothing else to do.
const CALM: u64 = 10;
/// How long a service may take to get over a load that was too much.
const RECOVERY: Nanos = Nanos::from_secs(30);
/// The longest beginning of a step that is cut off, in seconds.
const LONGEST_SETTLE: u64 = 10;

/// Drives one load after the other.
#[derive(Debug)]
pub(super) struct Driver<'a> {
    asked: &'a Asked,
    demands: &'a [Demand],
    command: &'a [String],
    sampling: Option<Sampling>,
    clock: Clock,
    /// The median response time of a single user, in ms.
    calm_ms: f64,
    /// Seconds to cut off at the beginning of a step.
    settle_s: u64,
    /// Connections that the load before had open: as many are made before the next one starts.
    warm: u64,
    steps: u64,
    /// Who drives the loads, if not we ourselves.
    crew: Option<Crew>,
}

/// A load that was driven.
#[derive(Debug)]
pub(super) struct Driven {
    pub(super) tried: Tried,
    pub(super) end: End,
    /// Somebody ended it before it was decided.
    pub(super) cut_off: bool,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        asked: &'a Asked,
        demands: &'a [Demand],
        command: &'a [String],
        watch: &mut Watch<'_>,
    ) -> Result<Self, CapacityError> {
        let progress = &Progress { elapsed: Nanos::ZERO, ended: 0, second: None };
        let mut go_on = || watch(&News::Trying { step: 1, load: 0.0, progress });
        let place = |agents| Crew::place(agents, &asked.options, &mut go_on);
        Ok(Self {
            asked,
            demands,
            command,
            sampling: asked.pid.map(Sampling::of).transpose()?,
            clock: Clock::starting_in(Nanos::ZERO),
            calm_ms: 0.0,
            settle_s: asked.settle_s.max(1),
            warm: 0,
            steps: 0,
            crew: asked.agents.as_ref().map(place).transpose()?,
        })
    }

    /// Sees how the service answers a single user.
    pub(super) fn calm(&mut self, watch: &mut Watch<'_>) -> Result<Manifest, CapacityError> {
        // That all of the rest is in order, too, is said before anything is sent.
        self.plan(self.asked.range.start)?;
        let run = self.single(watch)?;
        if run.interrupted {
            return Err(LoadError::Interrupted.into());
        }
        if run.requests.ok == 0 {
            let told = run.failures.keys().next().map_or("no answer", String::as_str);
            let words = run.target.failure_details.get(told).map_or("", String::as_str);
            return Err(CapacityError::Broken(format!("{told} {words}").trim_end().to_owned()));
        }
        self.calm_ms = run.response_ms.p50;
        Ok(run.manifest)
    }

    /// Waits until the service answers a single user about as it did at first; whether it does.
    pub(super) fn recover(&mut self, watch: &mut Watch<'_>) -> Result<bool, CapacityError> {
        let begun = self.clock.now();
        while self.clock.now() - begun < RECOVERY {
            let run = self.single(watch)?;
            if run.interrupted {
                return Err(LoadError::Interrupted.into());
            }
            if run.requests.failed == 0 && run.response_ms.p50 <= 2.0 * self.calm_ms + 1.0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn single(&mut self, watch: &mut Watch<'_>) -> Result<Run, CapacityError> {
        let options = Options { connections: Some(1), requests: Some(CALM), ..self.asked.options.clone() };
        let plan = Plan::new(&options)?;
        let (step, load) = (self.steps as usize + 1, 0.0);
        let mut watch = |progress: &Progress<'_>| watch(&News::Trying { step, load, progress });
        run(&mut self.crew, &options, &plan, self.command, &mut watch)
    }

    /// The load that `load` requests per second, or users, make.
    fn plan(&self, load: f64) -> Result<(Options, Plan), CapacityError> {
        let options = &self.asked.options;
        let seconds = Duration::from_secs(self.settle_s + self.asked.length.most + 1);
        let paced = match self.asked.model {
            Model::Open => Options { rate: Some(load), ..options.clone() },
            Model::Closed => Options { connections: Some(load as u64), rate: None, ..options.clone() },
        };
        let warmup = Some(Duration::from_secs(self.settle_s));
        let seed = Some(options.seed.unwrap_or(0).wrapping_add(self.steps));
        let options = Options { duration: Some(seconds), warmup, seed, ..paced };
        let mut plan = Plan::new(&options)?;
        if self.asked.model == Model::Open && plan.keep_alive {
            plan.preconnect = self.warm.min(plan.connections);
        }
        Ok((options, plan))
    }

    /// Drives a load until it is decided.
    pub(super) fn drive(
        &mut self,
        trial: Trial,
        number: usize,
        watch: &mut Watch<'_>,
    ) -> Result<Driven, CapacityError> {
        let (options, plan) = self.plan(trial.load)?;
        self.steps += 1;
        let (settle, length) = (self.settle_s, self.asked.length);
        let offered = (self.asked.model == Model::Open).then_some(trial.load);
        let (mut seen, mut step, mut decision): (_, Option<Step>, Option<Decision>) = (0, None, None);
        let mut cut_off = false;
        let (sampling, clock) = (&mut self.sampling, &self.clock);
        let driven = run(&mut self.crew, &options, &plan, self.command, &mut |progress| {
            if let Some(second) = progress.second {
                seen += 1;
                if let Some(step) = &mut step {
                    decision = decision.or_else(|| step.add(second, trial.thorough));
                } else if seen >= settle {
                    let before = second.in_flight + second.backlog;
                    step = Some(Step::new(self.demands, offered, trial.precision, length, before));
                    if let Some(sampling) = sampling.as_mut() {
                        sampling.begin(clock.now());
                    }
                }
            }
            cut_off = !watch(&News::Trying { step: number, load: trial.load, progress });
            decision.is_none() && !cut_off
        });
        let mut run = match driven {
            // An agent that hangs is found out when all are told to stop; whoever had enough is told that.
            Err(CapacityError::Lost(_)) if cut_off => return Err(LoadError::Interrupted.into()),
            driven => driven?,
        };
        forget_cut_off(&mut run);
        let used = self.sampling.as_mut().and_then(|sampling| sampling.end(self.clock.now()));
        let decision = decision.or_else(|| step.as_ref().map(Step::decide));
        let cut_off = cut_off || decision.is_none();
        let decision = decision.unwrap_or(Decision { failing: None, sure: 0.0 });
        self.learn(&run, decision.end());
        let surely = step.filter(|_| decision.end() == End::Holds).map(|step| step.surely(trial.load));
        let tried = Tried { surely, ..self.tried(&run, trial, decision, used) };
        Ok(Driven { end: decision.end(), tried, cut_off })
    }

    /// What a load teaches about the next: how long answers are on their way, and how many connections it needs.
    fn learn(&mut self, run: &Run, end: End) {
        if end == End::Holds {
            let twice = (2.0 * run.response_ms.p99 / 1e3).ceil() as u64;
            self.settle_s = twice.clamp(self.asked.settle_s.max(1), LONGEST_SETTLE.max(self.asked.settle_s));
            self.warm = (2.0 * run.in_flight_mean).ceil() as u64;
        }
    }

    fn tried(&self, run: &Run, trial: Trial, decision: Decision, used: Option<Used>) -> Tried {
        let own_fault = is_own_fault(run);
        let end = match decision.end() {
            End::Holds => Ended::Holds,
            End::Unclear => Ended::Unclear,
            End::Fails if own_fault => Ended::Generator,
            End::Fails => Ended::Fails,
        };
        let why = decision.failing.map(|failing| match end {
            Ended::Generator => format!(
                "weir itself was the limit: sent late by {:.1} ms at the 99th percentile, busiest thread {:.0} % of a core; \
                 use more threads (-t) or another machine",
                run.lateness_ms.p99,
                run.cpu_share * 100.0
            ),
            _ => self.words(run, failing),
        });
        Tried {
            load: trial.load,
            surely: None,
            end,
            why,
            sure: decision.sure,
            seconds: run.duration_s,
            achieved_per_s: run.rate_per_s.achieved,
            p50_ms: (run.requests.ok > 0).then_some(run.response_ms.p50),
            p99_ms: (run.requests.ok > 0).then_some(run.response_ms.p99),
            errors: run.error_share(),
            in_flight: run.in_flight_mean,
            lateness_p99_ms: run.lateness_ms.p99,
            generator_share: run.cpu_share,
            service_cores: used.map(|used| used.service_cores),
            machine_share: used.and_then(|used| used.machine_share),
        }
    }

    fn words(&self, run: &Run, failing: Failing) -> String {
        let waiting = match run.connections.most_backlog {
            n if n * 10 < run.connections.limit => String::new(),
            n => format!("; up to {n} requests waited for a free connection (-c is {})", run.connections.limit),
        };
        match failing {
            Failing::Growing(per_s) => format!(
                "it does not keep up: {:.0}/s answered, and {per_s:.0} more in the service each second{waiting}",
                run.rate_per_s.achieved
            ),
            Failing::Objective(index) => {
                let held = self.asked.slos.get(index).map(|slo: &Slo| slo.check(run));
                held.map_or_else(String::new, |held| format!("{}: {}{waiting}", held.objective, held.measured))
            }
        }
    }
}

/// Drives a load, by whomever. One that was not driven by all of the agents tells nothing about a service.
fn run(
    crew: &mut Option<Crew>,
    options: &Options,
    plan: &Plan,
    command: &[String],
    watch: &mut load::Watch<'_>,
) -> Result<Run, CapacityError> {
    let Some(crew) = crew else { return Ok(load::run(plan, command, watch, None)?) };
    let run = crew.run(options, plan, command, watch)?;
    match run.lost_agent() {
        Some(why) => Err(CapacityError::Lost(why.to_owned())),
        None => Ok(run),
    }
}

/// What waited when the step was decided was not given up by anybody.
fn forget_cut_off(run: &mut Run) {
    if run.interrupted {
        run.failures.remove("dropped");
        run.requests.total -= run.requests.dropped;
        run.requests.failed -= run.requests.dropped;
        run.requests.dropped = 0;
    }
}
