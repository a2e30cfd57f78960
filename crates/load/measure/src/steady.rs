//! Detection of the end of a warm-up by change points.
//!
//! A service that was just started is slow for some time: caches are cold, code is compiled, pools grow. The time is
//! unknown beforehand, and some services never settle (Barrett et al.: "Virtual machine warmup blows hot and cold",
//! OOPSLA 2017). So throughput and median response time are sampled, and a service is steady when neither has changed
//! its level for a number of samples.
//!
//! Changes of level are found by binary segmentation: where splitting a segment in two lowers the sum of squares most.
//! The noise is estimated from differences of neighbours, so that a drift does not hide in it; changes below
//! [`MIN_CHANGE_FRACTION`] are ignored.

/// Minimum relative change of level.
pub const MIN_CHANGE_FRACTION: f64 = 0.05;
/// Number of samples without a change of a steady service.
pub const STEADY_INTERVALS: usize = 8;
/// Minimum number of samples of a level; a single outlier is not a level.
const MIN_LEVEL_INTERVALS: usize = 2;

/// Detector of the end of a warm-up.
#[derive(Clone, Debug, Default)]
pub struct WarmUpDetector {
    rates: Vec<f64>,
    medians: Vec<f64>,
}

impl WarmUpDetector {
    /// Adds a sample: responses per second, and their median response time in any unit; `None` without responses, which
    /// is a level of its own.
    pub fn add(&mut self, rate_per_s: f64, median: Option<f64>) {
        self.rates.push(rate_per_s);
        self.medians.push(median.unwrap_or(0.0));
    }

    /// Whether the service is steady. One without responses is not.
    pub fn is_steady(&self) -> bool {
        let level_since = last_change(&self.rates).max(last_change(&self.medians));
        let level = self.rates.get(level_since..).unwrap_or_default();
        level.len() >= STEADY_INTERVALS && level.iter().any(|rate| *rate > 0.0)
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.rates.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.rates.is_empty()
    }
}

/// Index of the first value of the last level; 0 if the level never changed.
pub fn last_change(values: &[f64]) -> usize {
    let noise = noise(values);
    let mut begin = 0;
    // The last level begins at the last split of the last segment; earlier segments are irrelevant.
    while let Some(split) = values.get(begin..).and_then(|part| split(part, noise, values.len())) {
        begin += split;
    }
    begin
}

/// Standard deviation of values about their level.
fn noise(values: &[f64]) -> f64 {
    let mut steps: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    steps.sort_by(f64::total_cmp);
    // For normal noise the median step is 0.6745 x sqrt 2 standard deviations.
    steps.get(steps.len() / 2).map_or(0.0, |step| step / 0.954)
}

/// Best split of the values into two levels, if there is a significant one.
fn split(values: &[f64], noise: f64, of: usize) -> Option<usize> {
    let count = values.len();
    let total: f64 = values.iter().sum();
    let mut before = 0.0;
    let mut best: Option<(f64, usize, f64)> = None;
    for (at, value) in values.iter().enumerate() {
        if at >= MIN_LEVEL_INTERVALS && count - at >= MIN_LEVEL_INTERVALS {
            let (left, right) = (at as f64, (count - at) as f64);
            let change = (total - before) / right - before / left;
            // Square root of the decrease of the sum of squares.
            let gain = change.abs() * (left * right / count as f64).sqrt();
            if best.is_none_or(|(most, ..)| gain > most) {
                best = Some((gain, at, change));
            }
        }
        before += value;
    }
    let (gain, at, change) = best?;
    let level = (total / count as f64).abs();
    // The maximum of n values of noise is about sqrt(2 ln n) deviations; the rest is a safety margin.
    let chance = noise * ((2.0 * (of as f64).ln()).sqrt() + 1.5);
    (change.abs() > MIN_CHANGE_FRACTION * level && gain > chance).then_some(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use weir_base::rng::SeededRng;

    /// Values about levels, with relative noise.
    fn levels(levels: &[(f64, usize)], noise: f64, seed: u64) -> Vec<f64> {
        let mut rng = SeededRng::new(seed, 0);
        let values = levels.iter().flat_map(|(level, count)| std::iter::repeat_n(*level, *count));
        // The sum of twelve is nearly normal, of variance 1.
        values.map(|level| level * (1.0 + noise * ((0..12).map(|_| rng.unit()).sum::<f64>() - 6.0))).collect()
    }

    fn steady_after(rates: &[f64]) -> Option<usize> {
        let mut warm_up = WarmUpDetector::default();
        rates.iter().position(|rate| {
            warm_up.add(*rate, Some(1.0 / rate));
            warm_up.is_steady()
        })
    }

    #[test]
    fn what_never_changes_is_steady_at_once() {
        assert_eq!(steady_after(&[100.0; 20]), Some(STEADY_INTERVALS - 1));
    }

    #[test]
    fn a_service_that_becomes_faster_is_steady_when_it_has_become_so() {
        let rates = levels(&[(50.0, 10), (100.0, 30)], 0.02, 1);
        // Before the change it cannot be detected.
        assert_eq!(steady_after(&rates[..10]), Some(STEADY_INTERVALS - 1));
        let mut warm_up = WarmUpDetector::default();
        rates[..13].iter().for_each(|rate| warm_up.add(*rate, Some(1.0)));
        assert!(!warm_up.is_steady(), "it has just changed");
        rates[13..20].iter().for_each(|rate| warm_up.add(*rate, Some(1.0)));
        assert!(warm_up.is_steady(), "it has been the same for long enough");
    }

    #[test]
    fn a_response_time_that_changes_counts_as_well() {
        let mut warm_up = WarmUpDetector::default();
        (0..12).for_each(|i| warm_up.add(100.0, Some(if i < 8 { 5.0 } else { 9.0 })));
        assert!(!warm_up.is_steady());
    }

    #[test]
    fn what_drifts_or_answers_nothing_is_never_steady() {
        let drift: Vec<f64> = (0..40).map(|i| 100.0 * 1.1_f64.powi(i)).collect();
        assert_eq!(steady_after(&drift), None);
        assert_eq!(steady_after(&[0.0; 40]), None);
    }

    #[test]
    fn noise_is_seldom_taken_for_a_change() {
        let changed = (0..500).filter(|seed| last_change(&levels(&[(100.0, 24)], 0.1, *seed)) > 0).count();
        assert!(changed < 25, "{changed} of 500");
    }

    #[test]
    fn a_change_that_stands_out_of_the_noise_is_found_where_it_is() {
        let near = |seed: &u64| last_change(&levels(&[(70.0, 12), (100.0, 12)], 0.05, *seed)).abs_diff(12) <= 1;
        let found = (0..500).filter(near).count();
        assert!(found > 475, "{found} of 500");
    }

    proptest! {
        #[test]
        fn the_last_level_begins_within_the_values_and_does_not_depend_on_their_unit(
            values in prop::collection::vec(0.0..1e6_f64, 0..60),
            doublings in -20..20_i32,
        ) {
            let begin = last_change(&values);
            prop_assert!(begin == 0 || begin + MIN_LEVEL_INTERVALS <= values.len());
            // With powers of two all roundings are the same.
            let scaled: Vec<f64> = values.iter().map(|value| value * 2.0_f64.powi(doublings)).collect();
            prop_assert_eq!(last_change(&scaled), begin);
        }
    }
}
