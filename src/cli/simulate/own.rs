//! A world from a user's own figures.

use std::time::Duration;

use clap::Args;

use crate::decide::Nanos;
use crate::decide::delay::Delay;
use crate::decide::schedule::{Arrivals, LoadStage};
use crate::decide::station::StationOverflow;
use crate::decide::words;
use crate::simulate::Scenario;
use crate::simulate::scenario::{default_deadline, default_scenario};
use crate::simulate::world::{
    ChangeEffect, ReplicaBalance, RetryModel, ScenarioPhase, UnloadedLatency, UpstreamChange,
};

/// More calls than this take too long and too much memory.
const MAX_CALLS: f64 = 1e8;

#[derive(Debug, Default, Args)]
pub(super) struct CustomScenarioArgs {
    /// Calls that each replica works on at a time [default: 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000), help_heading = UPSTREAM)]
    slots: Option<u32>,
    /// How long one takes: 20ms, lognormal:200ms,p99=900ms and other delays of 'weir serve' [default: 100ms..600ms]
    #[arg(long, value_name = "DELAY", value_parser = Delay::read, help_heading = UPSTREAM)]
    service: Option<Delay>,
    /// Replicas of it [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = UPSTREAM)]
    replicas: Option<u32>,
    /// Which replica gets a call: the one with the fewest, or the next in turn [default: fewest]
    #[arg(long, value_name = "HOW", value_parser = balance, help_heading = UPSTREAM)]
    balance: Option<ReplicaBalance>,
    /// Calls that may wait at each replica; it refuses others [default: any number]
    #[arg(long, value_name = "N", conflicts_with = "degrades", help_heading = UPSTREAM)]
    queue: Option<u32>,
    /// It gets slower the more calls there are beyond its slots
    #[arg(long = "thrashes", help_heading = UPSTREAM)]
    degrades: bool,
    /// It stops working on calls that nobody waits for any more
    #[arg(long = "notices", help_heading = UPSTREAM)]
    cancels_abandoned: bool,
    /// What happens to it: "30s slots=25", "30s slower=2", "1m replica=0 slower=5"; repeatable
    #[arg(long = "change", value_name = "CHANGE", value_parser = change, help_heading = UPSTREAM)]
    changes: Vec<UpstreamChange>,

    /// What comes, as a multiple of what all slots can take: 2, or over time 0.5/30s,10/30s,0.5-2/1m [default: 2]
    #[arg(long, value_name = "LOAD", value_parser = LoadShape::read, help_heading = CALLERS)]
    load: Option<LoadShape>,
    /// What comes, in calls per second: 500, or over time 100/30s,500/30s
    #[arg(long, value_name = "RATE", value_parser = LoadShape::read, conflicts_with = "load", help_heading = CALLERS)]
    rate: Option<LoadShape>,
    /// For how long, where the load does not say [default: 1m]
    #[arg(long, value_name = "TIME", value_parser = words::time, help_heading = CALLERS)]
    duration: Option<Duration>,
    /// How calls are spread: poisson or constant [default: poisson]
    #[arg(long, value_name = "KIND", value_parser = words::arrivals, help_heading = CALLERS)]
    arrivals: Option<Arrivals>,
    /// For how long callers wait [default: four times as long as 99 % of calls take that nobody is in the way of]
    #[arg(long, value_name = "TIME", value_parser = words::time, help_heading = CALLERS)]
    deadline: Option<Duration>,
    /// The weights of low, normal, high and critical calls [default: 0,1,0,0]
    #[arg(long, value_name = "W,W,W,W", value_parser = PriorityWeights::read, help_heading = CALLERS)]
    priorities: Option<PriorityWeights>,
    /// How often those without an answer ask again, each after twice the wait of the time before [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=31), help_heading = CALLERS)]
    retries: Option<u32>,
    /// How long they wait before the first time, on average [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = words::time, requires = "retries", help_heading = CALLERS)]
    retry_wait: Option<Duration>,
    /// They wait for at least as long as a refusal says
    #[arg(long = "honor_retry_after", requires = "retries", help_heading = CALLERS)]
    honor_retry_after: bool,

    /// Gates, none of which knows of the others; callers choose at random [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = GATES)]
    gates: Option<u32>,
    /// This first stretch is not scored [default: a sixth of all, at most 10s]
    #[arg(long, value_name = "TIME", value_parser = words::time, help_heading = GATES)]
    warmup: Option<Duration>,
    /// The step of the series, in tenths of a second [default: 500ms]
    #[arg(long = "step", value_name = "TIME", value_parser = words::time, help_heading = GATES)]
    series_step: Option<Duration>,
}

const UPSTREAM: &str = "A world of your own: the upstream";
const CALLERS: &str = "A world of your own: its callers";
const GATES: &str = "A world of your own: gates and figures";

/// A number for the whole run, or stages.
#[derive(Clone, Debug)]
enum LoadShape {
    Constant(f64),
    Stages(Vec<LoadStage>),
}

impl LoadShape {
    fn read(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            return words::stages(text).map(Self::Stages);
        }
        let wrong = || format!("'{text}' is not a load; write a number, e.g. 2, or stages, e.g. 0.5/30s,10/30s");
        text.parse().ok().filter(|load: &f64| load.is_finite() && *load >= 0.0).map(Self::Constant).ok_or_else(wrong)
    }
}

#[derive(Clone, Copy, Debug)]
struct PriorityWeights([f64; 4]);

impl PriorityWeights {
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' are no weights of four priorities; write e.g. 2,5,2,1, from low to critical");
        let all: Result<Vec<f64>, _> = text.split(',').map(|weight| weight.trim().parse::<f64>()).collect();
        let all: [f64; 4] = all.map_err(|_| wrong())?.try_into().map_err(|_| wrong())?;
        let sum: f64 = all.iter().sum();
        if all.iter().all(|weight| *weight >= 0.0) && sum > 0.0 && sum.is_finite() {
            Ok(Self(all))
        } else {
            Err(wrong())
        }
    }
}

fn balance(text: &str) -> Result<ReplicaBalance, String> {
    match text {
        "fewest" => Ok(ReplicaBalance::LeastInFlight),
        "turns" => Ok(ReplicaBalance::RoundRobin),
        _ => Err(format!("'{text}' is no way to choose a replica; choose fewest or turns")),
    }
}

fn change(text: &str) -> Result<UpstreamChange, String> {
    let wrong = || format!("'{text}' is no change; write e.g. \"30s slots=25\" or \"30s replica=0 slower=2\"");
    let mut parts = text.split_whitespace();
    let at = Nanos::from(words::time(parts.next().ok_or_else(wrong)?).map_err(|_| wrong())?);
    let (mut replica, mut to) = (None, None);
    for part in parts {
        let (name, value) = part.split_once('=').ok_or_else(wrong)?;
        match name {
            "replica" => replica = Some(value.parse().map_err(|_| wrong())?),
            "slots" => {
                to = Some(ChangeEffect::Slots(value.parse().ok().filter(|n| *n <= 1_000_000).ok_or_else(wrong)?));
            }
            "slower" => {
                to = Some(ChangeEffect::Slowdown(
                    value.parse().ok().filter(|x| (0.001..=1e6).contains(x)).ok_or_else(wrong)?,
                ));
            }
            _ => return Err(wrong()),
        }
    }
    Ok(UpstreamChange { at, replica, effect: to.ok_or_else(wrong)? })
}

impl CustomScenarioArgs {
    /// None if nothing was given.
    pub(super) fn scenario(&self) -> Result<Option<Scenario>, String> {
        if !self.is_given() {
            return Ok(None);
        }
        let mut world = default_scenario();
        self.set_upstream(&mut world)?;
        self.set_callers(&mut world)?;
        let length = world.length();
        world.gates = self.gates.unwrap_or(world.gates);
        world.warmup = match self.warmup.map(Nanos::from) {
            Some(warmup) if warmup >= length => {
                return Err(format!("--warmup {warmup} is all of the {length} that it lasts; make it shorter"));
            }
            Some(warmup) => warmup,
            None => Nanos(length.0 / 6).min(world.warmup),
        };
        if let Some(step) = self.series_step {
            let step = Nanos::from(step);
            if step == Nanos::ZERO || step.0 % 100_000_000 != 0 {
                return Err(format!("--step {step} is not in whole tenths of a second; write e.g. 100ms or 500ms"));
            }
            world.series_step = step;
        }
        let mut from = Nanos::ZERO;
        for (at, stage) in world.callers.stages.iter().enumerate() {
            let to = from + stage.length;
            let begins = from.max(world.warmup);
            if begins < to {
                world.phases.push(ScenarioPhase { name: format!("stage {}", at + 1), from: begins, to });
            }
            from = to;
        }
        Ok(Some(world))
    }

    fn is_given(&self) -> bool {
        let numbers = [self.slots, self.replicas, self.queue, self.retries, self.gates];
        let times = [self.duration, self.deadline, self.retry_wait, self.warmup, self.series_step];
        numbers.iter().any(Option::is_some)
            || times.iter().any(Option::is_some)
            || self.service.is_some()
            || self.balance.is_some()
            || self.arrivals.is_some()
            || self.priorities.is_some()
            || self.load.is_some()
            || self.rate.is_some()
            || self.degrades
            || self.cancels_abandoned
            || self.honor_retry_after
            || !self.changes.is_empty()
    }

    fn set_upstream(&self, world: &mut Scenario) -> Result<(), String> {
        let upstream = &mut world.upstream;
        upstream.slots = self.slots.unwrap_or(upstream.slots);
        upstream.replicas = self.replicas.unwrap_or(upstream.replicas);
        upstream.balance = self.balance.unwrap_or(upstream.balance);
        upstream.continues_abandoned_work = !self.cancels_abandoned;
        if self.degrades {
            upstream.overflow = StationOverflow::Slow;
        } else if let Some(queue) = self.queue {
            upstream.overflow = StationOverflow::Reject { queue: queue as usize };
        }
        if let Some(service) = &self.service {
            if UnloadedLatency::of(service).p99 <= Nanos(1) {
                return Err("--service takes no time, so nothing can be too much; write e.g. 1ms".to_owned());
            }
            upstream.service = service.clone();
            world.callers.deadline = default_deadline(service);
        }
        world.changes.clone_from(&self.changes);
        world.changes.sort_by_key(|change| change.at);
        match world.changes.iter().filter_map(|change| change.replica).find(|replica| *replica >= upstream.replicas) {
            Some(replica) => Err(format!(
                "--change names replica {replica}, but there are {}, counted from 0; add --replicas",
                upstream.replicas
            )),
            None => Ok(()),
        }
    }

    fn set_callers(&self, world: &mut Scenario) -> Result<(), String> {
        let per_s = if self.rate.is_some() { 1.0 } else { world.upstream.per_s() };
        let load = self.rate.as_ref().or(self.load.as_ref());
        let even = |load: f64| {
            let length = self.duration.map_or(Nanos::from_secs(60), Nanos::from);
            vec![LoadStage { from_per_s: load * per_s, to_per_s: load * per_s, length }]
        };
        let scaled = |stage: &LoadStage| LoadStage {
            from_per_s: stage.from_per_s * per_s,
            to_per_s: stage.to_per_s * per_s,
            length: stage.length,
        };
        let callers = &mut world.callers;
        callers.stages = match load {
            None => even(2.0),
            Some(LoadShape::Constant(load)) => even(*load),
            Some(LoadShape::Stages(_)) if self.duration.is_some() => {
                return Err("--duration does not go with stages, which say how long they are".to_owned());
            }
            Some(LoadShape::Stages(stages)) => stages.iter().map(scaled).collect(),
        };
        callers.arrivals = self.arrivals.unwrap_or(callers.arrivals);
        callers.deadline = self.deadline.map_or(callers.deadline, Nanos::from);
        callers.priorities = self.priorities.map_or(callers.priorities, |weights| weights.0);
        let after = self.retry_wait.map_or(Nanos::from_millis(100), Nanos::from);
        let times = self.retries.filter(|times| *times > 0);
        callers.retry = times.map(|times| RetryModel {
            max_retries: times,
            first_wait: after,
            honors_retry_after: self.honor_retry_after,
        });
        if callers.deadline == Nanos::ZERO {
            return Err("--deadline 0s leaves no time for an answer; write e.g. 1s".to_owned());
        }
        let calls: f64 = callers.stages.iter().map(LoadStage::expected).sum();
        let length = world.length();
        if length < Nanos::SECOND {
            return Err(format!("{length} is too short to see anything; a second is the least"));
        }
        if calls > MAX_CALLS {
            return Err(format!(
                "{calls:.0} calls are more than {MAX_CALLS:.0}, the most; lower the load or its length"
            ));
        }
        Ok(())
    }
}
