//! Metrics as requests of Prometheus' remote write 1.0, with native histograms: protobuf, compressed as one Snappy
//! block.
//!
//! Messages are those of `prompb` in Prometheus' repository, by their numbers; fields that are not written are left out.

use std::sync::Arc;

use prost::Message;

use super::cumulative_times::{CumulativeTimes, NATIVE_SCHEMA};
use super::interval_sample::IntervalSample;
use super::metric_totals::{MetricTotals, MetricValue};
use super::output_subject::OutputSubject;

/// Encoder of intervals: each becomes a message, and the bytes of several, one after the other, are one message.
#[derive(Debug)]
pub(crate) struct RemoteWriteEncoder {
    totals: MetricTotals,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) timeseries: Vec<WrittenSeries>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct WrittenSeries {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<WrittenLabel>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) samples: Vec<WrittenSample>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) histograms: Vec<NativeHistogram>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Message)]
pub(crate) struct WrittenLabel {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct WrittenSample {
    #[prost(double, tag = "1")]
    pub(crate) value: f64,
    #[prost(int64, tag = "2")]
    pub(crate) timestamp_ms: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NativeHistogram {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) count: Option<u64>,
    #[prost(double, tag = "3")]
    pub(crate) sum: f64,
    #[prost(sint32, tag = "4")]
    pub(crate) schema: i32,
    #[prost(double, tag = "5")]
    pub(crate) zero_threshold: f64,
    #[prost(uint64, optional, tag = "6")]
    pub(crate) zero_count: Option<u64>,
    #[prost(message, repeated, tag = "11")]
    pub(crate) positive_spans: Vec<BucketSpan>,
    /// Differences from the bucket before.
    #[prost(sint64, repeated, tag = "12")]
    pub(crate) positive_deltas: Vec<i64>,
    #[prost(int64, tag = "15")]
    pub(crate) timestamp_ms: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(crate) struct BucketSpan {
    /// Number of empty buckets after the last span; of the first one, the number of its first bucket.
    #[prost(sint32, tag = "1")]
    pub(crate) offset: i32,
    #[prost(uint32, tag = "2")]
    pub(crate) length: u32,
}

impl RemoteWriteEncoder {
    pub(crate) fn new(subject: Arc<OutputSubject>) -> Self {
        Self { totals: MetricTotals::new(subject) }
    }

    /// Message of an interval.
    pub(crate) fn encode(&mut self, sample: &IntervalSample) -> Vec<u8> {
        self.totals.add(sample);
        let timestamp_ms = (sample.frame.end_unix_ns / 1_000_000) as i64;
        let common = &self.totals.subject().labels;
        let mut timeseries = Vec::new();
        for family in self.totals.families() {
            let name = family.info.sample_name();
            for point in &family.points {
                let own = family.info.labels.iter().copied().zip(point.labels.iter().map(|value| &**value));
                let common = common.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                let all = common.chain(own).chain([("__name__", name.as_str())]);
                // A label without a value is one that is not there.
                let all = all.filter(|(_, value)| !value.is_empty());
                let mut labels: Vec<WrittenLabel> =
                    all.map(|(name, value)| WrittenLabel { name: name.into(), value: value.into() }).collect();
                labels.sort_unstable();
                let (mut samples, mut histograms) = (Vec::new(), Vec::new());
                match point.value {
                    MetricValue::Count(n) => samples.push(WrittenSample { value: n as f64, timestamp_ms }),
                    MetricValue::Number(value) => samples.push(WrittenSample { value, timestamp_ms }),
                    MetricValue::Times(times) => histograms.push(native_histogram(times, timestamp_ms)),
                }
                timeseries.push(WrittenSeries { labels, samples, histograms });
            }
        }
        WriteRequest { timeseries }.encode_to_vec()
    }
}

fn native_histogram(times: &CumulativeTimes, timestamp_ms: i64) -> NativeHistogram {
    let (mut end, mut before) = (0, 0);
    let (mut positive_spans, mut positive_deltas) = (Vec::new(), Vec::new());
    for range in times.ranges() {
        let length = range.counts.len() as u32;
        positive_spans.push(BucketSpan { offset: range.first - end, length });
        end = range.first + length as i32;
        for n in range.counts {
            let n = n as i64;
            positive_deltas.push(n - std::mem::replace(&mut before, n));
        }
    }
    NativeHistogram {
        count: Some(times.count),
        sum: times.sum_s,
        schema: NATIVE_SCHEMA,
        zero_threshold: 1e-9,
        zero_count: Some(times.zero),
        positive_spans,
        positive_deltas,
        timestamp_ms,
    }
}

/// Body of a request: messages in Snappy's block format.
pub(crate) fn compressed(messages: &[u8]) -> Vec<u8> {
    // Fails on more than 4 GB only, which a queue does not hold.
    snap::raw::Encoder::new().compress_vec(messages).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::tests::samples::{START_UNIX_NS, sample, subject};
    use crate::time_counts::TimeCounts;
    use proptest::prelude::*;
    use weir_base::Nanos;
    use weir_histogram::Histogram;

    #[test]
    fn messages_of_intervals_are_one_message_with_growing_counts() {
        let mut encoder = RemoteWriteEncoder::new(Arc::new(subject()));
        let body: Vec<u8> = (0..3).flat_map(|number| encoder.encode(&sample(number))).collect();
        let raw = snap::raw::Decoder::new().decompress_vec(&compressed(&body)).unwrap();
        let request = WriteRequest::decode(&raw[..]).unwrap();
        let mut by_name: BTreeMap<String, Vec<(i64, f64)>> = BTreeMap::new();
        for series in &request.timeseries {
            assert!(series.labels.windows(2).all(|pair| pair[0].name < pair[1].name), "{series:?}");
            assert!(series.labels.iter().all(|label| !label.value.is_empty()), "{series:?}");
            assert_eq!(series.labels.last().map(|label| label.name.as_str() > "__name__"), Some(true));
            let name = series.labels.iter().map(|label| format!("{}={}", label.name, label.value));
            let name = name.collect::<Vec<_>>().join(",");
            let values = series.samples.iter().map(|sample| (sample.timestamp_ms, sample.value));
            let counts = series.histograms.iter().map(|it| (it.timestamp_ms, it.count.unwrap() as f64));
            by_name.entry(name).or_default().extend(values.chain(counts));
        }
        let start_ms = (START_UNIX_NS / 1_000_000) as i64;
        let at = |n: i64| start_ms + n * 1000;
        let ok = &by_name[r#"__name__=weir_load_requests_total,result=ok,run=a b,c=d"e\"#];
        assert_eq!(*ok, [(at(1), 10.0), (at(2), 20.0), (at(3), 30.0)]);
        let times = &by_name[r#"__name__=weir_load_response_seconds,result=failed,run=a b,c=d"e\"#];
        assert_eq!(*times, [(at(1), 2.0), (at(2), 4.0), (at(3), 6.0)]);
    }

    proptest! {
        /// Oracle: the rules of Prometheus for a native histogram, and the numbers by bucket.
        #[test]
        fn spans_and_deltas_are_the_buckets(times in prop::collection::vec(0..100_000_000_000_u64, 0..60)) {
            let mut histogram = Histogram::coarse();
            times.iter().for_each(|time| histogram.record(Nanos(*time)));
            let mut all = CumulativeTimes::default();
            all.add(&TimeCounts::of(&histogram));
            let native = native_histogram(&all, 0);
            let (mut bucket, mut n) = (0, 0);
            let mut deltas = native.positive_deltas.iter();
            let mut read = BTreeMap::new();
            for (index, span) in native.positive_spans.iter().enumerate() {
                prop_assert!(span.length > 0 && (index == 0 || span.offset > 0), "{span:?}");
                bucket += span.offset;
                for _ in 0..span.length {
                    n += deltas.next().expect("a delta for each bucket");
                    read.insert(bucket, n as u64);
                    bucket += 1;
                }
            }
            prop_assert_eq!(deltas.next(), None);
            let sum: u64 = read.values().sum();
            prop_assert_eq!(&read, &all.native);
            prop_assert_eq!(Some(sum + native.zero_count.unwrap_or(0)), native.count);
        }
    }
}
