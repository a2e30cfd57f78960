//! Times of an interval with their numbers, in a fraction of a histogram's memory.

use weir_base::Nanos;
use weir_histogram::Histogram;

/// Percentiles of each interval, by name.
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];

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
        Self { counts: histogram.recorded().collect(), count, sum_ns: histogram.sum_ns() }
    }

    /// Number of times.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the times, in seconds.
    pub(crate) fn sum_s(&self) -> f64 {
        self.sum_ns / 1e9
    }

    /// Mean, maximum and percentiles by name, in milliseconds; None without a time.
    pub(crate) fn figures_ms(&self) -> Option<Vec<(&'static str, f64)>> {
        let ends = [("mean", self.mean_ms()?), ("max", self.max()?.as_millis_f64())];
        let percentile = |(name, q)| Some((name, self.quantile(q)?.as_millis_f64()));
        Some(ends.into_iter().chain(PERCENTILES.into_iter().filter_map(percentile)).collect())
    }

    fn mean_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns / self.count as f64 / 1e6)
    }

    fn max(&self) -> Option<Nanos> {
        self.counts.last().map(|(time, _)| *time)
    }

    /// Smallest time that at least the fraction `q` of times does not exceed; None without any.
    fn quantile(&self, q: f64) -> Option<Nanos> {
        let rank = ((q * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.counts.iter().find(|(_, n)| {
            seen += n;
            seen >= rank
        });
        found.map(|(time, _)| *time).or(self.max())
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
            let both = (counts.quantile(q), histogram.quantile(q));
            let (Some(own), Some(of_histogram)) = both else {
                prop_assert!(times.is_empty() && both == (None, None) && counts.figures_ms().is_none());
                return Ok(());
            };
            let (own, of_histogram) = (own.0 as f64, of_histogram.0 as f64);
            let (mean, of_all) = (counts.mean_ms().unwrap_or(0.0), histogram.mean_ms().unwrap_or(0.0));
            prop_assert!((mean - of_all).abs() <= 1e-9 * mean);
            // The histogram cuts the highest one to its own bucket.
            prop_assert!((own - of_histogram).abs() <= 0.01 * of_histogram + 1.0, "{own} and {of_histogram}");
        }
    }
}
