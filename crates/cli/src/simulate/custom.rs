//! Arguments of a custom simulation: upstream, callers and gateways.

use std::time::Duration;

use clap::{Args, ValueEnum};

use weir_base::Nanos;
use weir_base::units;
use weir_pace::notation;
use weir_pace::schedule::{Arrivals, LoadStage};
use weir_simulate::Scenario;
use weir_simulate::scenario::{default_deadline, default_scenario};
use weir_simulate::world::{ChangeEffect, ReplicaBalance, RetryModel, ScenarioPhase, UnloadedLatency, UpstreamChange};
use weir_workload::delay::Delay;
use weir_workload::station::StationOverflow;

/// Maximum expected calls of a run: more take minutes and gigabytes.
const MAX_CALLS: f64 = 1e8;

#[derive(Debug, Default, Args)]
pub(super) struct CustomScenarioArgs {
    /// concurrent calls per replica [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = UPSTREAM)]
    slots: Option<u32>,
    /// service time, as 'weir serve work --delay' [default: 100ms..600ms]
    #[arg(long, value_name = "DELAY", value_parser = Delay::read, help_heading = UPSTREAM)]
    service_time: Option<Delay>,
    /// upstream replicas [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = UPSTREAM)]
    replicas: Option<u32>,
    /// load balancing [default: least-in-flight]
    #[arg(long, help_heading = UPSTREAM)]
    balance: Option<BalanceFlag>,
    /// maximum queued calls per replica [default: unlimited]
    #[arg(long, value_name = "N", conflicts_with = "degrade", help_heading = UPSTREAM)]
    max_queue: Option<u32>,
    /// service time that grows with calls beyond the slots
    #[arg(long, help_heading = UPSTREAM)]
    degrade: bool,
    /// upstream cancels abandoned calls
    #[arg(long, help_heading = UPSTREAM)]
    cancel_abandoned: bool,
    /// upstream change, e.g. "30s slots=25", "1m replica=0 slower=5"; repeatable
    #[arg(long = "change", value_name = "CHANGE", value_parser = change, help_heading = UPSTREAM)]
    changes: Vec<UpstreamChange>,

    /// offered load as multiple of capacity, e.g. 0.5/30s,10/30s [default: 2]
    #[arg(long, value_name = "LOAD", value_parser = LoadShape::read, help_heading = CALLERS)]
    load: Option<LoadShape>,
    /// offered load in calls per second, e.g. 100/30s,500/30s
    #[arg(long, value_name = "RATE", value_parser = LoadShape::of_rate, conflicts_with = "load", help_heading = CALLERS)]
    rate: Option<LoadShape>,
    /// duration [default: that of --load, or 1m]
    #[arg(long, value_name = "TIME", value_parser = units::time, help_heading = CALLERS)]
    duration: Option<Duration>,
    /// arrival process: constant, poisson, gamma:BURSTINESS [default: poisson]
    #[arg(long, value_name = "KIND", value_parser = notation::arrivals, help_heading = CALLERS)]
    arrivals: Option<Arrivals>,
    /// callers' deadline [default: 4 x the unloaded p99]
    #[arg(long, value_name = "TIME", value_parser = units::time, help_heading = CALLERS)]
    deadline: Option<Duration>,
    /// weights of low, normal, high, critical calls [default: 0,1,0,0]
    #[arg(long, value_name = "W,W,W,W", value_parser = PriorityWeights::read, help_heading = CALLERS)]
    priorities: Option<PriorityWeights>,
    /// maximum retries per call [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=31), help_heading = CALLERS)]
    retries: Option<u32>,
    /// mean wait before the first retry, then doubling [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = units::time, requires = "retries", help_heading = CALLERS)]
    backoff: Option<Duration>,
    /// callers honor Retry-After
    #[arg(long, requires = "retries", help_heading = CALLERS)]
    honor_retry_after: bool,

    /// independent gateways [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = GATEWAYS)]
    gates: Option<u32>,
    /// initial time excluded from the score [default: 1/6, at most 10s]
    #[arg(long, value_name = "TIME", value_parser = units::time, help_heading = GATEWAYS)]
    warmup: Option<Duration>,
    /// resolution of the series, multiple of 100ms [default: 500ms]
    #[arg(long, value_name = "TIME", value_parser = units::time, help_heading = GATEWAYS)]
    interval: Option<Duration>,
}

const UPSTREAM: &str = "Custom simulation: upstream";
const CALLERS: &str = "Custom simulation: callers";
const GATEWAYS: &str = "Custom simulation: gateways and metrics";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BalanceFlag {
    LeastInFlight,
    RoundRobin,
}

impl From<BalanceFlag> for ReplicaBalance {
    fn from(flag: BalanceFlag) -> Self {
        match flag {
            BalanceFlag::LeastInFlight => Self::LeastInFlight,
            BalanceFlag::RoundRobin => Self::RoundRobin,
        }
    }
}

/// Load over time: one number for the whole run, or stages.
#[derive(Clone, Debug)]
enum LoadShape {
    Constant(f64),
    Stages(Vec<LoadStage>),
}

impl LoadShape {
    fn read(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            return notation::stages(text).map(Self::Stages);
        }
        let error = || format!("invalid load '{text}'; write a number, e.g. 2, or stages, e.g. 0.5/30s,10/30s");
        text.parse().ok().filter(|load: &f64| load.is_finite() && *load >= 0.0).map(Self::Constant).ok_or_else(error)
    }

    /// A rate as all commands have it, or stages of it.
    fn of_rate(text: &str) -> Result<Self, String> {
        match units::rate(text) {
            Ok(rate) if rate >= 0.0 => Ok(Self::Constant(rate)),
            _ if text.contains('/') => notation::stages(text).map(Self::Stages),
            Ok(_) => Err(format!("invalid rate '{text}'; write e.g. 500, 500/s or stages, e.g. 100/30s,500/30s")),
            Err(why) => Err(format!("{why}, or stages, e.g. 100/30s,500/30s")),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct PriorityWeights([f64; 4]);

impl PriorityWeights {
    fn read(text: &str) -> Result<Self, String> {
        let error = || format!("invalid weights '{text}'; write four numbers from low to critical, e.g. 2,5,2,1");
        let all: Result<Vec<f64>, _> = text.split(',').map(|weight| weight.trim().parse::<f64>()).collect();
        let all: [f64; 4] = all.map_err(|_| error())?.try_into().map_err(|_| error())?;
        let sum: f64 = all.iter().sum();
        if all.iter().all(|weight| *weight >= 0.0) && sum > 0.0 && sum.is_finite() {
            Ok(Self(all))
        } else {
            Err(error())
        }
    }
}

fn change(text: &str) -> Result<UpstreamChange, String> {
    let error = || format!("invalid change '{text}'; write e.g. \"30s slots=25\" or \"30s replica=0 slower=2\"");
    let mut parts = text.split_whitespace();
    let at = Nanos::from(units::time(parts.next().ok_or_else(error)?).map_err(|_| error())?);
    let (mut replica, mut to) = (None, None);
    for part in parts {
        let (name, value) = part.split_once('=').ok_or_else(error)?;
        match name {
            "replica" => replica = Some(value.parse().map_err(|_| error())?),
            "slots" => {
                to = Some(ChangeEffect::Slots(value.parse().ok().filter(|n| *n <= 1_000_000).ok_or_else(error)?));
            }
            "slower" => {
                to = Some(ChangeEffect::Slowdown(
                    value.parse().ok().filter(|x| (0.001..=1e6).contains(x)).ok_or_else(error)?,
                ));
            }
            _ => return Err(error()),
        }
    }
    Ok(UpstreamChange { at, replica, effect: to.ok_or_else(error)? })
}

impl CustomScenarioArgs {
    /// Scenario of the given flags; none without any.
    pub(super) fn scenario(&self) -> Result<Option<Scenario>, String> {
        if !self.is_given() {
            return Ok(None);
        }
        let mut scenario = default_scenario();
        self.set_upstream(&mut scenario)?;
        self.set_callers(&mut scenario)?;
        let length = scenario.length();
        scenario.gates = self.gates.unwrap_or(scenario.gates);
        scenario.warmup = match self.warmup.map(Nanos::from) {
            Some(warmup) if warmup >= length => {
                return Err(format!("--warmup {warmup} is not shorter than the run, {length}; write a shorter one"));
            }
            Some(warmup) => warmup,
            None => Nanos(length.0 / 6).min(scenario.warmup),
        };
        if let Some(interval) = self.interval {
            let interval = Nanos::from(interval);
            if interval == Nanos::ZERO || interval.0 % 100_000_000 != 0 {
                return Err(format!("--interval {interval} is not a multiple of 100ms; write e.g. 500ms"));
            }
            scenario.series_step = interval;
        }
        let mut from = Nanos::ZERO;
        for (at, stage) in scenario.callers.stages.iter().enumerate() {
            let to = from + stage.length;
            let start = from.max(scenario.warmup);
            if start < to {
                scenario.phases.push(ScenarioPhase { name: format!("stage {}", at + 1), from: start, to });
            }
            from = to;
        }
        Ok(Some(scenario))
    }

    fn is_given(&self) -> bool {
        let numbers = [self.slots, self.replicas, self.max_queue, self.retries, self.gates];
        let times = [self.duration, self.deadline, self.backoff, self.warmup, self.interval];
        numbers.iter().any(Option::is_some)
            || times.iter().any(Option::is_some)
            || self.service_time.is_some()
            || self.balance.is_some()
            || self.arrivals.is_some()
            || self.priorities.is_some()
            || self.load.is_some()
            || self.rate.is_some()
            || self.degrade
            || self.cancel_abandoned
            || self.honor_retry_after
            || !self.changes.is_empty()
    }

    fn set_upstream(&self, scenario: &mut Scenario) -> Result<(), String> {
        let upstream = &mut scenario.upstream;
        upstream.slots = self.slots.unwrap_or(upstream.slots);
        upstream.replicas = self.replicas.unwrap_or(upstream.replicas);
        upstream.balance = self.balance.map_or(upstream.balance, Into::into);
        upstream.continues_abandoned_work = !self.cancel_abandoned;
        if self.degrade {
            upstream.overflow = StationOverflow::Slow;
        } else if let Some(queue) = self.max_queue {
            upstream.overflow = StationOverflow::Reject { queue: queue as usize };
        }
        if let Some(service) = &self.service_time {
            if UnloadedLatency::of(service).p99 <= Nanos(1) {
                return Err("--service-time is 0, so the capacity is unlimited; write e.g. 1ms".to_owned());
            }
            upstream.service = service.clone();
            scenario.callers.deadline = default_deadline(service);
        }
        scenario.changes.clone_from(&self.changes);
        scenario.changes.sort_by_key(|change| change.at);
        match scenario.changes.iter().filter_map(|change| change.replica).find(|replica| *replica >= upstream.replicas)
        {
            Some(replica) => Err(format!(
                "--change names replica {replica} of {}, counted from 0; add --replicas",
                upstream.replicas
            )),
            None => Ok(()),
        }
    }

    fn set_callers(&self, scenario: &mut Scenario) -> Result<(), String> {
        let per_s = if self.rate.is_some() { 1.0 } else { scenario.upstream.per_s() };
        let load = self.rate.as_ref().or(self.load.as_ref());
        let constant = |load: f64| {
            let length = self.duration.map_or(Nanos::from_secs(60), Nanos::from);
            vec![LoadStage { from_per_s: load * per_s, to_per_s: load * per_s, length }]
        };
        let scaled = |stage: &LoadStage| LoadStage {
            from_per_s: stage.from_per_s * per_s,
            to_per_s: stage.to_per_s * per_s,
            length: stage.length,
        };
        let callers = &mut scenario.callers;
        callers.stages = match load {
            None => constant(2.0),
            Some(LoadShape::Constant(load)) => constant(*load),
            Some(LoadShape::Stages(_)) if self.duration.is_some() => {
                return Err("--duration cannot be used with stages, which have durations of their own".to_owned());
            }
            Some(LoadShape::Stages(stages)) => stages.iter().map(scaled).collect(),
        };
        callers.arrivals = self.arrivals.unwrap_or(callers.arrivals);
        callers.deadline = self.deadline.map_or(callers.deadline, Nanos::from);
        callers.priorities = self.priorities.map_or(callers.priorities, |weights| weights.0);
        let backoff = self.backoff.map_or(Nanos::from_millis(100), Nanos::from);
        let retries = self.retries.filter(|retries| *retries > 0);
        callers.retry = retries.map(|max_retries| RetryModel {
            max_retries,
            first_wait: backoff,
            honors_retry_after: self.honor_retry_after,
        });
        if callers.deadline == Nanos::ZERO {
            return Err("--deadline 0s leaves no time for a response; write e.g. 1s".to_owned());
        }
        let calls: f64 = callers.stages.iter().map(LoadStage::expected).sum();
        let length = scenario.length();
        if length < Nanos::SECOND {
            return Err(format!("the run of {length} is too short; write at least 1s"));
        }
        if calls > MAX_CALLS {
            return Err(format!(
                "{calls:.0} calls exceed the maximum of {MAX_CALLS:.0}; lower the load or the duration"
            ));
        }
        Ok(())
    }
}
