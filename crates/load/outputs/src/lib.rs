//! Outputs of a load while it runs: each interval goes to files and services that show metrics.
//!
//! Intervals are those that the load reports in any case. An output takes them from a bounded queue, on a thread of its
//! own with low priority; a receiver that is slow or down costs the load nothing, and its loss is counted.
//!
//! - [`RunOutputs`]: the outputs of a run, of [`OutputSpec`]s; `output_thread`: the thread of each; `pending_parts`: PURE:
//!   what it has not delivered yet, and its losses
//! - `interval_sample`: PURE: an interval, with `time_counts`
//! - [`METRICS`]: the names; `metric_totals`: PURE: the metrics so far, with `cumulative_times`
//! - `json_lines`, `prometheus_text`, `remote_write`, `otlp_metrics`, `influx_lines`, `statsd_lines`: PURE: formats;
//!   `output_encoder`: the one of a receiver
//! - `file_receiver`, `http_output` (by HTTP, of an [`HttpOutput`]), `udp_receiver`, `scrape_server`: edges
//!
//! Reasons: `docs/design/outputs.md`.

mod cumulative_times;
mod file_receiver;
mod http_output;
mod influx_lines;
mod interval_sample;
mod json_lines;
mod metric_totals;
mod metrics;
mod otlp_metrics;
mod output_encoder;
mod output_subject;
mod output_thread;
mod pending_parts;
mod prometheus_text;
mod remote_write;
mod run_outputs;
mod scrape_address;
mod scrape_server;
mod statsd_lines;
#[cfg(test)]
mod tests;
mod time_counts;
mod udp_receiver;

pub use self::http_output::{HttpFormat, HttpOutput};
pub use self::metrics::{METRICS, MetricInfo, MetricKind};
pub use self::output_encoder::RunEnd;
pub use self::output_subject::OutputSubject;
pub use self::pending_parts::DeliveryCounts;
pub use self::run_outputs::{DeliveryReport, OutputSpec, RunOutputs};
pub use self::scrape_address::ScrapeAddress;
