//! Times of an interval with their numbers, in a fraction of a histogram's memory.

use weir_decide::Nanos;
use weir_measure::Histogram;

/// Times with their numbers, in ascending order; those of one bucket of the histogram are one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TimeCounts {
    counts: Vec<(Nanos, u64)>,
    count: u64,
    sum_ns: f64,
}

impl TimeCounts {
    /// Times of a histogram.
    pub(crate) fn of(histogram: &Histogram) -> Self {
        let count = histogram.count();
        Self { counts: histogram.recorded().collect(), count, sum_ns: histogram.mean_ns() * count as f64 }
    }

    /// Number of times.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the times, in seconds.
    pub(crate) fn sum_s(&self) -> f64 {
        self.sum_ns / 1e9
    }

    /// Mean, in milliseconds; 0 without any.
    pub(crate) fn mean_ms(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns / self.count as f64 / 1e6 }
    }

    /// Maximum; 0 without any.
    pub(crate) fn max(&self) -> Nanos {
        self.counts.last().map_or(Nanos::ZERO, |(time, _)| *time)
    }

    /// Smallest time that at least the fraction `q` of times does not exceed; 0 without any.
    pub(crate) fn quantile(&self, q: f64) -> Nanos {
        let rank = ((q * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.counts.iter().find(|(_, n)| {
            seen += n;
            seen >= rank
        });
        found.map_or(self.max(), |(time, _)| *time)
    }

    /// Times and their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.counts.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Oracle: the histogram.
        #[test]
        fn figures_are_those_of_the_histogram(times in prop::collection::vec(1..10_000_000_000_u64, 0..200), q in 0.0..1.0_f64) {
            let mut histogram = Histogram::coarse();
            times.iter().for_each(|time| histogram.record(Nanos(*time)));
            let counts = TimeCounts::of(&histogram);
            prop_assert_eq!(counts.count(), times.len() as u64);
            prop_assert!((counts.mean_ms() - histogram.mean_ns() / 1e6).abs() <= 1e-9 * counts.mean_ms());
            let (own, of_histogram) = (counts.quantile(q).0 as f64, histogram.quantile(q).0 as f64);
            // The histogram cuts the highest one to its own bucket.
            prop_assert!((own - of_histogram).abs() <= 0.01 * of_histogram + 1.0, "{own} and {of_histogram}");
        }
    }
}
