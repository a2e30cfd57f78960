//! One load, second by second: does it hold, does it fail, or is more time needed to tell?
//!
//! In the open loop an overload shows in what is in the service long before it shows in response times: at 3% above
//! capacity it takes seven seconds until anybody waits 200 ms. So a load passes only once the service has clearly kept up
//! with it, by less than the precision of the search; and it fails as soon as it clearly has not.

use super::search::TrialResult;
use super::tracker::{CLEAR_LOG_ODDS, ObjectiveTracker};
use crate::measure::recorder::Interval;
use crate::measure::slo::SloCriterion;

/// How many standard deviations chance may add to what is answered. They are those of a few seconds, hence more than a
/// normal distribution would ask for.
const CHANCE_DEVIATIONS: f64 = 3.5;

/// From so many seconds on their own differences tell what chance does.
const MIN_SECONDS_FOR_VARIANCE: u64 = 8;

/// How sure a step has to be at its end.
const MIN_CONFIDENCE: f64 = 0.9;

/// One load.
#[derive(Clone, Debug)]
pub struct CapacityStep {
    length: StepLength,
    /// Requests per second that were meant to start; none in the closed loop, which cannot run away.
    offered_per_s: Option<f64>,
    precision: f64,
    trackers: Vec<ObjectiveTracker>,
    seconds: u64,
    /// Requests in the system when the first second began.
    initial_in_system: u64,
    in_system: u64,
    /// The squares of what each second added to them, summed up.
    squares: f64,
    ended: u64,
}

/// How long a step lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepLength {
    /// Seconds that it lasts at least.
    pub min_s: u64,
    /// Seconds after which what there is decides.
    pub max_s: u64,
}

/// What came of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepDecision {
    /// Why it fails, if it does.
    pub failure: Option<StepFailure>,
    /// How sure that is, in [0.5, 1).
    pub confidence: f64,
}

impl StepDecision {
    /// As the search has it: what is not sure is inconclusive.
    pub fn end(&self) -> TrialResult {
        match self.failure {
            _ if self.confidence < MIN_CONFIDENCE => TrialResult::Inconclusive,
            Some(_) => TrialResult::Fails,
            None => TrialResult::Passes,
        }
    }
}

/// Why a load fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepFailure {
    /// The objective of this index does.
    Objective(usize),
    /// Requests come faster than they are answered: so many more per second.
    Growing(f64),
}

impl CapacityStep {
    /// A load of so many requests per second (none: a closed loop), of which `before` are in the system as it begins.
    pub fn new(
        demands: &[SloCriterion],
        offered_per_s: Option<f64>,
        precision: f64,
        length: StepLength,
        initial_in_system: u64,
    ) -> Self {
        let trackers = demands.iter().copied().map(ObjectiveTracker::new).collect();
        Self {
            length,
            offered_per_s,
            precision,
            trackers,
            seconds: 0,
            initial_in_system,
            in_system: initial_in_system,
            squares: 0.0,
            ended: 0,
        }
    }

    /// Takes a second in; a decision, as soon as there is one. `thorough`: not before the last second, if it passes.
    pub fn add(&mut self, second: &Interval, thorough: bool) -> Option<StepDecision> {
        self.trackers.iter_mut().for_each(|tracker| tracker.add(second));
        self.seconds += 1;
        self.ended += second.ok + second.failed;
        let was = std::mem::replace(&mut self.in_system, second.in_flight + second.backlog);
        self.squares += (self.in_system as f64 - was as f64).powi(2);
        if self.seconds >= self.length.max_s {
            return Some(self.decide());
        }
        if self.seconds < self.length.min_s {
            return None;
        }
        let growth = self.growth_evidence();
        if growth > CLEAR_LOG_ODDS {
            return Some(StepDecision {
                failure: Some(StepFailure::Growing(self.growth_per_s())),
                confidence: probability(growth),
            });
        }
        let worst = self.worst(0.0);
        if worst.1 > CLEAR_LOG_ODDS {
            return Some(StepDecision {
                failure: Some(StepFailure::Objective(worst.0)),
                confidence: probability(worst.1),
            });
        }
        let pessimistic = self.worst(self.backlog_growth().max(0.0)).1.max(self.overload_evidence());
        (!thorough && pessimistic < -CLEAR_LOG_ODDS)
            .then(|| StepDecision { failure: None, confidence: probability(pessimistic) })
    }

    /// What all that was seen says, however inconclusive.
    pub fn decide(&self) -> StepDecision {
        let (growth, worst) = (self.growth_evidence(), self.worst(0.0));
        if growth > 0.0 {
            return StepDecision {
                failure: Some(StepFailure::Growing(self.growth_per_s())),
                confidence: probability(growth),
            };
        }
        match self.trackers.iter().position(|tracker| !tracker.is_met()) {
            Some(index) => {
                StepDecision { failure: Some(StepFailure::Objective(index)), confidence: probability(worst.1.max(0.0)) }
            }
            None => {
                StepDecision { failure: None, confidence: probability(worst.1.max(self.overload_evidence()).min(0.0)) }
            }
        }
    }

    /// As much of a load that held as the service has surely kept up with: what came and did not stay in its queue, less
    /// what chance may have added. A load 1% above capacity keeps its objectives for as long as the queue is short, and
    /// one at which fewer came than on average was less of a load.
    pub fn sustained(&self, load: f64) -> f64 {
        let Some(rate) = self.offered_per_s else { return load };
        let kept_up = self.ended as f64 + self.backlog_growth().min(0.0) - CHANCE_DEVIATIONS * self.chance_deviation();
        load * (kept_up / (rate * self.seconds.max(1) as f64)).clamp(0.0, 1.0)
    }

    /// The objective that is nearest to failing, and how clear that is.
    fn worst(&self, more: f64) -> (usize, f64) {
        let all = self.trackers.iter().map(|tracker| tracker.evidence(more)).enumerate();
        all.fold((0, f64::NEG_INFINITY), |worst, this| if this.1 > worst.1 { this } else { worst })
    }

    fn backlog_growth(&self) -> f64 {
        self.in_system as f64 - self.initial_in_system as f64
    }

    fn growth_per_s(&self) -> f64 {
        self.backlog_growth() / self.seconds.max(1) as f64
    }

    /// The standard deviation of what grows by chance alone: at most that of random arrivals, less where the seconds
    /// differ less (constant arrivals, work of a fixed time).
    fn chance_deviation(&self) -> f64 {
        let random = (self.ended as f64 + self.in_system as f64).max(1.0);
        if self.seconds < MIN_SECONDS_FOR_VARIANCE {
            return random.sqrt();
        }
        let seconds = self.seconds as f64;
        let seen = (self.squares - self.backlog_growth().powi(2) / seconds) * seconds / (seconds - 1.0);
        seen.clamp(1.0, random).sqrt()
    }

    /// How clear it is that the service does not keep up: by a third of the precision at least.
    fn growth_evidence(&self) -> f64 {
        let Some(rate) = self.offered_per_s else { return f64::NEG_INFINITY };
        let allowed = rate * self.seconds as f64 * self.precision / 3.0;
        // Twice a normal distance is near its log odds where it matters, from 2 to 3.
        2.0 * ((self.backlog_growth() - allowed) / self.chance_deviation() - 1.0)
    }

    /// How clear it is (below 0) that it would have been seen, had the load been above capacity by the precision.
    fn overload_evidence(&self) -> f64 {
        let Some(rate) = self.offered_per_s else { return f64::NEG_INFINITY };
        let expected = rate * self.seconds as f64 * self.precision;
        2.0 * (self.backlog_growth() - expected) / self.chance_deviation()
    }
}

/// The probability that goes with log odds.
fn probability(odds: f64) -> f64 {
    1.0 / (1.0 + (-odds.abs()).exp())
}
