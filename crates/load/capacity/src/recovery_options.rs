//! Options of a test of recovery: load, trigger, clients, lengths.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use weir_base::{Nanos, units};
use weir_measure::recovery::{RecoveryRules, TriggerLength};
use weir_measure::slo::{Slo, SloCriterion};
use weir_pace::schedule::LoadStage;

/// Test of a service's recovery, after the search or in place of it.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoveryOptions {
    /// Load before and after the trigger.
    pub load: RecoveryLoad,
    /// Disturbance.
    pub trigger: RecoveryTrigger,
    /// Maximum retries of a call.
    pub retries: u64,
    /// Time after which a client gives a request up.
    pub timeout: Duration,
    /// Maximum time for which the service is observed after the trigger.
    pub observe: Duration,
}

/// Load of a test of recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecoveryLoad {
    /// Fraction of the capacity that the search finds.
    Fraction(f64),
    /// Calls per second; there is no search.
    PerSecond(f64),
}

/// Disturbance of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveryTrigger {
    /// The load times a factor, in hundredths, for a time.
    Spike(u32, Duration),
    /// No call for a time; then all that were due in it come at once.
    Pause(Duration),
    /// A command of the shell, until it ends.
    Command(String),
}

/// Length of the periods that are compared, as a fraction of the observation.
const STABLE_DIVISOR: u64 = 3;
const STABLE_RANGE_S: (u64, u64) = (3, 60);
/// Maximum time of a command.
const MAX_COMMAND_S: usize = 600;
/// Time within which what was due in a pause comes.
const BURST: Nanos = Nanos::from_millis(100);
/// Factor of the longest time of the objectives after which clients give up, and the least time.
const TIMEOUT_FACTOR: u32 = 5;
const MIN_TIMEOUT: Duration = Duration::from_secs(1);
/// Lowest load, in calls per second: a second of fewer shows too little.
const MIN_LOAD_PER_S: f64 = 5.0;
/// Highest load, as of a search.
const MAX_LOAD_PER_S: f64 = 1e6;
/// Observations that the rest of a test may take: of a queue that drains, at rest, and after the return.
const MAX_OBSERVATIONS: u64 = 8;

impl RecoveryOptions {
    /// Default time after which clients give up: five times the longest time of the objectives, at least a second.
    pub fn default_timeout(slos: &[Slo]) -> Duration {
        let limit = |slo: &Slo| match slo.criterion()? {
            SloCriterion::InTime { limit, .. } | SloCriterion::Mean { limit, .. } => Some(limit),
            _ => None,
        };
        let longest = slos.iter().filter_map(limit).max().unwrap_or_default();
        (longest.as_duration() * TIMEOUT_FACTOR).max(MIN_TIMEOUT)
    }

    /// Whether the load is given, so that there is no search.
    pub fn has_load(&self) -> bool {
        matches!(self.load, RecoveryLoad::PerSecond(_))
    }

    /// Calls per second, and what they are of the capacity that was found; none without a capacity of some calls.
    pub(crate) fn load_of(&self, capacity: Option<f64>) -> Option<(f64, Option<f64>)> {
        match self.load {
            RecoveryLoad::PerSecond(per_s) => Some((per_s, None)),
            RecoveryLoad::Fraction(fraction) => {
                let per_s = fraction * capacity?;
                (per_s >= MIN_LOAD_PER_S).then_some((per_s, Some(fraction)))
            }
        }
    }

    /// Lengths of the phases.
    pub(crate) fn rules(&self, warmup_s: u64) -> RecoveryRules {
        let seconds = |s: u64| usize::try_from(s).unwrap_or(usize::MAX);
        let stable_s = (self.observe.as_secs() / STABLE_DIVISOR).clamp(STABLE_RANGE_S.0, STABLE_RANGE_S.1);
        RecoveryRules {
            warmup_s: seconds(warmup_s),
            baseline_s: seconds(stable_s),
            trigger: match &self.trigger {
                RecoveryTrigger::Spike(_, length) => TriggerLength::Seconds(seconds(length.as_secs())),
                RecoveryTrigger::Pause(length) => TriggerLength::Seconds(seconds(length.as_secs() + 1)),
                RecoveryTrigger::Command(_) => TriggerLength::UntilEnded { max_s: MAX_COMMAND_S },
            },
            stable_s: seconds(stable_s),
            observe_s: seconds(self.observe.as_secs()),
        }
    }

    /// Load over time, as far as it is known before; the rest after the observation is a change of it.
    pub(crate) fn stages(&self, load: f64, rules: &RecoveryRules) -> Vec<LoadStage> {
        let level = |per_s: f64, length: Nanos| LoadStage { from_per_s: per_s, to_per_s: per_s, length };
        let before = Nanos::from_secs((rules.warmup_s + rules.baseline_s) as u64);
        let mut stages = vec![level(load, before)];
        match &self.trigger {
            RecoveryTrigger::Spike(hundredths, length) => {
                stages.push(level(load * f64::from(*hundredths) / 100.0, Nanos::from(*length)));
            }
            RecoveryTrigger::Pause(length) => {
                let missed = load * (length.as_secs_f64() + BURST.as_secs_f64());
                stages.push(level(0.0, Nanos::from(*length)));
                stages.push(level(missed / BURST.as_secs_f64(), BURST));
                stages.push(level(load, Nanos::SECOND - BURST));
            }
            RecoveryTrigger::Command(_) => {}
        }
        let longest = MAX_OBSERVATIONS * (rules.observe_s.max(rules.stable_s) as u64 + 1) + MAX_COMMAND_S as u64;
        stages.push(level(load, Nanos::from_secs(longest)));
        stages
    }

    /// Calls per second in a second of the trigger, by its number from 0.
    pub(crate) fn triggered_load(&self, load: f64, second: usize) -> f64 {
        match &self.trigger {
            RecoveryTrigger::Spike(hundredths, _) => load * f64::from(*hundredths) / 100.0,
            RecoveryTrigger::Pause(length) if (second as u64) < length.as_secs() => 0.0,
            RecoveryTrigger::Pause(length) => load * (length.as_secs_f64() + 1.0),
            RecoveryTrigger::Command(_) => load,
        }
    }

    /// Calls per second while the load is taken away: some, to see how the service is.
    pub(crate) fn rest_load(load: f64) -> f64 {
        (load / 20.0).clamp(1.0, 20.0)
    }

    /// Trigger in words, with the load.
    pub(crate) fn trigger_text(&self, load: f64) -> String {
        match &self.trigger {
            RecoveryTrigger::Spike(_, length) => {
                format!("a spike to {:.0}/s for {}", self.triggered_load(load, 0), Nanos::from(*length))
            }
            RecoveryTrigger::Pause(length) => {
                format!("a pause of {}, whose calls then came at once", Nanos::from(*length))
            }
            RecoveryTrigger::Command(command) => format!("the command '{command}'"),
        }
    }

    /// Longest time of a call in seconds, with all attempts and the waits between them.
    pub(crate) fn longest_call_s(&self) -> f64 {
        let waits = (0..self.retries.min(10)).map(|retry| 0.15 * 2_f64.powi(retry as i32)).sum::<f64>();
        (self.retries + 1) as f64 * self.timeout.as_secs_f64() + waits
    }

    /// Highest number of calls per second.
    pub(crate) fn peak_load(&self, load: f64) -> f64 {
        let last = match &self.trigger {
            RecoveryTrigger::Pause(length) => length.as_secs() as usize,
            RecoveryTrigger::Spike(..) | RecoveryTrigger::Command(_) => 0,
        };
        self.triggered_load(load, last).max(load)
    }
}

impl FromStr for RecoveryLoad {
    type Err = String;

    /// Parses `80%` of the capacity, or a rate such as `400` or `10k`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim_end().ends_with('%') {
            let fraction = units::fraction(text)?;
            return match fraction > 0.0 && fraction <= 2.0 {
                true => Ok(Self::Fraction(fraction)),
                false => Err(format!("invalid load '{text}'; write 1% to 200% of the capacity")),
            };
        }
        let per_s = units::rate(text)?;
        if !(MIN_LOAD_PER_S..=MAX_LOAD_PER_S).contains(&per_s) {
            return Err(format!(
                "invalid load '{text}'; write {MIN_LOAD_PER_S} to {MAX_LOAD_PER_S} per second, or e.g. 80%"
            ));
        }
        Ok(Self::PerSecond(per_s))
    }
}

impl FromStr for RecoveryTrigger {
    type Err = String;

    /// Parses `spike:3x,5s`, `pause:5s` or `command:COMMAND`.
    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = |why: &str| {
            format!("invalid trigger '{text}': {why}; write e.g. spike:3x,5s or pause:5s or command:./flush.sh")
        };
        let length = |text: &str| match units::seconds(text).map_err(|why| invalid(&why))? {
            length if (1..=600).contains(&length.as_secs()) => Ok(length),
            _ => Err(invalid("give 1s to 10m")),
        };
        match text.split_once(':') {
            Some(("spike", spike)) => {
                let (factor, time) = spike.split_once(',').ok_or_else(|| invalid("no time"))?;
                let factor = factor.strip_suffix('x').and_then(|factor| factor.parse::<f64>().ok());
                let factor = factor.filter(|factor| (1.1..=100.0).contains(factor));
                let factor = factor.ok_or_else(|| invalid("give a factor of 1.1x to 100x"))?;
                Ok(Self::Spike((factor * 100.0).round() as u32, length(time)?))
            }
            Some(("pause", time)) => Ok(Self::Pause(length(time)?)),
            Some(("command", command)) if command.trim().is_empty() => Err(invalid("no command")),
            Some(("command", command)) => Ok(Self::Command(command.to_owned())),
            _ => Err(invalid("no kind of trigger")),
        }
    }
}

impl fmt::Display for RecoveryTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spike(hundredths, length) => {
                write!(f, "spike:{}x,{}", f64::from(*hundredths) / 100.0, Nanos::from(*length))
            }
            Self::Pause(length) => write!(f, "pause:{}", Nanos::from(*length)),
            Self::Command(command) => write!(f, "command:{command}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(trigger: &str) -> RecoveryOptions {
        RecoveryOptions {
            load: RecoveryLoad::PerSecond(80.0),
            trigger: trigger.parse().unwrap(),
            retries: 2,
            timeout: Duration::from_secs(1),
            observe: Duration::from_secs(30),
        }
    }

    #[test]
    fn triggers_and_loads_are_read_as_they_are_written() {
        for text in ["spike:3x,5s", "spike:1.5x,1m", "pause:2s", "command:kill -STOP 7; sleep 3; kill -CONT 7"] {
            let trigger: RecoveryTrigger = text.parse().unwrap();
            assert_eq!(trigger.to_string().parse(), Ok(trigger), "{text}");
        }
        for text in ["spike", "spike:3x", "spike:1x,5s", "spike:3,5s", "pause:0s", "pause:1h", "command: ", "stall:5s"]
        {
            let why = text.parse::<RecoveryTrigger>().unwrap_err();
            assert!(why.starts_with("invalid trigger '") && why.contains("write e.g. spike:3x,5s"), "{why}");
        }
        assert_eq!("80%".parse(), Ok(RecoveryLoad::Fraction(0.8)));
        assert_eq!("1.2k".parse(), Ok(RecoveryLoad::PerSecond(1200.0)));
        for text in ["0%", "300%", "4", "many"] {
            assert!(text.parse::<RecoveryLoad>().is_err(), "{text}");
        }
    }

    #[test]
    fn stages_offer_what_the_test_counts_on() {
        for trigger in ["spike:3x,5s", "pause:4s", "command:true"] {
            let options = options(trigger);
            let rules = options.rules(1);
            let stages = options.stages(80.0, &rules);
            let begun = rules.warmup_s + rules.baseline_s;
            let TriggerLength::Seconds(length) = rules.trigger else {
                assert_eq!(stages.len(), 2);
                continue;
            };
            let of_trigger = &stages[1..stages.len() - 1];
            let seconds: f64 = of_trigger.iter().map(|stage| stage.length.as_secs_f64()).sum();
            assert!((seconds - length as f64).abs() < 1e-9, "{trigger}: {seconds}");
            assert_eq!(stages[0].length, Nanos::from_secs(begun as u64));
            let offered: f64 = of_trigger.iter().map(LoadStage::expected).sum();
            let counted: f64 = (0..length).map(|second| options.triggered_load(80.0, second)).sum();
            assert!((offered - counted).abs() < 1e-6, "{trigger}: {offered} {counted}");
        }
    }

    #[test]
    fn clients_are_more_patient_than_the_objectives() {
        let timeout = |slos: &[&str]| {
            let slos: Vec<Slo> = slos.iter().map(|text| text.parse().unwrap()).collect();
            RecoveryOptions::default_timeout(&slos).as_millis()
        };
        assert_eq!([timeout(&[]), timeout(&["errors<1%"]), timeout(&["p99<100ms"])], [1000, 1000, 1000]);
        assert_eq!(timeout(&["p99<2s", "mean<500ms"]), 10_000);
    }
}
