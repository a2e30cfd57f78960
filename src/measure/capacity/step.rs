//! One load, second by second: does it hold, does it fail, or is more time needed to tell?
//!
//! In the open loop an overload shows in what is in the service long before it shows in response times: at 3 % above
//! capacity it takes seven seconds until anybody waits 200 ms. So a load holds only once the service has clearly kept up
//! with it, by less than the precision of the search; and it fails as soon as it clearly has not.

use super::search::End;
use super::tracker::{CLEAR, Tracker};
use crate::measure::recorder::Interval;
use crate::measure::slo::Demand;

/// How many standard deviations chance may add to what is answered. They are those of a few seconds, hence more than a
/// normal distribution would ask for.
const BY_CHANCE: f64 = 3.5;

/// From so many seconds on their own differences tell what chance does.
const TELLING: u64 = 8;

/// How sure a step has to be at its end.
const SURE: f64 = 0.9;

/// One load.
#[derive(Clone, Debug)]
pub struct Step {
    length: Length,
    /// Requests per second that were meant to start; none in the closed loop, which cannot run away.
    offered_per_s: Option<f64>,
    precision: f64,
    trackers: Vec<Tracker>,
    seconds: u64,
    /// Requests in the system when the first second began.
    before: u64,
    inside: u64,
    /// The squares of what each second added to them, summed up.
    squares: f64,
    ended: u64,
}

/// How long a step lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// Seconds that it lasts at least.
    pub least: u64,
    /// Seconds after which what there is decides.
    pub most: u64,
}

/// What came of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Why it fails, if it does.
    pub failing: Option<Failing>,
    /// How sure that is, in [0.5, 1).
    pub sure: f64,
}

impl Decision {
    /// As the search has it: what is not sure is unclear.
    pub fn end(&self) -> End {
        match self.failing {
            _ if self.sure < SURE => End::Unclear,
            Some(_) => End::Fails,
            None => End::Holds,
        }
    }
}

/// Why a load fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failing {
    /// The objective of this index does.
    Objective(usize),
    /// Requests come faster than they are answered: so many more per second.
    Growing(f64),
}

impl Step {
    /// A load of so many requests per second (none: a closed loop), of which `before` are in the system as it begins.
    pub fn new(demands: &[Demand], offered_per_s: Option<f64>, precision: f64, length: Length, before: u64) -> Self {
        let trackers = demands.iter().copied().map(Tracker::new).collect();
        Self { length, offered_per_s, precision, trackers, seconds: 0, before, inside: before, squares: 0.0, ended: 0 }
    }

    /// Takes a second in; a decision, as soon as there is one. `thorough`: not before the last second, if it holds.
    pub fn add(&mut self, second: &Interval, thorough: bool) -> Option<Decision> {
        self.trackers.iter_mut().for_each(|tracker| tracker.add(second));
        self.seconds += 1;
        self.ended += second.ok + second.failed;
        let was = std::mem::replace(&mut self.inside, second.in_flight + second.backlog);
        self.squares += (self.inside as f64 - was as f64).powi(2);
        if self.seconds >= self.length.most {
            return Some(self.decide());
        }
        if self.seconds < self.length.least {
            return None;
        }
        let growth = self.growth();
        if growth > CLEAR {
            return Some(Decision { failing: Some(Failing::Growing(self.growth_per_s())), sure: sure(growth) });
        }
        let worst = self.worst(0.0);
        if worst.1 > CLEAR {
            return Some(Decision { failing: Some(Failing::Objective(worst.0)), sure: sure(worst.1) });
        }
        let pessimistic = self.worst(self.grown().max(0.0)).1.max(self.doubt());
        (!thorough && pessimistic < -CLEAR).then(|| Decision { failing: None, sure: sure(pessimistic) })
    }

    /// What all that was seen says, however unclear.
    pub fn decide(&self) -> Decision {
        let (growth, worst) = (self.growth(), self.worst(0.0));
        if growth > 0.0 {
            return Decision { failing: Some(Failing::Growing(self.growth_per_s())), sure: sure(growth) };
        }
        match self.trackers.iter().position(|tracker| !tracker.keeps()) {
            Some(index) => Decision { failing: Some(Failing::Objective(index)), sure: sure(worst.1.max(0.0)) },
            None => Decision { failing: None, sure: sure(worst.1.max(self.doubt()).min(0.0)) },
        }
    }

    /// As much of a load that held as the service has surely kept up with: what came and did not stay in its queue, less
    /// what chance may have added. A load 1 % above capacity keeps its objectives for as long as the queue is short, and
    /// one at which fewer came than on average was less of a load.
    pub fn surely(&self, load: f64) -> f64 {
        let Some(rate) = self.offered_per_s else { return load };
        let kept_up = self.ended as f64 + self.grown().min(0.0) - BY_CHANCE * self.chance();
        load * (kept_up / (rate * self.seconds.max(1) as f64)).clamp(0.0, 1.0)
    }

    /// The objective that is nearest to failing, and how clear that is.
    fn worst(&self, more: f64) -> (usize, f64) {
        let all = self.trackers.iter().map(|tracker| tracker.evidence(more)).enumerate();
        all.fold((0, f64::NEG_INFINITY), |worst, this| if this.1 > worst.1 { this } else { worst })
    }

    fn grown(&self) -> f64 {
        self.inside as f64 - self.before as f64
    }

    fn growth_per_s(&self) -> f64 {
        self.grown() / self.seconds.max(1) as f64
    }

    /// The standard deviation of what grows by chance alone: at most that of random arrivals, less where the seconds
    /// differ less (constant arrivals, work of a fixed time).
    fn chance(&self) -> f64 {
        let random = (self.ended as f64 + self.inside as f64).max(1.0);
        if self.seconds < TELLING {
            return random.sqrt();
        }
        let seconds = self.seconds as f64;
        let seen = (self.squares - self.grown().powi(2) / seconds) * seconds / (seconds - 1.0);
        seen.clamp(1.0, random).sqrt()
    }

    /// How clear it is that the service does not keep up: by a third of the precision at least.
    fn growth(&self) -> f64 {
        let Some(rate) = self.offered_per_s else { return f64::NEG_INFINITY };
        let allowed = rate * self.seconds as f64 * self.precision / 3.0;
        // Twice a normal distance is near its log odds where it matters, from 2 to 3.
        2.0 * ((self.grown() - allowed) / self.chance() - 1.0)
    }

    /// How clear it is (below 0) that it would have been seen, had the load been above capacity by the precision.
    fn doubt(&self) -> f64 {
        let Some(rate) = self.offered_per_s else { return f64::NEG_INFINITY };
        let expected = rate * self.seconds as f64 * self.precision;
        2.0 * (self.grown() - expected) / self.chance()
    }
}

/// The probability that goes with log odds.
fn sure(odds: f64) -> f64 {
    1.0 / (1.0 + (-odds.abs()).exp())
}
