//! Names of the metrics, of which `docs/outputs.md` has the table.

/// Metric of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricInfo {
    /// Name in Prometheus, without the suffixes of its kind.
    pub name: &'static str,
    /// Name in OpenTelemetry.
    pub otlp_name: &'static str,
    /// Kind.
    pub kind: MetricKind,
    /// Unit by UCUM, as in OpenTelemetry; Prometheus has it in the name.
    pub unit: &'static str,
    /// Meaning.
    pub help: &'static str,
    /// Labels.
    pub labels: &'static [&'static str],
}

/// Type of a metric, as in OpenMetrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Sum since the start of the run.
    Counter,
    /// Value now.
    Gauge,
    /// Times since the start of the run.
    Histogram,
}

impl MetricInfo {
    /// Name of its samples in Prometheus; of a histogram, its own.
    pub fn sample_name(&self) -> String {
        let suffix = if self.kind == MetricKind::Counter { "_total" } else { "" };
        format!("{}{suffix}", self.name)
    }
}

const fn metric(
    names: [&'static str; 2],
    kind: MetricKind,
    unit: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> MetricInfo {
    MetricInfo { name: names[0], otlp_name: names[1], kind, unit, help, labels }
}

use MetricKind::{Counter, Gauge, Histogram};

pub(crate) const INFO: MetricInfo = metric(
    ["weir_load_info", "weir.load.info"],
    Gauge,
    "",
    &["version", "method", "url"],
    "Version of weir, and the target",
);
pub(crate) const ELAPSED: MetricInfo =
    metric(["weir_load_elapsed_seconds", "weir.load.elapsed"], Gauge, "s", &[], "Time since the start of the run");
pub(crate) const TARGET_RATE: MetricInfo = metric(
    ["weir_load_target_rate", "weir.load.target.rate"],
    Gauge,
    "",
    &[],
    "Arrivals per second that are set: requests, or iterations of scenarios; open loop",
);
pub(crate) const TARGET_USERS: MetricInfo = metric(
    ["weir_load_target_users", "weir.load.target.users"],
    Gauge,
    "{user}",
    &[],
    "Number of users or connections that is set; closed loop",
);
pub(crate) const IN_FLIGHT: MetricInfo = metric(
    ["weir_load_requests_in_flight", "weir.load.requests.in_flight"],
    Gauge,
    "{request}",
    &[],
    "Requests in flight",
);
pub(crate) const BACKLOG: MetricInfo = metric(
    ["weir_load_backlog", "weir.load.backlog"],
    Gauge,
    "{request}",
    &[],
    "Arrivals that wait for a connection; open loop",
);
pub(crate) const REQUESTS: MetricInfo =
    metric(["weir_load_requests", "weir.load.requests"], Counter, "{request}", &["result"], "Requests that ended");
pub(crate) const RESPONSES: MetricInfo = metric(
    ["weir_load_responses", "weir.load.responses"],
    Counter,
    "{response}",
    &["status"],
    "Responses by status, without the warm-up",
);
pub(crate) const FAILURES: MetricInfo = metric(
    ["weir_load_failures", "weir.load.failures"],
    Counter,
    "{request}",
    &["kind"],
    "Requests without a response by kind of failure, without the warm-up",
);
pub(crate) const RECEIVED: MetricInfo =
    metric(["weir_load_received_bytes", "weir.load.received"], Counter, "By", &[], "Bytes of responses");
pub(crate) const RESPONSE: MetricInfo = metric(
    ["weir_load_response_seconds", "weir.load.response"],
    Histogram,
    "s",
    &["result"],
    "Response time, from the intended start",
);
pub(crate) const ITERATIONS: MetricInfo = metric(
    ["weir_load_iterations", "weir.load.iterations"],
    Counter,
    "{iteration}",
    &[],
    "Iterations of scenarios that ended",
);
pub(crate) const STEP_REQUESTS: MetricInfo = metric(
    ["weir_load_step_requests", "weir.load.step.requests"],
    Counter,
    "{request}",
    &["scenario", "step", "result"],
    "Requests of a step that ended",
);
pub(crate) const STEP_FAILED_CHECKS: MetricInfo = metric(
    ["weir_load_step_failed_checks", "weir.load.step.failed_checks"],
    Counter,
    "{check}",
    &["scenario", "step"],
    "Checks of a step that failed",
);
pub(crate) const STEP_RESPONSE: MetricInfo = metric(
    ["weir_load_step_response_seconds", "weir.load.step.response"],
    Histogram,
    "s",
    &["scenario", "step"],
    "Response time of successes of a step",
);
pub(crate) const STREAM_EVENTS: MetricInfo = metric(
    ["weir_load_stream_events", "weir.load.stream.events"],
    Counter,
    "{event}",
    &[],
    "Events of streamed responses",
);
pub(crate) const FIRST_EVENT: MetricInfo = metric(
    ["weir_load_stream_first_event_seconds", "weir.load.stream.first_event"],
    Histogram,
    "s",
    &[],
    "Time from the intended start to the first event",
);
pub(crate) const EVENT_GAP: MetricInfo =
    metric(["weir_load_stream_gap_seconds", "weir.load.stream.gap"], Histogram, "s", &[], "Gap between two events");

pub(crate) const SCRIPT: MetricInfo = metric(
    ["weir_load_script", "weir.load.script"],
    Gauge,
    "",
    &["metric", "statistic"],
    "Metric that a script of k6 has measured, since the start of the run; times are milliseconds",
);

/// All metrics.
pub const METRICS: [MetricInfo; 19] = [
    INFO,
    ELAPSED,
    TARGET_RATE,
    TARGET_USERS,
    IN_FLIGHT,
    BACKLOG,
    REQUESTS,
    RESPONSES,
    FAILURES,
    RECEIVED,
    RESPONSE,
    ITERATIONS,
    STEP_REQUESTS,
    STEP_FAILED_CHECKS,
    STEP_RESPONSE,
    STREAM_EVENTS,
    FIRST_EVENT,
    EVENT_GAP,
    SCRIPT,
];

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/outputs.md");

    #[test]
    fn the_page_has_each_metric_with_its_kind_and_labels() {
        for metric in METRICS {
            let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{}` |", metric.sample_name())));
            let row = row.unwrap_or_else(|| panic!("{} is not in the table", metric.name));
            let kind = format!("{:?}", metric.kind).to_lowercase();
            assert!(row.contains(&kind) && row.contains(&format!("`{}`", metric.otlp_name)), "{row}");
            assert!(metric.labels.iter().all(|label| row.contains(&format!("`{label}`"))), "{row}");
        }
    }

    /// Names and words of labels in the dashboard's expressions.
    fn dashboard_words() -> Vec<String> {
        let dashboard: serde_json::Value =
            serde_json::from_str(include_str!("../../../../packaging/grafana/weir-load.json")).unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
        let expressions = targets.map(|target| target["expr"].as_str().unwrap());
        let words = expressions.flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
        words.filter(|word| word.starts_with("weir_")).map(str::to_owned).collect()
    }

    #[test]
    fn the_dashboard_has_metrics_that_exist_and_all_of_them() {
        let words = dashboard_words();
        let is_of = |word: &str, metric: &MetricInfo| {
            let name = word.strip_suffix("_bucket").filter(|_| metric.kind == Histogram).unwrap_or(word);
            name == metric.sample_name()
        };
        let unknown: Vec<&String> =
            words.iter().filter(|word| !METRICS.iter().any(|metric| is_of(word, metric))).collect();
        assert!(unknown.is_empty() && words.len() > 40, "{unknown:?}");
        let unused: Vec<&str> = METRICS
            .iter()
            .filter(|metric| !words.iter().any(|word| is_of(word, metric)))
            .map(|metric| metric.name)
            .collect();
        assert_eq!(unused, ["weir_load_info"]);
    }

    #[test]
    fn names_follow_the_rules_of_prometheus() {
        for metric in METRICS {
            let is_name = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            assert!(is_name(metric.name) && !metric.name.ends_with("_total"), "{metric:?}");
            assert_eq!(metric.unit == "s", metric.name.ends_with("_seconds"), "{metric:?}");
            assert!(metric.labels.iter().all(|label| is_name(label)), "{metric:?}");
        }
    }
}
