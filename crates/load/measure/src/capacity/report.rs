//! Result of a capacity search (`docs/schema/capacity.schema.json`).

use serde::Serialize;

use super::usl::Usl;
use crate::load_model::LoadModel;
use crate::recovery::RecoveryReport;
use crate::run::Manifest;

/// Version of the JSON format; grows when a field changes its meaning or is removed.
pub const SCHEMA_VERSION: u32 = 2;

/// Result of a capacity search: two bounds, each load level, and the reasons. Fractions are in [0, 1].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacityReport {
    /// Version of weir that wrote it.
    pub weir: String,
    /// Version of this format, [`SCHEMA_VERSION`].
    pub schema: u32,
    /// Kind of loop: loads are requests per second (open) or users (closed).
    pub model: LoadModel,
    /// Target URL.
    pub url: String,
    /// Whether loads of the open loop are iterations of scenarios per second, instead of requests.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub iterations: bool,
    /// Objectives that had to be met.
    pub objectives: Vec<String>,
    /// Lower bound: the highest load that passed, less its margin of error; none if not even the lowest load
    /// passed.
    pub passes: Option<f64>,
    /// Upper bound: the lowest load that failed; none if the highest one passed.
    pub fails: Option<f64>,
    /// Confidence of both bounds, in [0, 1].
    pub confidence: f64,
    /// Bottleneck that limited the load.
    pub limited_by: Bottleneck,
    /// Reason why the upper bound fails, or why there is none.
    pub reason: String,
    /// Resource of the service's machine that was saturated, with `--pid`.
    pub saturated: Option<String>,
    /// Every load level, in order.
    pub steps: Vec<StepReport>,
    /// Universal scalability law; closed loop only, from four numbers of users on.
    pub usl: Option<UslSummary>,
    /// Reason why the search stopped, as a sentence.
    pub stop_reason: String,
    /// Whether an interrupt ended the search; the bounds are the ones so far.
    pub interrupted: bool,
    /// Reason why an agent was lost, if one was: the search ended then, and is not trusted.
    pub lost_agent: Option<String>,
    /// Result of the test of recovery; none without `--recovery`, or without a load for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryReport>,
    /// Command, seed, time and machine.
    pub manifest: Manifest,
}

/// Bottleneck that limited a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bottleneck {
    /// The service.
    Service,
    /// weir itself, or its machine.
    Generator,
    /// Nothing: no load failed.
    None,
}

/// A load level and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepReport {
    /// Requests per second, or users.
    pub load: f64,
    /// Outcome of the step.
    pub outcome: StepResult,
    /// Throughput that the service has significantly kept up with; with users, the load itself. None if it did not
    /// pass.
    pub sustained: Option<f64>,
    /// Reason why it failed, or seemed to.
    pub reason: Option<String>,
    /// Confidence of the outcome, in [0, 1].
    pub confidence: f64,
    /// Measured time, without the warm-up, in seconds.
    pub duration_s: f64,
    /// Responses per second.
    pub achieved_per_s: f64,
    /// Median response time of successes, in milliseconds; none without a success.
    pub p50_ms: Option<f64>,
    /// 99th percentile of response times of successes, in milliseconds; none of fewer than 100, where it would be the
    /// maximum.
    pub p99_ms: Option<f64>,
    /// Failed requests as a fraction of all.
    pub errors: f64,
    /// Requests in the service, on average.
    pub in_flight: f64,
    /// 99th percentile of weir's own lateness, in milliseconds; none without a request.
    pub lateness_p99_ms: Option<f64>,
    /// CPU utilization of weir's busiest thread, in [0, 1].
    pub cpu_utilization: f64,
    /// Cores that the service's processes used, with `--pid`.
    pub service_cores: Option<f64>,
    /// CPU utilization of the whole machine, in [0, 1], with `--pid`.
    pub machine_utilization: Option<f64>,
}

/// Outcome of a load level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StepResult {
    /// All objectives were met, with statistical confidence.
    Passes,
    /// Not decided within a whole step: the load is too near the limit.
    Inconclusive,
    /// An objective was missed, with statistical confidence.
    Fails,
    /// An objective was missed, and weir itself was late or saturated.
    Generator,
}

/// Universal scalability law and figures derived from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UslSummary {
    /// Fitted law.
    #[serde(flatten)]
    pub law: Usl,
    /// Number of users beyond which most of them wait for each other.
    pub knee_users: f64,
    /// Number of users with the highest throughput; none beyond twice the highest number measured.
    pub peak_users: Option<f64>,
    /// Throughput at `peak_users`, per second.
    pub peak_per_s: Option<f64>,
}

impl UslSummary {
    /// Figures derived from a law.
    pub fn of(law: Usl) -> Self {
        let peak = law.peak();
        Self { knee_users: law.knee(), peak_users: peak, peak_per_s: peak.and_then(|users| law.at(users)), law }
    }
}

impl CapacityReport {
    /// Report as indented JSON with a final newline.
    #[allow(clippy::expect_used, reason = "plain structs with string keys always serialise")]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report serialises") + "\n"
    }
}
