//! Intended start times of the arrivals of an open loop.
//!
//! A schedule is a pure function of (stages, arrival process, seed). Let L(t) be the expected number of arrivals by the
//! time t, the integral of the rate. Arrival k starts where L reaches k (`Constant`), or where it reaches the k-th
//! point of a random process of rate 1 (`Poisson`, `Gamma`, `Weibull`): all are one inversion of L, so a ramp needs no code of its
//! own, and rounding never accumulates.
//!
//! ```text
//!   rate |      ____          L(t) |        /      arrivals sit where L(t)
//!        |  ___/    \              |     __/       crosses the marks 0, 1, 2, ...
//!        |_/_________\__ t         |__--_________ t
//! ```
//!
//! [`Schedule::sharded`] divides the arrivals: shard i of n has the arrivals i, i+n, i+2n, ... So any number of threads
//! and machines produces the same arrivals.

mod weibull_shape;

use serde::{Deserialize, Serialize};

pub use self::weibull_shape::WeibullShape;
use crate::shard::Shard;
use weir_base::nanos::Nanos;
use weir_base::rng::SeededRng;

/// One arrival: a request and its intended start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledArrival {
    /// Intended start.
    pub intended: Nanos,
    /// Number in the whole load, from 0; selects the request of the source.
    pub number: u64,
}

/// Part of a load in which the rate changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadStage {
    /// Arrivals per second at the start, finite and >= 0.
    pub from_per_s: f64,
    /// Arrivals per second at the end, finite and >= 0.
    pub to_per_s: f64,
    /// Duration.
    pub length: Nanos,
}

impl LoadStage {
    /// Expected arrivals in the whole stage.
    pub fn expected(&self) -> f64 {
        self.within(self.length.as_secs_f64())
    }

    /// Expected arrivals in the first `s` seconds.
    fn within(&self, s: f64) -> f64 {
        s * (self.from_per_s + self.slope() * s / 2.0)
    }

    fn slope(&self) -> f64 {
        (self.to_per_s - self.from_per_s) / self.length.as_secs_f64()
    }

    /// Level at this time after the start of the stage.
    pub(super) fn level_at(&self, into: Nanos) -> f64 {
        if self.from_per_s == self.to_per_s {
            self.from_per_s
        } else {
            self.from_per_s + self.slope() * into.as_secs_f64()
        }
    }

    /// Seconds until `count` arrivals are expected: the root of `within(s) = count`, in the form without cancellation
    /// for small slopes.
    fn when(&self, count: f64) -> f64 {
        let (rate, slope) = (self.from_per_s, self.slope());
        let root = (rate * rate + 2.0 * slope * count).max(0.0).sqrt();
        if rate + root == 0.0 { 0.0 } else { 2.0 * count / (rate + root) }
    }
}

/// Arrival process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Evenly spaced: one each 1/rate.
    #[default]
    Constant,
    /// Random and independent, as those of many users.
    Poisson,
    /// Random gaps with a gamma distribution: in bursts, or more evenly than at random.
    Gamma(Burstiness),
    /// Random gaps with a Weibull distribution, likewise.
    Weibull(WeibullShape),
}

impl Arrivals {
    /// Gap to the next arrival of the process with rate 1; without random numbers if they are evenly spaced.
    fn gap(self, rng: &mut SeededRng) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Poisson => rng.exponential(),
            Self::Gamma(Burstiness(shape)) => rng.gamma(shape) / shape,
            Self::Weibull(shape) => shape.gap(rng.exponential()),
        }
    }
}

/// Shape of the gamma distribution of gaps, whose squared coefficient of variation is 1 / shape: below 1 arrivals come
/// in bursts, 1 is Poisson, and above it they are the more even the larger it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Burstiness(f64);

impl Burstiness {
    /// Smallest and largest value. Below, nearly all arrivals would be at once.
    const RANGE: std::ops::RangeInclusive<f64> = 0.01..=10_000.0;

    /// Burstiness of a shape.
    ///
    /// # Errors
    /// A shape out of its range.
    pub fn new(shape: f64) -> Result<Self, String> {
        match Self::RANGE.contains(&shape) {
            true => Ok(Self(shape)),
            false => Err(format!(
                "invalid burstiness {shape}; write a number from {} to {}",
                Self::RANGE.start(),
                Self::RANGE.end()
            )),
        }
    }

    /// Burstiness of gaps with this coefficient of variation: standard deviation by mean.
    ///
    /// # Errors
    /// A coefficient whose shape is out of its range.
    pub fn of_variation(cv: f64) -> Result<Self, String> {
        let shape = 1.0 / (cv * cv);
        Self::new(shape).map_err(|_| format!("invalid coefficient of variation {cv}; write a number from 0.01 to 10"))
    }

    /// Shape.
    pub fn shape(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Burstiness {
    type Error = String;

    fn try_from(shape: f64) -> Result<Self, String> {
        Self::new(shape)
    }
}

impl From<Burstiness> for f64 {
    fn from(burstiness: Burstiness) -> Self {
        burstiness.0
    }
}

/// Iterator over the arrivals of a shard, in order of time.
#[derive(Clone, Debug)]
pub struct Schedule {
    stages: Vec<LoadStage>,
    kind: Arrivals,
    rng: SeededRng,
    /// Number of shards: each `step`-th arrival is in this one.
    step: u64,
    /// Number of this shard's next arrival.
    next_number: u64,
    /// Number of the whole load's next arrival.
    number: u64,
    /// Value of L at arrival `number`.
    level: f64,
    stage: usize,
    stage_start: Nanos,
    stage_level: f64,
}

impl Schedule {
    /// All arrivals of a load.
    pub fn new(stages: Vec<LoadStage>, kind: Arrivals, seed: u64) -> Self {
        let mut rng = SeededRng::new(seed, SCHEDULE_SALT);
        let level = match kind {
            Arrivals::Constant => 0.0,
            Arrivals::Poisson | Arrivals::Gamma(_) | Arrivals::Weibull(_) => kind.gap(&mut rng),
        };
        Self {
            stages,
            kind,
            rng,
            step: 1,
            next_number: 0,
            number: 0,
            level,
            stage: 0,
            stage_start: Nanos::ZERO,
            stage_level: 0.0,
        }
    }

    /// One shard of the arrivals; to be called before the first `next`.
    pub fn sharded(mut self, part: Shard) -> Self {
        self.next_number = part.first();
        self.step = part.step();
        self
    }

    /// The same arrivals from the start with other stages; those that were taken stay taken. Arrivals keep their numbers
    /// and, where the stages are the same as before, their times.
    pub fn replace_stages(&mut self, stages: Vec<LoadStage>) {
        self.stages = stages;
        (self.stage, self.stage_start, self.stage_level) = (0, Nanos::ZERO, 0.0);
    }

    /// Next arrival, without taking it.
    pub fn peek(&mut self) -> Option<ScheduledArrival> {
        while self.number < self.next_number {
            self.step_to_next();
        }
        loop {
            let stage = self.stages.get(self.stage)?;
            let into = self.level - self.stage_level;
            // An arrival at the exact end of a stage belongs to the next one; at the end of the last it is left out.
            // The tolerance absorbs the rounding of rate x length, so 0.1/s over 30 s is 3 arrivals and not 4.
            if into < stage.expected() - ARRIVAL_TOLERANCE {
                let intended = self.stage_start + Nanos::from_secs_f64(stage.when(into));
                return Some(ScheduledArrival { intended, number: self.number });
            }
            self.stage_level += stage.expected();
            self.stage_start += stage.length;
            self.stage += 1;
        }
    }

    /// Stages of the load.
    pub fn stages(&self) -> &[LoadStage] {
        &self.stages
    }

    /// Number of the next arrival of this shard, at least.
    pub fn number(&self) -> u64 {
        self.number.max(self.next_number)
    }

    /// Takes the arrival that [`Self::peek`] has returned.
    pub fn advance(&mut self) {
        self.next_number = self.next_number.saturating_add(self.step);
        self.step_to_next();
    }

    /// Duration of all stages.
    pub fn length(&self) -> Nanos {
        self.stages.iter().fold(Nanos::ZERO, |sum, s| sum + s.length)
    }

    /// Expected arrivals of the whole load; exact for `Constant` but for rounding up.
    pub fn expected(&self) -> f64 {
        self.stages.iter().map(LoadStage::expected).sum()
    }

    /// Time at which this many arrivals of the whole load are expected; its end if there are fewer.
    pub fn time_of(&self, arrivals: u64) -> Nanos {
        let (mut left, mut begun) = (arrivals as f64, Nanos::ZERO);
        for stage in &self.stages {
            if left < stage.expected() {
                return begun + Nanos::from_secs_f64(stage.when(left));
            }
            left -= stage.expected();
            begun += stage.length;
        }
        begun
    }

    /// Highest rate of any stage, per second.
    pub fn peak_per_s(&self) -> f64 {
        self.stages.iter().map(|s| s.from_per_s.max(s.to_per_s)).fold(0.0, f64::max)
    }

    fn step_to_next(&mut self) {
        self.number += 1;
        match self.kind {
            // Not `level += 1.0`: exact up to 2^53 either way, but this says why.
            Arrivals::Constant => self.level = self.number as f64,
            Arrivals::Poisson | Arrivals::Gamma(_) | Arrivals::Weibull(_) => {
                self.level += self.kind.gap(&mut self.rng);
            }
        }
    }
}

impl Iterator for Schedule {
    type Item = ScheduledArrival;

    fn next(&mut self) -> Option<ScheduledArrival> {
        let arrival = self.peek()?;
        self.advance();
        Some(arrival)
    }
}

const SCHEDULE_SALT: u64 = 1;
const ARRIVAL_TOLERANCE: f64 = 1e-6;

#[cfg(test)]
mod tests;
