//! Evaluation of one load level, every second: it passes, fails, or needs more time.
//!
//! In the open loop an overload shows in the requests in the system long before it shows in response times: at 3% above
//! capacity it takes seven seconds until a request waits 200 ms. So a load passes only if the service has significantly
//! kept up with it, by less than the precision of the search, and fails as soon as it significantly has not.

use super::search::TrialResult;
use super::tracker::{CLEAR_LOG_ODDS, ObjectiveTracker};
use crate::recorder::Interval;
use crate::slo::SloCriterion;

/// Standard deviations that chance may add to the responses. More than for a normal distribution, because the deviation
/// is estimated from a few seconds.
const CHANCE_DEVIATIONS: f64 = 3.5;

/// Minimum number of seconds for an estimate of the variance from their differences.
const MIN_SECONDS_FOR_VARIANCE: u64 = 8;

/// Minimum confidence of a step at its end; below, it is inconclusive.
const MIN_CONFIDENCE: f64 = 0.9;

/// Evaluation of one load level, second by second.
#[derive(Clone, Debug)]
pub struct CapacityStep {
    length: StepLength,
    /// Intended starts per second; none in the closed loop, whose backlog cannot grow.
    offered_per_s: Option<f64>,
    precision: f64,
    trackers: Vec<ObjectiveTracker>,
    seconds: u64,
    /// Requests in the system at the start of the first second.
    initial_in_system: u64,
    in_system: u64,
    /// Sum of squares of the changes per second.
    squares: f64,
    ended: u64,
}

/// Minimum and maximum length of a step of a capacity search, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepLength {
    /// Minimum, in seconds.
    pub min_s: u64,
    /// Maximum, in seconds; then the evidence so far decides.
    pub max_s: u64,
}

/// Decision on a load level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepDecision {
    /// Reason of a failure; none if the load passes.
    pub failure: Option<StepFailure>,
    /// Confidence of the decision, in [0.5, 1).
    pub confidence: f64,
}

impl StepDecision {
    /// Outcome for the search: inconclusive below `MIN_CONFIDENCE`.
    pub fn end(&self) -> TrialResult {
        match self.failure {
            _ if self.confidence < MIN_CONFIDENCE => TrialResult::Inconclusive,
            Some(_) => TrialResult::Fails,
            None => TrialResult::Passes,
        }
    }
}

/// Reason why a load fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepFailure {
    /// The objective of this index is missed.
    Objective(usize),
    /// The backlog grows by this number of requests per second.
    Growing(f64),
}

impl CapacityStep {
    /// Step at an offered rate (none: a closed loop), with `initial_in_system` requests in the system at its start.
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

    /// Adds a second; returns the decision as soon as there is one. `thorough`: a pass needs the whole step.
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

    /// Decision by the evidence so far, with its confidence.
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

    /// Throughput of a load that passed with which the service has significantly kept up: arrivals that did not stay in
    /// the queue, less what chance may have added. A load 1% above capacity meets the objectives while the queue is
    /// short, and one with fewer arrivals than average was a lower load.
    pub fn sustained(&self, load: f64) -> f64 {
        let Some(rate) = self.offered_per_s else { return load };
        let kept_up = self.ended as f64 + self.backlog_growth().min(0.0) - CHANCE_DEVIATIONS * self.chance_deviation();
        load * (kept_up / (rate * self.seconds.max(1) as f64)).clamp(0.0, 1.0)
    }

    /// Objective that is nearest to failing, with its evidence.
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

    /// Standard deviation of random backlog growth: at most that of random arrivals, less where the seconds differ less
    /// (constant arrivals, constant service time).
    fn chance_deviation(&self) -> f64 {
        let random = (self.ended as f64 + self.in_system as f64).max(1.0);
        if self.seconds < MIN_SECONDS_FOR_VARIANCE {
            return random.sqrt();
        }
        let seconds = self.seconds as f64;
        let seen = (self.squares - self.backlog_growth().powi(2) / seconds) * seconds / (seconds - 1.0);
        seen.clamp(1.0, random).sqrt()
    }

    /// Evidence (log odds) that the service does not keep up, by at least a third of the precision.
    fn growth_evidence(&self) -> f64 {
        let Some(rate) = self.offered_per_s else { return f64::NEG_INFINITY };
        let allowed = rate * self.seconds as f64 * self.precision / 3.0;
        // Twice a normal distance approximates its log odds between 2 and 3.
        2.0 * ((self.backlog_growth() - allowed) / self.chance_deviation() - 1.0)
    }

    /// Evidence (log odds, below 0) against a load above capacity by the precision, which would have been seen.
    fn overload_evidence(&self) -> f64 {
        let Some(rate) = self.offered_per_s else { return f64::NEG_INFINITY };
        let expected = rate * self.seconds as f64 * self.precision;
        2.0 * (self.backlog_growth() - expected) / self.chance_deviation()
    }
}

/// Probability of log odds.
fn probability(odds: f64) -> f64 {
    1.0 / (1.0 + (-odds.abs()).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW_ERRORS: SloCriterion = SloCriterion::Ok { allowed: 0.01 };

    /// Five equal seconds of a closed loop: the first decision, and the second in which it was made.
    fn decided(ok: u64, failed: u64) -> (TrialResult, u64) {
        let length = StepLength { min_s: 3, max_s: 5 };
        let mut step = CapacityStep::new(&[FEW_ERRORS], None, 0.03, length, 0);
        let second = Interval { ok, failed, ..Interval::default() };
        let decision = (1..=5).find_map(|number| step.add(&second, false).map(|decision| (decision.end(), number)));
        decision.expect("a step ends")
    }

    #[test]
    fn a_step_of_few_requests_is_inconclusive_at_its_end() {
        assert_eq!(decided(2, 0), (TrialResult::Inconclusive, 5));
        assert_eq!(decided(1000, 0), (TrialResult::Passes, 3));
        assert_eq!(decided(700, 300), (TrialResult::Fails, 3));
    }
}
