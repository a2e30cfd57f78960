//! Requests of metrics: `ExportMetricsServiceRequest`.

use prost::{Message, Oneof};

use super::resource::{OtlpAttribute, OtlpResource, OtlpScope};

/// Request with metrics.
#[derive(Clone, PartialEq, Message)]
pub struct ExportMetricsRequest {
    /// Metrics by resource.
    #[prost(message, repeated, tag = "1")]
    pub resource_metrics: Vec<ResourceMetrics>,
}

/// Metrics of a resource.
#[derive(Clone, PartialEq, Message)]
pub struct ResourceMetrics {
    /// The resource.
    #[prost(message, optional, tag = "1")]
    pub resource: Option<OtlpResource>,
    /// Its metrics, by scope.
    #[prost(message, repeated, tag = "2")]
    pub scope_metrics: Vec<ScopeMetrics>,
}

/// Metrics of a scope.
#[derive(Clone, PartialEq, Message)]
pub struct ScopeMetrics {
    /// The scope.
    #[prost(message, optional, tag = "1")]
    pub scope: Option<OtlpScope>,
    /// Its metrics.
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<OtlpMetric>,
}

/// A metric.
#[derive(Clone, PartialEq, Message)]
pub struct OtlpMetric {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Description.
    #[prost(string, tag = "2")]
    pub description: String,
    /// Unit.
    #[prost(string, tag = "3")]
    pub unit: String,
    /// Points.
    #[prost(oneof = "OtlpData", tags = "5, 7, 10")]
    pub data: Option<OtlpData>,
}

/// Points of a metric, by its kind.
#[derive(Clone, PartialEq, Oneof)]
pub enum OtlpData {
    /// Gauge.
    #[prost(message, tag = "5")]
    Gauge(OtlpGauge),
    /// Counter.
    #[prost(message, tag = "7")]
    Sum(OtlpSum),
    /// Exponential histogram.
    #[prost(message, tag = "10")]
    Histogram(OtlpHistogram),
}

/// Gauge.
#[derive(Clone, PartialEq, Message)]
pub struct OtlpGauge {
    /// Points.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberPoint>,
}

/// Counter.
#[derive(Clone, PartialEq, Message)]
pub struct OtlpSum {
    /// Points.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberPoint>,
    /// `AggregationTemporality`.
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
    /// Whether it only grows.
    #[prost(bool, tag = "3")]
    pub is_monotonic: bool,
}

/// Exponential histogram.
#[derive(Clone, PartialEq, Message)]
pub struct OtlpHistogram {
    /// Points.
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<HistogramPoint>,
    /// `AggregationTemporality`.
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
}

/// Value of a gauge or a counter.
#[derive(Clone, PartialEq, Message)]
pub struct NumberPoint {
    /// Start of what it counts, in nanoseconds since 1970.
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    /// Time, in nanoseconds since 1970.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    /// The number.
    #[prost(oneof = "PointNumber", tags = "4, 6")]
    pub value: Option<PointNumber>,
    /// Attributes.
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<OtlpAttribute>,
}

/// A number, by its type.
#[derive(Clone, Copy, PartialEq, Oneof)]
pub enum PointNumber {
    /// Float.
    #[prost(double, tag = "4")]
    Double(f64),
    /// Whole number.
    #[prost(sfixed64, tag = "6")]
    Int(i64),
}

/// Value of an exponential histogram.
#[derive(Clone, PartialEq, Message)]
pub struct HistogramPoint {
    /// Attributes.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<OtlpAttribute>,
    /// Start of what it counts, in nanoseconds since 1970.
    #[prost(fixed64, tag = "2")]
    pub start_time_unix_nano: u64,
    /// Time, in nanoseconds since 1970.
    #[prost(fixed64, tag = "3")]
    pub time_unix_nano: u64,
    /// Number of values.
    #[prost(fixed64, tag = "4")]
    pub count: u64,
    /// Sum of the values.
    #[prost(double, optional, tag = "5")]
    pub sum: Option<f64>,
    /// Scale: the base of bucket bounds is 2^(2^-scale).
    #[prost(sint32, tag = "6")]
    pub scale: i32,
    /// Number of values that are zero.
    #[prost(fixed64, tag = "7")]
    pub zero_count: u64,
    /// Buckets of positive values.
    #[prost(message, optional, tag = "8")]
    pub positive: Option<OtlpBuckets>,
}

/// Buckets of an exponential histogram.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct OtlpBuckets {
    /// Number of the first bucket; bucket `i` has values in (base^i, base^(i+1)].
    #[prost(sint32, tag = "1")]
    pub offset: i32,
    /// Number of values in each bucket.
    #[prost(uint64, repeated, tag = "2")]
    pub bucket_counts: Vec<u64>,
}
