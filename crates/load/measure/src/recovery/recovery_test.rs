//! Phases of a test of recovery, and its verdict.
//!
//! ```text
//!            baseline   trigger    observation      rest        return
//!   load  ______________|^^^^^^^|__________________            ___________
//!                                 back? then end   \__________/  back?
//! ```
//!
//! Seconds go in, and what the load does next comes out. The test ends with the first period that is as the baseline.

use serde::Serialize;

use super::baseline_bounds::{BaselineBounds, allowed_outliers, median, totals};
use super::recovery_second::RecoverySecond;

/// Factor by which the observation is longer while a queue drains.
const DRAIN_FACTOR: usize = 4;
/// Fraction of its former value that the median time has to fall below for a queue to drain.
const DRAIN_DECREASE: f64 = 0.95;
/// Factor by which the rest may be longer than the observation: what has piled up in that takes as long again.
const REST_FACTOR: usize = 2;
/// Seconds of the rest in a row in which the service responds as before, after which the load comes back.
const CALM_SECONDS: usize = 3;

/// Phase of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryPhase {
    /// The load, not judged: connections are made, caches fill.
    WarmUp,
    /// The load before the trigger.
    Baseline,
    /// The disturbance.
    Trigger,
    /// The load as before.
    Observation,
    /// A small fraction of the load.
    Rest,
    /// The load as before, once more.
    Return,
}

/// Length of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerLength {
    /// A number of seconds.
    Seconds(usize),
    /// Until [`RecoveryTest::end_trigger`], or at most a number of seconds.
    UntilEnded {
        /// Maximum, after which the test ends without a verdict.
        max_s: usize,
    },
}

/// Lengths of the phases, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryRules {
    /// Warm-up.
    pub warmup_s: usize,
    /// Baseline; at least 3.
    pub baseline_s: usize,
    /// Trigger.
    pub trigger: TriggerLength,
    /// Length of a period as the baseline that is a recovery; at least 3.
    pub stable_s: usize,
    /// Maximum length of the observation and of the return; four times that while a queue drains, and twice that for the
    /// rest.
    pub observe_s: usize,
}

/// Next action of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryAction {
    /// It goes on.
    Continue,
    /// The trigger begins.
    Trigger,
    /// It is taken away but for a few calls that show how the service is.
    Rest,
    /// It comes back.
    Resume,
    /// The test ends.
    End,
}

/// Verdict on a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RecoveryVerdict {
    /// It came back by itself.
    Recovered,
    /// The trigger did not disturb it.
    Undisturbed,
    /// It serves the load, but slower than before, or with more failures.
    Degraded,
    /// It serves less of the same load than before, and did not come back.
    Metastable,
    /// There is no verdict.
    Inconclusive,
}

/// Behaviour of the service when the load was taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RestFinding {
    /// Length of the rest, in seconds.
    pub duration_s: usize,
    /// Whether it was as before when the load had come back.
    pub recovered: bool,
    /// Seconds from the return of the load until it was as before; none if it was not.
    pub recovery_s: Option<usize>,
}

/// Verdict with its reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoveryFinding {
    /// Verdict.
    pub verdict: RecoveryVerdict,
    /// Seconds from the end of the trigger to the first period as before; none without one.
    pub recovery_s: Option<usize>,
    /// Finding without load; none if the load was not taken away.
    pub rest: Option<RestFinding>,
    /// Reason as a sentence without a full stop.
    pub reason: String,
}

/// Test of a service, second by second.
#[derive(Clone, Debug)]
pub struct RecoveryTest {
    rules: RecoveryRules,
    phase: RecoveryPhase,
    /// Seconds so far, and the first one of each phase.
    seconds: Vec<RecoverySecond>,
    starts: Vec<(RecoveryPhase, usize)>,
    bounds: Option<BaselineBounds>,
    has_trigger_ended: bool,
    finding: Option<RecoveryFinding>,
}

impl RecoveryTest {
    /// Test before its first second.
    pub fn new(rules: RecoveryRules) -> Self {
        let phase = if rules.warmup_s == 0 { RecoveryPhase::Baseline } else { RecoveryPhase::WarmUp };
        Self {
            rules,
            phase,
            seconds: Vec::new(),
            starts: vec![(phase, 0)],
            bounds: None,
            has_trigger_ended: false,
            finding: None,
        }
    }

    /// Takes note that a trigger without a fixed length has ended.
    pub fn end_trigger(&mut self) {
        self.has_trigger_ended = true;
    }

    /// Adds a second; returns what the load does next.
    pub fn add(&mut self, second: RecoverySecond) -> RecoveryAction {
        if self.finding.is_some() {
            return RecoveryAction::End;
        }
        self.seconds.push(second);
        let length = self.seconds_of(self.phase).len();
        match self.phase {
            RecoveryPhase::WarmUp if length >= self.rules.warmup_s => {
                self.enter(RecoveryPhase::Baseline, RecoveryAction::Continue)
            }
            RecoveryPhase::Baseline if length >= self.rules.baseline_s => {
                match BaselineBounds::of(self.seconds_of(RecoveryPhase::Baseline)) {
                    Ok(bounds) => {
                        self.bounds = Some(bounds);
                        self.enter(RecoveryPhase::Trigger, RecoveryAction::Trigger)
                    }
                    Err(why) => self.end(RecoveryVerdict::Inconclusive, None, None, why),
                }
            }
            RecoveryPhase::Trigger => self.trigger(length),
            RecoveryPhase::Observation => self.observe(length),
            RecoveryPhase::Rest => self.rest(length),
            RecoveryPhase::Return => self.judge_return(length),
            RecoveryPhase::WarmUp | RecoveryPhase::Baseline => RecoveryAction::Continue,
        }
    }

    fn trigger(&mut self, length: usize) -> RecoveryAction {
        let is_over = match self.rules.trigger {
            TriggerLength::Seconds(seconds) => length >= seconds,
            TriggerLength::UntilEnded { max_s } if length >= max_s && !self.has_trigger_ended => {
                let why = format!("the trigger did not end within {max_s} s");
                return self.end(RecoveryVerdict::Inconclusive, None, None, why);
            }
            TriggerLength::UntilEnded { .. } => self.has_trigger_ended,
        };
        if is_over {
            self.enter(RecoveryPhase::Observation, RecoveryAction::Continue)
        } else {
            RecoveryAction::Continue
        }
    }

    fn observe(&mut self, length: usize) -> RecoveryAction {
        let Some(bounds) = self.bounds else { return RecoveryAction::Continue };
        let observed = self.seconds_of(RecoveryPhase::Observation);
        if let Some(from) = self.stable_from(observed) {
            let after = self.seconds.len() - observed.len() + from;
            let disturbed = self.seconds.get(self.start_of(RecoveryPhase::Trigger)..after).unwrap_or_default();
            let is_disturbed = bounds.outliers(disturbed) > allowed_outliers(disturbed.len());
            let verdict = if is_disturbed { RecoveryVerdict::Recovered } else { RecoveryVerdict::Undisturbed };
            let why = match verdict {
                RecoveryVerdict::Undisturbed => "calls were as good and as fast as before; try a larger one".to_owned(),
                _ => format!("as before the trigger for {} s", self.rules.stable_s),
            };
            return self.end(verdict, Some(from), None, why);
        }
        let limit = self.rules.observe_s.max(self.rules.stable_s);
        // A period that has begun is not cut off.
        let goes_on = self.is_draining(observed, &bounds) || observed.last().is_some_and(|last| bounds.is_normal(last));
        let is_over = length >= limit && !(length < DRAIN_FACTOR * limit && goes_on);
        if is_over { self.enter(RecoveryPhase::Rest, RecoveryAction::Rest) } else { RecoveryAction::Continue }
    }

    fn rest(&mut self, length: usize) -> RecoveryAction {
        let Some(bounds) = self.bounds else { return RecoveryAction::Continue };
        // Calls of the load that was taken away end in its first second.
        let rested = self.seconds_of(RecoveryPhase::Rest).get(1..).unwrap_or_default();
        let calm = rested.iter().rev().take_while(|second| bounds.is_normal(second));
        let (seconds, good) = calm.fold((0, 0), |(seconds, good), second| (seconds + 1, good + second.good));
        if seconds >= CALM_SECONDS && good > 0 {
            return self.enter(RecoveryPhase::Return, RecoveryAction::Resume);
        }
        if length >= REST_FACTOR * self.rules.observe_s.max(CALM_SECONDS) {
            return self.end_unrecovered(Some(RestFinding { duration_s: length, recovered: false, recovery_s: None }));
        }
        RecoveryAction::Continue
    }

    fn judge_return(&mut self, length: usize) -> RecoveryAction {
        let duration_s = self.seconds_of(RecoveryPhase::Rest).len();
        // The load comes back within its first second.
        let returned = self.seconds_of(RecoveryPhase::Return).get(1..).unwrap_or_default();
        let recovery_s = self.stable_from(returned);
        if recovery_s.is_some() || length > self.rules.observe_s.max(self.rules.stable_s) {
            let recovered = recovery_s.is_some();
            return self.end_unrecovered(Some(RestFinding { duration_s, recovered, recovery_s }));
        }
        RecoveryAction::Continue
    }

    /// First second of a period as the baseline.
    fn stable_from(&self, seconds: &[RecoverySecond]) -> Option<usize> {
        let bounds = self.bounds?;
        seconds.windows(self.rules.stable_s.max(1)).position(|period| bounds.is_stable(period))
    }

    /// Whether the last period served the load, and ever faster.
    fn is_draining(&self, observed: &[RecoverySecond], bounds: &BaselineBounds) -> bool {
        let tail = self.tail(observed);
        let medians: Vec<f64> = tail.iter().filter_map(|second| second.quantile_ms(0.5)).collect();
        let half = medians.len() / 2;
        let (before, after) = (median(medians.iter().take(half)), median(medians.iter().rev().take(half)));
        half > 0 && bounds.serves(tail) && after < DRAIN_DECREASE * before
    }

    fn tail<'s>(&self, seconds: &'s [RecoverySecond]) -> &'s [RecoverySecond] {
        seconds.get(seconds.len().saturating_sub(self.rules.stable_s)..).unwrap_or_default()
    }

    /// Ends the test of a service that has not come back by itself.
    fn end_unrecovered(&mut self, rest: Option<RestFinding>) -> RecoveryAction {
        let tail = self.tail(self.seconds_of(RecoveryPhase::Observation));
        let serves = self.bounds.is_none_or(|bounds| bounds.serves(tail));
        let (good, failed) = totals(tail);
        let length = tail.len().max(1) as f64;
        let offered: f64 = tail.iter().map(|second| second.offered_per_s).sum();
        let requests: u64 = tail.iter().map(|second| second.requests).sum();
        let per_call = requests as f64 / (good + failed).max(1.0);
        let (verdict, why) = if serves {
            let medians: Vec<f64> = tail.iter().filter_map(|second| second.quantile_ms(0.5)).collect();
            let before = self.seconds_of(RecoveryPhase::Baseline).iter().filter_map(|second| second.quantile_ms(0.5));
            let before: Vec<f64> = before.collect();
            let why = format!(
                "all of the load is served, with a median of {:.0} ms, {:.0} ms before; {:.1}% fail",
                median(medians.iter()),
                median(before.iter()),
                failed / (good + failed).max(1.0) * 100.0
            );
            (RecoveryVerdict::Degraded, why)
        } else {
            let why = format!(
                "{:.1} of {:.0} calls per second succeeded in the last {} s, with {per_call:.1} requests per call",
                good / length,
                offered / length,
                tail.len()
            );
            (RecoveryVerdict::Metastable, why)
        };
        self.end(verdict, None, rest, why)
    }

    fn enter(&mut self, phase: RecoveryPhase, action: RecoveryAction) -> RecoveryAction {
        self.phase = phase;
        self.starts.push((phase, self.seconds.len()));
        action
    }

    fn end(
        &mut self,
        verdict: RecoveryVerdict,
        recovery_s: Option<usize>,
        rest: Option<RestFinding>,
        reason: String,
    ) -> RecoveryAction {
        self.finding = Some(RecoveryFinding { verdict, recovery_s, rest, reason });
        RecoveryAction::End
    }

    /// Phase of the next second.
    pub fn phase(&self) -> RecoveryPhase {
        self.phase
    }

    /// Bounds of the baseline; none before its end.
    pub fn bounds(&self) -> Option<&BaselineBounds> {
        self.bounds.as_ref()
    }

    /// All seconds so far.
    pub fn seconds(&self) -> &[RecoverySecond] {
        &self.seconds
    }

    /// Phases so far, in order, each with the index of its first second.
    pub fn starts(&self) -> &[(RecoveryPhase, usize)] {
        &self.starts
    }

    fn start_of(&self, phase: RecoveryPhase) -> usize {
        self.starts.iter().find(|(known, _)| *known == phase).map_or(self.seconds.len(), |(_, from)| *from)
    }

    /// Seconds of a phase.
    pub fn seconds_of(&self, phase: RecoveryPhase) -> &[RecoverySecond] {
        let mut starts = self.starts.iter().skip_while(|(known, _)| *known != phase);
        let Some((_, from)) = starts.next() else { return &[] };
        let until = starts.next().map_or(self.seconds.len(), |(_, next)| *next);
        self.seconds.get(*from..until).unwrap_or_default()
    }

    /// Verdict; of a test that was cut off, for this reason, there is none but one that was reached before.
    pub fn finding(&self, cut_off: &str) -> RecoveryFinding {
        let none = || RecoveryFinding {
            verdict: RecoveryVerdict::Inconclusive,
            recovery_s: None,
            rest: None,
            reason: cut_off.to_owned(),
        };
        self.finding.clone().unwrap_or_else(none)
    }
}
