//! Metrics as requests of OTLP/HTTP in protobuf: cumulative sums, gauges and exponential histograms.

use std::sync::Arc;

use prost::Message;

use super::cumulative_times::{CumulativeTimes, NATIVE_SCHEMA};
use super::interval_sample::{IntervalFrame, IntervalSample};
use super::metric_totals::{MetricFamily, MetricPoint, MetricTotals, MetricValue};
use super::metrics::MetricKind;
use super::output_subject::OutputSubject;
use weir_telemetry::otlp::metrics::{
    ExportMetricsRequest, HistogramPoint, NumberPoint, OtlpBuckets, OtlpData, OtlpGauge, OtlpHistogram, OtlpMetric,
    OtlpSum, PointNumber, ResourceMetrics, ScopeMetrics,
};
use weir_telemetry::otlp::{OtlpAttribute, OtlpResource, OtlpScope};

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
        let resource_metrics = vec![ResourceMetrics {
            resource: Some(OtlpResource { attributes }),
            scope_metrics: vec![ScopeMetrics { scope: Some(OtlpScope::weir()), metrics }],
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

#[cfg(test)]
mod tests {
    use super::*;
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
}
