//! Histogram of the times of responses, which all event loops record into without a lock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use weir_base::Nanos;

/// Upper bound of the first bucket; each further one has twice the bound of the one before, up to 13 s.
const FIRST_BOUND: Nanos = Nanos(100_000);
/// Buckets but the last, which has no bound.
const BOUNDS: usize = 18;

/// A histogram; clones are the same one.
#[derive(Clone, Debug, Default)]
pub(super) struct ResponseHistogram(Arc<ResponseHistogramCounts>);

#[derive(Debug, Default)]
struct ResponseHistogramCounts {
    buckets: [AtomicU64; BOUNDS + 1],
    sum_ns: AtomicU64,
}

impl ResponseHistogram {
    /// Adds a time.
    pub(super) fn record(&self, took: Nanos) {
        self.0.buckets[bucket(took)].fetch_add(1, Relaxed);
        self.0.sum_ns.fetch_add(took.0, Relaxed);
    }
}

/// Index of the first bucket whose bound is not below this time.
fn bucket(took: Nanos) -> usize {
    let times_first = took.0.div_ceil(FIRST_BOUND.0).max(1);
    (times_first.next_power_of_two().trailing_zeros() as usize).min(BOUNDS)
}

impl EncodeMetric for ResponseHistogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let bound = |index| match index {
            BOUNDS => f64::INFINITY,
            _ => Nanos(FIRST_BOUND.0 << index).as_secs_f64(),
        };
        let counts = self.0.buckets.iter().map(|count| count.load(Relaxed));
        let buckets: Vec<(f64, u64)> = counts.enumerate().map(|(index, count)| (bound(index), count)).collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum_s = Nanos(self.0.sum_ns.load(Relaxed)).as_secs_f64();
        encoder.encode_histogram::<NoLabelSet>(sum_s, count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
    use prometheus_client::registry::{Registry, Unit};
    use proptest::prelude::*;

    fn text(metric: impl prometheus_client::registry::Metric) -> String {
        let mut registry = Registry::default();
        registry.register_with_unit("times", "Times", Unit::Seconds, metric);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        text
    }

    proptest! {
        #[test]
        fn it_reads_as_the_librarys_own_histogram(
            times in proptest::collection::vec(prop_oneof![0..2_000_000_u64, 0..30_000_000_000_u64], 0..60),
        ) {
            let (ours, theirs) = (ResponseHistogram::default(), Histogram::new(exponential_buckets(1e-4, 2.0, 18)));
            for ns in &times {
                ours.record(Nanos(*ns));
                theirs.observe(Nanos(*ns).as_secs_f64());
            }
            let lines = |text: String| -> Vec<String> {
                text.lines().filter(|line| !line.starts_with("times_seconds_sum")).map(str::to_owned).collect()
            };
            prop_assert_eq!(lines(text(ours)), lines(text(theirs)));
        }
    }

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let indexes = [0, 1, 100_000, 100_001, 200_000, 200_001, 13_107_200_000, 13_107_200_001, u64::MAX];
        assert_eq!(indexes.map(|ns| bucket(Nanos(ns))), [0, 0, 0, 1, 1, 2, 17, 18, 18]);
    }
}
