//! Sums of times since the start of a run, in the buckets of Prometheus and OpenTelemetry.
//!
//! Native (exponential) buckets at schema 3 are eight to each doubling: any quantile is known to 5%, and a run has about
//! a hundred buckets. The text format of Prometheus has classic buckets, which are few.

use std::collections::BTreeMap;

use super::time_counts::TimeCounts;
use weir_base::Nanos;

/// Times since the start of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CumulativeTimes {
    /// Number of times.
    pub(crate) count: u64,
    /// Sum, in seconds.
    pub(crate) sum_s: f64,
    /// Number of times of 0.
    pub(crate) zero: u64,
    /// Number of times by native bucket: bucket `i` has those in (2^((i-1)/8), 2^(i/8)] seconds.
    pub(crate) native: BTreeMap<i32, u64>,
    /// Number of times by classic bucket; the last one has those above all bounds.
    pub(crate) classic: [u64; CLASSIC_BOUNDS_S.len() + 1],
}

/// Resolution of native buckets: 2^SCHEMA to each doubling, the name and number of Prometheus and OpenTelemetry (scale).
pub(crate) const NATIVE_SCHEMA: i32 = 3;
/// Buckets to each doubling.
const BUCKETS_PER_DOUBLING: f64 = 8.0;
/// Upper bounds of classic buckets, in seconds.
pub(crate) const CLASSIC_BOUNDS_S: [f64; 16] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// Run of neighbouring native buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BucketRange {
    /// Number of the first bucket.
    pub(crate) first: i32,
    /// Numbers of times.
    pub(crate) counts: Vec<u64>,
}

impl CumulativeTimes {
    /// Adds the times of an interval.
    pub(crate) fn add(&mut self, times: &TimeCounts) {
        self.count += times.count();
        self.sum_s += times.sum_s();
        for (time, n) in times.iter() {
            match native_bucket(time) {
                Some(bucket) => *self.native.entry(bucket).or_default() += n,
                None => self.zero += n,
            }
            let seconds = time.as_secs_f64();
            // The histogram gives the upper end of its bucket, 1% wide; its middle is on the right side more often.
            let middle = seconds * (1.0 - 0.004);
            self.classic[CLASSIC_BOUNDS_S.iter().take_while(|bound| middle > **bound).count()] += n;
        }
    }

    /// Runs of native buckets without a gap, in ascending order.
    pub(crate) fn ranges(&self) -> Vec<BucketRange> {
        let mut ranges: Vec<BucketRange> = Vec::new();
        for (bucket, n) in &self.native {
            match ranges.last_mut() {
                Some(range) if range.first + range.counts.len() as i32 == *bucket => range.counts.push(*n),
                _ => ranges.push(BucketRange { first: *bucket, counts: vec![*n] }),
            }
        }
        ranges
    }
}

/// Native bucket of a time; none of 0.
fn native_bucket(time: Nanos) -> Option<i32> {
    // Within the range of Nanos the logarithm is between -30 and 35.
    (time > Nanos::ZERO).then(|| (time.as_secs_f64().log2() * BUCKETS_PER_DOUBLING).ceil() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_histogram::Histogram;

    fn counts(times: &[u64]) -> TimeCounts {
        let mut histogram = Histogram::coarse();
        times.iter().for_each(|time| histogram.record(Nanos(*time)));
        TimeCounts::of(&histogram)
    }

    #[test]
    fn buckets_are_those_of_the_published_definition() {
        // Schema 3: bucket 0 ends at 1 s, bucket 8 at 2 s, bucket -8 at 0.5 s; the upper bound belongs to it.
        let second = 1_000_000_000;
        let bucket = |ns| native_bucket(Nanos(ns));
        assert_eq!([bucket(second), bucket(2 * second), bucket(second / 2)], [Some(0), Some(8), Some(-8)]);
        assert_eq!([bucket(second + 1), bucket(second - 1), bucket(0)], [Some(1), Some(0), None]);
        assert_eq!(bucket(1), Some(-239));
    }

    #[test]
    fn classic_buckets_have_the_times_up_to_their_bounds() {
        let mut all = CumulativeTimes::default();
        all.add(&counts(&[900_000, 1_000_000, 1_100_000, 99_000_000_000]));
        let mut expected = [0; CLASSIC_BOUNDS_S.len() + 1];
        (expected[1], expected[2], expected[16]) = (2, 1, 1);
        assert_eq!(all.classic, expected);
    }

    proptest! {
        /// Oracle: the bounds of each bucket.
        #[test]
        fn a_time_is_in_its_bucket(ns in 1..3_600_000_000_000_u64) {
            let bucket = native_bucket(Nanos(ns)).expect("not 0");
            let bound = |i: i32| 2_f64.powf(f64::from(i) / 8.0);
            let seconds = ns as f64 / 1e9;
            prop_assert!(seconds <= bound(bucket) * (1.0 + 1e-12) && seconds > bound(bucket - 1) * (1.0 - 1e-12));
        }

        #[test]
        fn no_time_is_lost(parts in prop::collection::vec(prop::collection::vec(0..60_000_000_000_u64, 0..30), 0..8)) {
            let mut all = CumulativeTimes::default();
            parts.iter().for_each(|part| all.add(&counts(part)));
            let n = parts.iter().flatten().count() as u64;
            let in_ranges: u64 = all.ranges().iter().flat_map(|range| &range.counts).sum();
            prop_assert_eq!((all.count, in_ranges + all.zero, all.classic.iter().sum::<u64>()), (n, n, n));
            for pair in all.ranges().windows(2) {
                prop_assert!(pair[0].first + (pair[0].counts.len() as i32) < pair[1].first, "a gap between ranges");
            }
        }
    }
}
