//! Metrics in the text format of Prometheus (OpenMetrics 1.0), for scrapes.

use std::borrow::Cow;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::cumulative_times::{CLASSIC_BOUNDS_S, CumulativeTimes};
use super::metric_totals::{MetricFamily, MetricPoint, MetricTotals, MetricValue};
use super::metrics::MetricKind;

/// Type of the content.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Collector of the metrics of a run, as they are.
#[derive(Debug)]
struct TotalsCollector(MetricTotals);

/// Metrics as text.
pub(crate) fn text(totals: MetricTotals) -> String {
    let labels = totals.subject().labels.iter();
    let labels = labels.map(|(name, value)| (Cow::Owned(name.clone()), Cow::Owned(value.clone()))).collect::<Vec<_>>();
    let mut registry = Registry::with_labels(labels.into_iter());
    registry.register_collector(Box::new(TotalsCollector(totals)));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = encode(&mut text, &registry);
    text
}

impl Collector for TotalsCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.families().iter().try_for_each(|family| encode_family(family, &mut encoder))
    }
}

fn encode_family(family: &MetricFamily<'_>, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let info = family.info;
    let kind = match info.kind {
        MetricKind::Counter => MetricType::Counter,
        MetricKind::Gauge => MetricType::Gauge,
        MetricKind::Histogram => MetricType::Histogram,
    };
    // The unit is part of the name already.
    let mut metric = encoder.encode_descriptor(info.name, info.help, None, kind)?;
    for point in &family.points {
        if info.labels.is_empty() {
            encode_value(point, &mut metric)?;
        } else {
            let labels: Vec<(&str, &str)> =
                info.labels.iter().copied().zip(point.labels.iter().map(|v| &**v)).collect();
            encode_value(point, &mut metric.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn encode_value(point: &MetricPoint<'_>, metric: &mut MetricEncoder<'_>) -> Result<(), fmt::Error> {
    match point.value {
        MetricValue::Count(n) => metric.encode_counter::<NoLabelSet, u64, f64>(&n, None),
        MetricValue::Number(number) => metric.encode_gauge(&number),
        MetricValue::Times(times) => {
            metric.encode_histogram::<NoLabelSet>(times.sum_s, times.count, &classic_buckets(times), None)
        }
    }
}

/// Upper bounds and the numbers of times in each bucket.
fn classic_buckets(times: &CumulativeTimes) -> Vec<(f64, u64)> {
    let bounds = CLASSIC_BOUNDS_S.into_iter().chain([f64::INFINITY]);
    bounds.zip(times.classic).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tests::samples::{sample, subject};

    #[test]
    fn a_scrape_has_all_metrics_with_their_labels() {
        let mut totals = MetricTotals::new(Arc::new(subject()));
        assert!(text(totals.clone()).ends_with("# EOF\n"));
        (0..2).for_each(|number| totals.add(&sample(number)));
        let text = text(totals);
        let run = r#"run="a b,c=d\"e\\""#;
        for line in [
            "# TYPE weir_load_requests counter".to_owned(),
            format!("weir_load_requests_total{{{run},result=\"ok\"}} 20"),
            format!("weir_load_responses_total{{{run},status=\"200\"}} 20"),
            format!("weir_load_failures_total{{{run},kind=\"timeout\"}} 4"),
            format!("weir_load_received_bytes_total{{{run}}} 2000"),
            format!("weir_load_elapsed_seconds{{{run}}} 2.0"),
            format!("weir_load_response_seconds_count{{{run},result=\"ok\"}} 20"),
            format!("weir_load_response_seconds_bucket{{{run},le=\"0.005\",result=\"ok\"}} 10"),
            format!("weir_load_response_seconds_bucket{{{run},le=\"+Inf\",result=\"ok\"}} 20"),
            format!(r#"weir_load_step_requests_total{{{run},scenario="shop",step="log \"in\"",result="failed"}} 2"#),
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }
}
