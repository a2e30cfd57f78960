//! Rate of a log over time, as stages of a load.

use std::collections::VecDeque;

use weir_base::Nanos;
use weir_pace::schedule::LoadStage;

/// Number of requests in each interval of a log. Intervals become longer as the log does, so that memory is bounded.
#[derive(Clone, Debug)]
pub struct RateProfile {
    /// Length of an interval, in nanoseconds.
    interval_ns: i64,
    /// Number of the first interval since 1970.
    first: i64,
    counts: VecDeque<u64>,
    max_intervals: usize,
}

/// Default maximum number of intervals: seconds of more than two hours.
const MAX_INTERVALS: usize = 10_000;
const SECOND_NS: i64 = 1_000_000_000;

impl Default for RateProfile {
    fn default() -> Self {
        Self::with_intervals(MAX_INTERVALS)
    }
}

impl RateProfile {
    /// Profile of at most this many intervals, from a second on.
    pub fn with_intervals(max_intervals: usize) -> Self {
        Self { interval_ns: SECOND_NS, first: 0, counts: VecDeque::new(), max_intervals: max_intervals.max(1) }
    }

    /// Counts a request, in any order.
    pub fn add(&mut self, start_ns: i64) {
        let mut at = start_ns.div_euclid(self.interval_ns);
        if self.counts.is_empty() {
            (self.first, self.counts) = (at, VecDeque::from([0]));
        }
        let room = i64::try_from(self.max_intervals).unwrap_or(i64::MAX);
        loop {
            let last = self.first.saturating_add_unsigned(self.counts.len() as u64 - 1).max(at);
            if last.saturating_sub(self.first.min(at)) < room {
                break;
            }
            self.halve();
            at = start_ns.div_euclid(self.interval_ns);
        }
        while at < self.first {
            self.counts.push_front(0);
            self.first -= 1;
        }
        let index = usize::try_from(at - self.first).unwrap_or(0);
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
    }

    /// Joins each two neighbours.
    fn halve(&mut self) {
        let first = self.first.div_euclid(2);
        let mut joined = VecDeque::new();
        for (index, count) in (self.first..).zip(&self.counts) {
            let at = usize::try_from(index.div_euclid(2) - first).unwrap_or(0);
            if at >= joined.len() {
                joined.resize(at + 1, 0);
            }
            joined[at] += count;
        }
        (self.first, self.counts, self.interval_ns) = (first, joined, self.interval_ns.saturating_mul(2));
    }

    /// Number of requests.
    pub fn requests(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Length of an interval.
    pub fn interval(&self) -> Nanos {
        Nanos(self.interval_ns.unsigned_abs())
    }

    /// Stages with `scale` times as many requests, in a time that is divided by `speed`; empty without requests.
    pub fn stages(&self, scale: f64, speed: f64) -> Vec<LoadStage> {
        let length_s = self.interval().as_secs_f64() / speed;
        let mut stages: Vec<LoadStage> = Vec::new();
        let mut same = 0_u64;
        for count in &self.counts {
            let per_s = *count as f64 * scale / length_s;
            same = if stages.last().is_some_and(|last| last.from_per_s == per_s) { same + 1 } else { 1 };
            let length = Nanos::from_secs_f64(length_s * same as f64);
            if same > 1 {
                stages.pop();
            }
            stages.push(LoadStage { from_per_s: per_s, to_per_s: per_s, length });
        }
        stages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_profile_has_the_rate_of_each_second() {
        let mut profile = RateProfile::default();
        [1.1, 0.2, 0.3, 3.0].iter().for_each(|at: &f64| profile.add((at * 1e9) as i64));
        let stages: Vec<(f64, f64)> =
            profile.stages(3.0, 2.0).iter().map(|stage| (stage.to_per_s, stage.length.as_secs_f64())).collect();
        assert_eq!(stages, [(12.0, 0.5), (6.0, 0.5), (0.0, 0.5), (6.0, 0.5)]);
    }

    proptest! {
        /// Oracle: a count of all requests, and of those before each bound of an interval.
        #[test]
        fn stages_have_the_requests_of_their_time(
            starts in prop::collection::vec(0..200_000_i64, 1..60), max in 1..40_usize, scale in 0.1..9.0_f64
        ) {
            let mut profile = RateProfile::with_intervals(max);
            starts.iter().for_each(|ms| profile.add(ms * 1_000_000));
            prop_assert!(profile.counts.len() <= max);
            prop_assert_eq!(profile.requests(), starts.len() as u64);
            let mut at = profile.first * profile.interval_ns;
            for stage in profile.stages(scale, 1.0) {
                let end = at + i64::try_from(stage.length.0).expect("short");
                let within = starts.iter().filter(|ms| (at..end).contains(&(**ms * 1_000_000))).count();
                prop_assert!((stage.to_per_s * stage.length.as_secs_f64() / scale - within as f64).abs() < 1e-6);
                at = end;
            }
        }

        #[test]
        fn any_times_are_counted(starts in prop::collection::vec(any::<i64>(), 0..20)) {
            let mut profile = RateProfile::with_intervals(10);
            starts.iter().for_each(|start| profile.add(*start));
            prop_assert_eq!(profile.requests(), starts.len() as u64);
        }
    }
}
