//! Has a service warmed up? Change points in what it did so far.
//!
//! A service that has just been started is slow for a while: caches are cold, code is compiled as it runs, pools grow. How
//! long cannot be known beforehand, and some never settle (Barrett et al.: "Virtual machine warmup blows hot and cold",
//! OOPSLA 2017). So throughput and median response time are watched stretch by stretch, and the service counts as steady
//! once neither has changed its level for a number of stretches.
//!
//! A change of level is looked for by binary segmentation: where the sum of squares falls most by splitting a segment in
//! two. The noise that it is held against comes from the differences of neighbours, which a slow drift does not
//! hide in, and a change of less than [`MIN_CHANGE_FRACTION`] counts as none.

/// A change of level by less than this share is none.
pub const MIN_CHANGE_FRACTION: f64 = 0.05;
/// Stretches without a change that make it steady.
pub const STEADY_INTERVALS: usize = 8;
/// The fewest stretches that a level lasts; a single odd one is no level.
const MIN_LEVEL_INTERVALS: usize = 2;

/// Watches a service warm up.
#[derive(Clone, Debug, Default)]
pub struct WarmUpDetector {
    rates: Vec<f64>,
    medians: Vec<f64>,
}

impl WarmUpDetector {
    /// Takes in the next stretch: answers per second, and their median response time in any unit; 0 without answers.
    pub fn add(&mut self, rate_per_s: f64, median: f64) {
        self.rates.push(rate_per_s);
        self.medians.push(median);
    }

    /// Whether it has settled. A service that answers nothing has not.
    pub fn is_steady(&self) -> bool {
        let level_since = last_change(&self.rates).max(last_change(&self.medians));
        let level = self.rates.get(level_since..).unwrap_or_default();
        level.len() >= STEADY_INTERVALS && level.iter().any(|rate| *rate > 0.0)
    }

    /// Stretches so far.
    pub fn len(&self) -> usize {
        self.rates.len()
    }

    /// Whether there is none yet.
    pub fn is_empty(&self) -> bool {
        self.rates.is_empty()
    }
}

/// Where the last level begins: the index of its first value; 0 if the level never changed.
pub fn last_change(values: &[f64]) -> usize {
    let noise = noise(values);
    let mut begin = 0;
    // The last level lies behind the last split of the last part; parts before it do not matter.
    while let Some(split) = values.get(begin..).and_then(|part| split(part, noise, values.len())) {
        begin += split;
    }
    begin
}

/// The standard deviation of a value about its level.
fn noise(values: &[f64]) -> f64 {
    let mut steps: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    steps.sort_by(f64::total_cmp);
    // For normal noise the median step is 0.6745 x sqrt 2 standard deviations.
    steps.get(steps.len() / 2).map_or(0.0, |step| step / 0.954)
}

/// Where the values are best taken for two levels, if they are two.
fn split(values: &[f64], noise: f64, of: usize) -> Option<usize> {
    let count = values.len();
    let total: f64 = values.iter().sum();
    let mut before = 0.0;
    let mut best: Option<(f64, usize, f64)> = None;
    for (at, value) in values.iter().enumerate() {
        if at >= MIN_LEVEL_INTERVALS && count - at >= MIN_LEVEL_INTERVALS {
            let (left, right) = (at as f64, (count - at) as f64);
            let change = (total - before) / right - before / left;
            // The square root of what the sum of squares falls by.
            let gain = change.abs() * (left * right / count as f64).sqrt();
            if best.is_none_or(|(most, ..)| gain > most) {
                best = Some((gain, at, change));
            }
        }
        before += value;
    }
    let (gain, at, change) = best?;
    let level = (total / count as f64).abs();
    // The greatest of n values of noise is about sqrt(2 ln n) deviations; the rest keeps chance out.
    let chance = noise * ((2.0 * (of as f64).ln()).sqrt() + 1.5);
    (change.abs() > MIN_CHANGE_FRACTION * level && gain > chance).then_some(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decide::dice::Dice;

    /// Values about levels, with noise of this share.
    fn levels(levels: &[(f64, usize)], noise: f64, seed: u64) -> Vec<f64> {
        let mut dice = Dice::new(seed, 0);
        let values = levels.iter().flat_map(|(level, count)| std::iter::repeat_n(*level, *count));
        // The sum of twelve is nearly normal, of variance 1.
        values.map(|level| level * (1.0 + noise * ((0..12).map(|_| dice.unit()).sum::<f64>() - 6.0))).collect()
    }

    fn steady_after(rates: &[f64]) -> Option<usize> {
        let mut warm_up = WarmUpDetector::default();
        rates.iter().position(|rate| {
            warm_up.add(*rate, 1.0 / rate);
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
        // Before the change nobody can know of it.
        assert_eq!(steady_after(&rates[..10]), Some(STEADY_INTERVALS - 1));
        let mut warm_up = WarmUpDetector::default();
        rates[..13].iter().for_each(|rate| warm_up.add(*rate, 1.0));
        assert!(!warm_up.is_steady(), "it has just changed");
        rates[13..20].iter().for_each(|rate| warm_up.add(*rate, 1.0));
        assert!(warm_up.is_steady(), "it has been the same for long enough");
    }

    #[test]
    fn a_response_time_that_changes_counts_as_well() {
        let mut warm_up = WarmUpDetector::default();
        (0..12).for_each(|i| warm_up.add(100.0, if i < 8 { 5.0 } else { 9.0 }));
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
            unit in 1e-3..1e3_f64,
        ) {
            let begin = last_change(&values);
            prop_assert!(begin == 0 || begin + MIN_LEVEL_INTERVALS <= values.len());
            let scaled: Vec<f64> = values.iter().map(|value| value * unit).collect();
            // Rounding may decide between two equally good splits, which are rare.
            prop_assert!(last_change(&scaled).abs_diff(begin) <= values.len());
        }
    }
}
