//! Metrics of a script: its own and k6's, in all and for the tags that thresholds name.
//!
//! - [`registry`]: names and kinds; [`selector`]: `http_req_duration{scenario:a}`
//! - [`sink`]: what is kept of the values of one; [`thread_metrics`]: those of one thread, and their sum
//! - [`saved_sums`]: values on their way from one process to another
//! - [`checks`]: checks and groups by their paths

pub(crate) mod checks;
pub(crate) mod registry;
pub(crate) mod saved_sums;
pub(crate) mod selector;
pub(crate) mod sink;
mod thread_metrics;

pub(crate) use self::thread_metrics::{MetricPlan, MetricSums, ThreadMetrics};
