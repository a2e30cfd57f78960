//! Intended start times of the arrivals of an open loop.
//!
//! A schedule is a pure function of (stages, arrival process, seed). Let L(t) be the expected number of arrivals by the
//! time t, the integral of the rate. Arrival k starts where L reaches k (`Constant`), or where it reaches the k-th
//! point of a Poisson process of rate 1 (`Poisson`): both are one inversion of L, so a ramp needs no code of its own,
//! and rounding never accumulates.
//!
//! ```text
//!   rate |      ____          L(t) |        /      arrivals sit where L(t)
//!        |  ___/    \              |     __/       crosses the marks 0, 1, 2, ...
//!        |_/_________\__ t         |__--_________ t
//! ```
//!
//! [`Schedule::sharded`] divides the arrivals: shard i of n has the arrivals i, i+n, i+2n, ... So any number of threads
//! and machines produces the same arrivals.

use serde::{Deserialize, Serialize};

use super::shard::Shard;
use crate::base::nanos::Nanos;
use crate::base::rng::SeededRng;

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

    /// Seconds until `count` arrivals are expected: the root of `within(s) = count`, in the form without cancellation
    /// for small slopes.
    fn when(&self, count: f64) -> f64 {
        let (rate, slope) = (self.from_per_s, self.slope());
        let root = (rate * rate + 2.0 * slope * count).max(0.0).sqrt();
        if rate + root == 0.0 { 0.0 } else { 2.0 * count / (rate + root) }
    }
}

/// Arrival process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Evenly spaced: one each 1/rate.
    #[default]
    Constant,
    /// Random and independent, as those of many users.
    Poisson,
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
            Arrivals::Poisson => rng.exponential(),
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
            Arrivals::Poisson => self.level += self.rng.exponential(),
        }
    }
}

impl Iterator for Schedule {
    type Item = ScheduledArrival;

    fn next(&mut self) -> Option<ScheduledArrival> {
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
                let arrival = ScheduledArrival { intended, number: self.number };
                self.next_number = self.next_number.saturating_add(self.step);
                self.step_to_next();
                return Some(arrival);
            }
            self.stage_level += stage.expected();
            self.stage_start += stage.length;
            self.stage += 1;
        }
    }
}

const SCHEDULE_SALT: u64 = 1;
const ARRIVAL_TOLERANCE: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn steady(rate: f64, seconds: u64) -> Vec<LoadStage> {
        vec![LoadStage { from_per_s: rate, to_per_s: rate, length: Nanos::from_secs(seconds) }]
    }

    #[test]
    fn a_constant_rate_is_even() {
        let all: Vec<ScheduledArrival> = Schedule::new(steady(5000.0, 2), Arrivals::Constant, 0).collect();
        assert_eq!(all.len(), 10_000);
        for (k, arrival) in all.iter().enumerate() {
            assert_eq!(arrival.intended, Nanos(k as u64 * 200_000));
            assert_eq!(arrival.number, k as u64);
        }
    }

    #[test]
    fn a_number_of_arrivals_is_expected_when_that_many_have_started() {
        let stages = vec![
            LoadStage { from_per_s: 0.0, to_per_s: 20.0, length: Nanos::from_secs(10) },
            LoadStage { from_per_s: 50.0, to_per_s: 50.0, length: Nanos::from_secs(4) },
        ];
        let schedule = Schedule::new(stages, Arrivals::Constant, 1);
        for (arrivals, at) in [(0, 0.0), (25, 5.0), (100, 10.0), (150, 11.0), (300, 14.0), (9_999, 14.0)] {
            assert!((schedule.time_of(arrivals).as_secs_f64() - at).abs() < 1e-6, "{arrivals}");
        }
    }

    #[test]
    fn a_ramp_from_nothing_follows_the_square_root() {
        let ramp = vec![LoadStage { from_per_s: 0.0, to_per_s: 100.0, length: Nanos::from_secs(10) }];
        let all: Vec<ScheduledArrival> = Schedule::new(ramp, Arrivals::Constant, 0).collect();
        assert_eq!(all.len(), 500);
        for arrival in &all {
            let expected = (arrival.number as f64 / 5.0).sqrt();
            assert!((arrival.intended.as_secs_f64() - expected).abs() < 1e-8);
        }
    }

    #[test]
    fn a_stage_without_arrivals_is_a_pause() {
        let mut stages = steady(10.0, 1);
        stages.extend(steady(0.0, 5));
        stages.extend(steady(10.0, 1));
        let times: Vec<f64> = Schedule::new(stages, Arrivals::Constant, 0).map(|a| a.intended.as_secs_f64()).collect();
        assert_eq!(times.len(), 20);
        assert!(times[9] < 1.0 && times[10] >= 6.0, "{times:?}");
    }

    #[test]
    fn poisson_arrivals_have_the_mean_and_the_spread_of_poisson() {
        let counts: Vec<f64> =
            (0..400).map(|seed| Schedule::new(steady(50.0, 2), Arrivals::Poisson, seed).count() as f64).collect();
        let mean = counts.iter().sum::<f64>() / 400.0;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / 399.0;
        assert!((mean - 100.0).abs() < 2.0, "{mean}");
        assert!((variance - 100.0).abs() < 25.0, "{variance}");
    }

    #[test]
    fn a_billion_arrivals_do_not_drift() {
        let mut late = Schedule::new(steady(1e6, 2000), Arrivals::Constant, 0);
        late.number = 1_000_000_000;
        late.next_number = late.number;
        late.level = late.number as f64;
        assert_eq!(late.next().map(|a| a.intended), Some(Nanos::from_secs(1000)));
    }

    fn stages() -> impl Strategy<Value = Vec<LoadStage>> {
        let stage = (0.0..300.0_f64, 0.0..300.0_f64, 1..3000_u64).prop_map(|(a, b, ms)| LoadStage {
            from_per_s: a,
            to_per_s: b,
            length: Nanos::from_millis(ms),
        });
        prop::collection::vec(stage, 1..5)
    }

    proptest! {
        #[test]
        fn all_shards_together_are_the_whole(stages in stages(), seed: u64, of in 1..9_u64, poisson: bool) {
            let kind = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
            let whole: Vec<ScheduledArrival> = Schedule::new(stages.clone(), kind, seed).collect();
            let mut dealt: Vec<ScheduledArrival> = (0..of)
                .flat_map(|i| Schedule::new(stages.clone(), kind, seed).sharded(Shard::WHOLE.split(i, of)))
                .collect();
            dealt.sort_by_key(|a| a.number);
            prop_assert_eq!(whole, dealt);
        }

        #[test]
        fn arrivals_never_go_back_nor_past_the_end(stages in stages(), seed: u64, poisson: bool) {
            let kind = if poisson { Arrivals::Poisson } else { Arrivals::Constant };
            let schedule = Schedule::new(stages, kind, seed);
            let end = schedule.length();
            let mut last = Nanos::ZERO;
            for arrival in schedule {
                prop_assert!(arrival.intended >= last && arrival.intended <= end);
                last = arrival.intended;
            }
        }

        /// The oracle: add up the rate in steps of 10 us and count the whole numbers passed.
        #[test]
        fn constant_arrivals_match_a_naive_integral(stages in stages()) {
            let times: Vec<f64> =
                Schedule::new(stages.clone(), Arrivals::Constant, 0).map(|a| a.intended.as_secs_f64()).collect();
            let (mut level, mut start, mut k) = (0.0, 0.0, 0_usize);
            for stage in &stages {
                let length = stage.length.as_secs_f64();
                let steps = (length / 1e-5).round() as usize;
                for i in 0..steps {
                    let middle = (i as f64 + 0.5) / steps as f64;
                    level += (stage.from_per_s + (stage.to_per_s - stage.from_per_s) * middle) * 1e-5;
                    while level >= k as f64 + 1e-3 {
                        let now = start + i as f64 * 1e-5;
                        let Some(at) = times.get(k) else { break };
                        // At a rate near 0, 0.001 of an arrival takes long.
                        let slack = 3e-5 + 2e-3 / (stage.from_per_s.min(stage.to_per_s) + 1e-3).max(0.02);
                        prop_assert!((at - now).abs() < slack, "arrival {k}: {at} against {now}");
                        k += 1;
                    }
                }
                start += length;
            }
            prop_assert!(times.len().abs_diff(k) <= 1, "{} against {k}", times.len());
        }
    }
}
