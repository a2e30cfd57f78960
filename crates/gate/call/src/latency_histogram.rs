//! Histograms of latencies that all event loops record into.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use weir_base::Nanos;

/// Upper bounds of the buckets but the last, which has none.
const BOUNDS: [Nanos; 14] = [
    Nanos(500_000),
    Nanos::from_millis(1),
    Nanos(2_500_000),
    Nanos::from_millis(5),
    Nanos::from_millis(10),
    Nanos::from_millis(25),
    Nanos::from_millis(50),
    Nanos::from_millis(100),
    Nanos::from_millis(250),
    Nanos::from_millis(500),
    Nanos::from_secs(1),
    Nanos(2_500_000_000),
    Nanos::from_secs(5),
    Nanos::from_secs(10),
];

/// Histogram of latencies: 15 buckets from 0.5 ms to over 10 s. Recording takes no lock.
#[derive(Debug, Default)]
pub struct LatencyHistogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum_ns: AtomicU64,
}

/// Counts of a [`LatencyHistogram`].
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyBuckets {
    /// Upper bound of each bucket in seconds, the last one infinite, and the latencies in it alone.
    pub buckets: Vec<(f64, u64)>,
    /// Sum of all latencies, in seconds.
    pub sum_s: f64,
}

impl LatencyHistogram {
    /// Adds a latency.
    pub(super) fn record(&self, latency: Nanos) {
        let bucket = BOUNDS.partition_point(|bound| *bound < latency);
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(latency.0, Relaxed);
    }

    /// The counts now. Of latencies that are being recorded, the sum may have more or fewer than the buckets.
    pub fn read(&self) -> LatencyBuckets {
        let bounds = BOUNDS.iter().map(|bound| bound.as_secs_f64()).chain([f64::INFINITY]);
        LatencyBuckets {
            buckets: bounds.zip(&self.buckets).map(|(bound, count)| (bound, count.load(Relaxed))).collect(),
            sum_s: Nanos(self.sum_ns.load(Relaxed)).as_secs_f64(),
        }
    }
}

impl LatencyBuckets {
    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// Adds the counts of another histogram.
    pub fn add(&mut self, other: &Self) {
        for ((_, count), (_, more)) in self.buckets.iter_mut().zip(&other.buckets) {
            *count += more;
        }
        self.sum_s += other.sum_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let histogram = LatencyHistogram::default();
        for ns in [0, 500_000, 500_001, 1_000_000, 10_000_000_000, 10_000_000_001] {
            histogram.record(Nanos(ns));
        }
        let mut read = histogram.read();
        let counts: Vec<(f64, u64)> = read.buckets.iter().copied().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counts, [(0.0005, 2), (0.001, 2), (10.0, 1), (f64::INFINITY, 1)]);
        assert_eq!((read.count(), read.buckets.len()), (6, 15));
        assert!((read.sum_s - 20.002_000_002).abs() < 1e-6, "{}", read.sum_s);
        read.add(&histogram.read());
        assert_eq!(read.count(), 12);
    }
}
