//! Metrics as requests of OTLP/HTTP in protobuf: cumulative sums, gauges and exponential histograms.

use std::sync::Arc;

use prost::Message;

use super::cumulative_times::{CumulativeTimes, NATIVE_SCHEMA};
use super::interval_sample::{IntervalFrame, IntervalSample};
use super::metric_totals::{MetricFamily, MetricPoint, MetricTotals, MetricValue};
use super::metrics::MetricKind;
use super::otlp_messages::{
    ExportMetricsRequest, ExportMetricsResponse, HistogramPoint, NumberPoint, OtlpAttribute, OtlpBuckets, OtlpData,
    OtlpGauge, OtlpHistogram, OtlpMetric, OtlpResource, OtlpScope, OtlpSum, PointNumber, ResourceMetrics, ScopeMetrics,
};
use super::output_subject::OutputSubject;

/// Encoder of intervals: each becomes a message, and the bytes of several, one after the other, are one message.
#[derive(Debug)]
pub(crate) struct OtlpEncoder {
    totals: MetricTotals,
}

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: i32 = 2;

impl OtlpEncoder {
    pub(crate) fn new(subject: Arc<OutputSubject>) -> Self {
        Self { totals: MetricTotals::new(subject) }
    }

    /// Message of an interval.
    pub(crate) fn encode(&mut self, sample: &IntervalSample) -> Vec<u8> {
        self.totals.add(sample);
        let version = env!("CARGO_PKG_VERSION");
        let own = [("service.name", "weir"), ("service.version", version)];
        let labels = self.totals.subject().labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let attributes = own.into_iter().chain(labels).map(|(name, value)| OtlpAttribute::text(name, value)).collect();
        let metrics = self.totals.families().iter().map(|family| metric(family, &sample.frame)).collect();
        let scope = OtlpScope { name: "weir".to_owned(), version: version.to_owned() };
        let resource_metrics = vec![ResourceMetrics {
            resource: Some(OtlpResource { attributes }),
            scope_metrics: vec![ScopeMetrics { scope: Some(scope), metrics }],
        }];
        ExportMetricsRequest { resource_metrics }.encode_to_vec()
    }
}

fn metric(family: &MetricFamily<'_>, frame: &IntervalFrame) -> OtlpMetric {
    let info = family.info;
    let start_time_unix_nano = frame.end_unix_ns.saturating_sub(frame.end.0);
    let attributes = |point: &MetricPoint<'_>| {
        let pairs = info.labels.iter().zip(&point.labels);
        pairs.filter(|(_, value)| !value.is_empty()).map(|(name, value)| OtlpAttribute::text(name, value)).collect()
    };
    let number = |point: &MetricPoint<'_>| NumberPoint {
        start_time_unix_nano,
        time_unix_nano: frame.end_unix_ns,
        value: Some(match point.value {
            MetricValue::Count(n) => PointNumber::Int(i64::try_from(n).unwrap_or(i64::MAX)),
            MetricValue::Number(number) => PointNumber::Double(number),
            MetricValue::Times(times) => PointNumber::Double(times.sum_s),
        }),
        attributes: attributes(point),
    };
    let histogram = |point: &MetricPoint<'_>| match point.value {
        MetricValue::Times(times) => Some(HistogramPoint {
            attributes: attributes(point),
            start_time_unix_nano,
            time_unix_nano: frame.end_unix_ns,
            count: times.count,
            sum: Some(times.sum_s),
            scale: NATIVE_SCHEMA,
            zero_count: times.zero,
            positive: Some(buckets(times)),
        }),
        MetricValue::Count(_) | MetricValue::Number(_) => None,
    };
    let points = family.points.iter();
    let data = match info.kind {
        MetricKind::Gauge => OtlpData::Gauge(OtlpGauge { data_points: points.map(number).collect() }),
        MetricKind::Counter => OtlpData::Sum(OtlpSum {
            data_points: points.map(number).collect(),
            aggregation_temporality: CUMULATIVE,
            is_monotonic: true,
        }),
        MetricKind::Histogram => OtlpData::Histogram(OtlpHistogram {
            data_points: points.filter_map(histogram).collect(),
            aggregation_temporality: CUMULATIVE,
        }),
    };
    OtlpMetric {
        name: info.otlp_name.to_owned(),
        description: info.help.to_owned(),
        unit: info.unit.to_owned(),
        data: Some(data),
    }
}

/// All buckets from the first to the last one.
fn buckets(times: &CumulativeTimes) -> OtlpBuckets {
    let (Some((first, _)), Some((last, _))) = (times.native.first_key_value(), times.native.last_key_value()) else {
        return OtlpBuckets::default();
    };
    let counts = (*first..=*last).map(|bucket| times.native.get(&bucket).copied().unwrap_or(0));
    // Buckets are named by their upper bound in Prometheus, by their lower one here.
    OtlpBuckets { offset: first - 1, bucket_counts: counts.collect() }
}

/// Reason why a collector has rejected part of an accepted request; `None` if it has rejected nothing.
pub(crate) fn rejection(response: &[u8]) -> Option<String> {
    let partial = ExportMetricsResponse::decode(response).ok()?.partial_success?;
    let points = partial.rejected_data_points;
    (points > 0).then(|| format!("{points} data points were rejected: {}", partial.error_message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp_messages::PointRejection;
    use crate::tests::samples::{START_UNIX_NS, sample, subject};

    #[test]
    fn messages_of_intervals_are_one_message_with_growing_counts() {
        let mut encoder = OtlpEncoder::new(Arc::new(subject()));
        let body: Vec<u8> = (0..2).flat_map(|number| encoder.encode(&sample(number))).collect();
        let request = ExportMetricsRequest::decode(&body[..]).unwrap();
        assert_eq!(request.resource_metrics.len(), 2);
        let metrics = &request.resource_metrics[1].scope_metrics[0].metrics;
        let data = |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap().data.clone().unwrap();
        let OtlpData::Sum(requests) = data("weir.load.requests") else { panic!("a sum") };
        assert!(requests.is_monotonic && requests.aggregation_temporality == CUMULATIVE);
        let ok = &requests.data_points[0];
        assert_eq!(
            (ok.value, ok.attributes.clone()),
            (Some(PointNumber::Int(20)), vec![OtlpAttribute::text("result", "ok")])
        );
        assert_eq!((ok.start_time_unix_nano, ok.time_unix_nano), (START_UNIX_NS, START_UNIX_NS + 2_000_000_000));
        let OtlpData::Histogram(times) = data("weir.load.response") else { panic!("a histogram") };
        let point = &times.data_points[0];
        let buckets = point.positive.clone().unwrap();
        assert_eq!((point.count, buckets.bucket_counts.iter().sum::<u64>(), point.scale), (20, 20, 3));
        // The first one has the times of a millisecond: 2^(-80/8) = 0.98 ms, 2^(-79/8) = 1.06 ms.
        assert_eq!((buckets.offset, buckets.bucket_counts[0]), (-80, 2));
        assert!(matches!(data("weir.load.target.rate"), OtlpData::Gauge(_)));
    }

    #[test]
    fn what_a_collector_rejects_is_read() {
        let partial = |rejected_data_points| {
            let partial = PointRejection { rejected_data_points, error_message: "too old".to_owned() };
            ExportMetricsResponse { partial_success: Some(partial) }.encode_to_vec()
        };
        assert_eq!(rejection(&partial(3)).as_deref(), Some("3 data points were rejected: too old"));
        assert_eq!([rejection(&partial(0)), rejection(b""), rejection(b"{}")], [None, None, None]);
    }
}
