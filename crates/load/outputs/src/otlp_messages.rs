//! Messages of OTLP for metrics, by their numbers in `opentelemetry-proto` 1.x; fields that are not written are left
//! out.

use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportMetricsRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    pub(crate) resource: Option<OtlpResource>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OtlpResource {
    #[prost(message, repeated, tag = "1")]
    pub(crate) attributes: Vec<OtlpAttribute>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    pub(crate) scope: Option<OtlpScope>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) metrics: Vec<OtlpMetric>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct OtlpScope {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OtlpMetric {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) description: String,
    #[prost(string, tag = "3")]
    pub(crate) unit: String,
    #[prost(oneof = "OtlpData", tags = "5, 7, 10")]
    pub(crate) data: Option<OtlpData>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum OtlpData {
    #[prost(message, tag = "5")]
    Gauge(OtlpGauge),
    #[prost(message, tag = "7")]
    Sum(OtlpSum),
    #[prost(message, tag = "10")]
    Histogram(OtlpHistogram),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OtlpGauge {
    #[prost(message, repeated, tag = "1")]
    pub(crate) data_points: Vec<NumberPoint>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OtlpSum {
    #[prost(message, repeated, tag = "1")]
    pub(crate) data_points: Vec<NumberPoint>,
    #[prost(int32, tag = "2")]
    pub(crate) aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    pub(crate) is_monotonic: bool,
}

/// Exponential histogram.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct OtlpHistogram {
    #[prost(message, repeated, tag = "1")]
    pub(crate) data_points: Vec<HistogramPoint>,
    #[prost(int32, tag = "2")]
    pub(crate) aggregation_temporality: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct NumberPoint {
    #[prost(fixed64, tag = "2")]
    pub(crate) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    pub(crate) time_unix_nano: u64,
    #[prost(oneof = "PointNumber", tags = "4, 6")]
    pub(crate) value: Option<PointNumber>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) attributes: Vec<OtlpAttribute>,
}

#[derive(Clone, Copy, PartialEq, Oneof)]
pub(crate) enum PointNumber {
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(sfixed64, tag = "6")]
    Int(i64),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HistogramPoint {
    #[prost(message, repeated, tag = "1")]
    pub(crate) attributes: Vec<OtlpAttribute>,
    #[prost(fixed64, tag = "2")]
    pub(crate) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    pub(crate) time_unix_nano: u64,
    #[prost(fixed64, tag = "4")]
    pub(crate) count: u64,
    #[prost(double, optional, tag = "5")]
    pub(crate) sum: Option<f64>,
    #[prost(sint32, tag = "6")]
    pub(crate) scale: i32,
    #[prost(fixed64, tag = "7")]
    pub(crate) zero_count: u64,
    #[prost(message, optional, tag = "8")]
    pub(crate) positive: Option<OtlpBuckets>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct OtlpBuckets {
    /// Number of the first bucket; bucket `i` has values in (base^i, base^(i+1)].
    #[prost(sint32, tag = "1")]
    pub(crate) offset: i32,
    #[prost(uint64, repeated, tag = "2")]
    pub(crate) bucket_counts: Vec<u64>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct OtlpAttribute {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<OtlpText>,
}

/// Value that is text.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct OtlpText {
    #[prost(string, optional, tag = "1")]
    pub(crate) string_value: Option<String>,
}

/// `ExportMetricsServiceResponse` of OTLP; an empty one accepts all.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportMetricsResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) partial_success: Option<PointRejection>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct PointRejection {
    #[prost(int64, tag = "1")]
    pub(crate) rejected_data_points: i64,
    #[prost(string, tag = "2")]
    pub(crate) error_message: String,
}

impl OtlpAttribute {
    /// Attribute with a text.
    pub(crate) fn text(key: &str, value: &str) -> Self {
        Self { key: key.to_owned(), value: Some(OtlpText { string_value: Some(value.to_owned()) }) }
    }
}
