//! Result of a load test: one documented, versioned object (`docs/schema/run.schema.json`).

use std::collections::BTreeMap;
use weir_base::grpc_status::{GRPC_OK, status_text};

use serde::{Deserialize, Serialize};

use super::agent_counts::Agent;
use super::end_reason::EndReason;
use super::failure_text::failure_text;
use super::lateness::is_p99_distorted;
use super::load_model::LoadModel;
pub use super::rate::Rate;
use super::run_changes::RunChanges;
use super::run_http2::RunHttp2;
use super::run_llm::RunLlm;
use super::run_replay::RunReplay;
use super::run_script::RunScript;
use super::run_steps::{RunIterations, RunScenario, RunStep};
use super::run_streams::RunStreams;
use super::run_trace::RunTrace;
use super::run_websocket::RunWebSocket;
use super::series::SeriesPoint;
use super::trust::{MAX_CPU_FRACTION, Trust};
use weir_histogram::Histogram;
use weir_histogram::percentiles::Percentiles;

/// Version of the JSON format; grows when a field changes its meaning or is removed. Older runs are rejected.
pub const SCHEMA_VERSION: u32 = 3;

/// Result of a load test. Response time counts from the intended start of a request, service time from its send.
/// Figures are of the window after the warm-up, unless they are described otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of weir that wrote it.
    pub weir: String,
    /// Version of this format, [`SCHEMA_VERSION`].
    pub schema: u32,
    /// Kind of loop.
    pub model: LoadModel,
    /// Target of the requests.
    pub target: RunTarget,
    /// Counts of requests by outcome.
    pub requests: Requests,
    /// Requests per second.
    pub rate_per_s: Rate,
    /// Length of the measured window, without the warm-up, in seconds.
    pub duration_s: f64,
    /// Length of the warm-up before it, in seconds.
    pub warmup_s: f64,
    /// Time from the intended start to the whole response, over successes.
    pub response_ms: Percentiles,
    /// Time from the send to the whole response, over successes.
    pub service_ms: Percentiles,
    /// Time from the send to the first byte of the response, over successes.
    pub first_byte_ms: Percentiles,
    /// Time from the intended start to the end of failed requests: until the response had arrived, or until it was
    /// clear that none would. Without dropped requests, which were never sent.
    pub failed_ms: Percentiles,
    /// Times of all responses, whatever their status, as ab and wrk count them.
    pub responses: Responses,
    /// Time to connect, over the requests that waited for a connection to be made.
    pub connect_ms: Percentiles,
    /// Bytes transferred.
    pub bytes: Bytes,
    /// Number of responses by status: digits of HTTP, or a name of gRPC.
    pub status: BTreeMap<String, u64>,
    /// Successes whose status is one of failures, which their step or a script accepts, by status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accepted: BTreeMap<String, u64>,
    /// Failed requests by kind; their sum is `requests.failed`.
    pub failures: BTreeMap<String, u64>,
    /// Connections of the run.
    pub connections: Connections,
    /// HTTP/2 of these connections; `None` if it was not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http2: Option<RunHttp2>,
    /// Responses as streams of events; `None` if they were not read as such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<RunStreams>,
    /// Requests to a language model; `None` if they were not such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm: Option<RunLlm>,
    /// WebSocket, whose messages are the requests; `None` if it was not spoken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket: Option<RunWebSocket>,
    /// Checks and metrics of the script's own; `None` without such a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<RunScript>,
    /// Log that was replayed; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<RunReplay>,
    /// Trace of a language model that was replayed; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<RunTrace>,
    /// Lateness of the generator itself.
    pub lateness_ms: Percentiles,
    /// User and system time of the generator per request, in microseconds; `None` without requests.
    pub cpu_us_per_request: Option<f64>,
    /// CPU utilization of the busiest generator thread, in [0, 1].
    pub cpu_utilization: f64,
    /// Requests in the system, averaged over time.
    pub in_flight_mean: f64,
    /// Whether the run is valid.
    pub trust: Trust,
    /// Iterations of scenarios; `None` without scenarios.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<RunIterations>,
    /// Scenarios, in order; empty without scenarios.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scenarios: Vec<RunScenario>,
    /// Steps of the scenarios, in order; empty without scenarios.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<RunStep>,
    /// Objectives with their outcomes, in the order given.
    pub slo: Vec<SloResult>,
    /// Whether an interrupt ended the run.
    pub interrupted: bool,
    /// Reason why the run ended before its time: `{"data_rows": FILE}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndReason>,
    /// Condition that ended the run early, with the figure that fulfilled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborted: Option<String>,
    /// Lines of the log of requests (`--jtl`) that were not written, as on a full disk; `None` if all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_log_lines: Option<u64>,
    /// Changes of the load while it ran; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<RunChanges>,
    /// Figures of each agent, if agents generated the load.
    pub agents: Vec<Agent>,
    /// Time series by the second, warm-up included.
    pub series: Vec<SeriesPoint>,
    /// Histogram of response times of successes: HdrHistogram V2 at three digits, in nanoseconds, base64; empty without
    /// any.
    pub histogram: String,
    /// Histogram of service times of successes, in the same format.
    pub service_histogram: String,
    /// Histogram of the times of `failed_ms`, in the same format.
    pub failed_histogram: String,
    /// Command, seed, time and machine.
    pub manifest: Manifest,
}

/// Times of all responses, whatever their status, as ab and wrk count them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Responses {
    /// Time from the intended start to the whole response.
    pub response_ms: Percentiles,
    /// Time from the send to the whole response.
    pub service_ms: Percentiles,
    /// Time from the send to the first byte of the response.
    pub first_byte_ms: Percentiles,
    /// Histogram of the response times, in the format of [`Run::histogram`].
    pub histogram: String,
}

/// Target of the requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTarget {
    /// URL as given, without user and password.
    pub url: String,
    /// Request method.
    pub method: String,
    /// Host of the target.
    pub host: String,
    /// Port of the target.
    pub port: u16,
    /// Path and query.
    pub path: String,
    /// `Server` header of the first response.
    pub server: Option<String>,
    /// Body length of the first response, in bytes.
    pub body_length: Option<u64>,
    /// Number of responses with another body length than the first.
    pub other_lengths: u64,
    /// TLS version and cipher, with TLS.
    pub tls: Option<String>,
    /// Version of HTTP, such as `HTTP/2`; `None` if no connection was made.
    pub http: Option<String>,
    /// Message of the first failure of each kind.
    pub failure_details: BTreeMap<String, String>,
}

/// Counts of requests by outcome; `total` = `ok` + `failed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// Requests with an intended start in the window that have ended: sent, or dropped.
    pub total: u64,
    /// Whole responses with a status below 400.
    pub ok: u64,
    /// All others, dropped ones included.
    pub failed: u64,
    /// Of the failed ones: never sent, since no connection was free in time.
    pub dropped: u64,
    /// Sent late because all connections were busy.
    pub waited: u64,
    /// Cut off by an interrupt; not in `total`.
    pub unfinished: u64,
}

/// Bytes transferred for the requests of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// Bytes read, heads and framing included.
    #[serde(rename = "in")]
    pub read: u64,
    /// Bytes written, heads included.
    #[serde(rename = "out")]
    pub written: u64,
    /// Bytes read, bodies only.
    pub body_in: u64,
}

/// Connections of the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// Maximum number of connections (or users).
    pub max: u64,
    /// Number of connections opened.
    pub opened: u64,
    /// Maximum number of requests that waited for a connection at once.
    pub max_backlog: u64,
}

/// Command, seed, time and machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Command or call of the run, without passwords.
    pub command: Vec<String>,
    /// Seed of arrivals and bodies.
    pub seed: u64,
    /// Start, in seconds since 1970.
    pub started_unix_s: f64,
    /// Number of generator threads.
    pub threads: u64,
    /// Host name.
    pub hostname: String,
    /// Operating system and version.
    pub os: String,
    /// Processor model.
    pub cpu: String,
    /// Number of cores available to the generator.
    pub cores: u64,
    /// Memory of the machine, in MiB.
    pub memory_mib: u64,
}

/// Objective and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SloResult {
    /// Objective as given, e.g. `p99<200ms`.
    pub objective: String,
    /// Whether it was met.
    pub ok: bool,
    /// Measured figure as text, with clock and unit.
    pub measured: String,
}

impl Run {
    /// Histogram of response times of successes.
    ///
    /// # Errors
    /// A damaged histogram, in a run from a file.
    pub fn response_histogram(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.histogram, Histogram::precise)
    }

    /// Histogram of service times of successes.
    ///
    /// # Errors
    /// A damaged histogram, in a run from a file.
    pub fn service_histogram(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.service_histogram, Histogram::precise)
    }

    /// Histogram of times of failed requests that were sent: until the response had arrived, or until it was clear that
    /// none would.
    ///
    /// # Errors
    /// A damaged histogram, in a run from a file.
    pub fn failed_histogram(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.failed_histogram, Histogram::precise)
    }

    /// Rates of what arrives in an open loop: of iterations where there are such, otherwise of requests; `None` in a
    /// closed loop.
    pub fn arrivals_per_s(&self) -> Option<Rate> {
        let rates = self.iterations.as_ref().map_or(self.rate_per_s, |iterations| iterations.rate_per_s);
        (self.model == LoadModel::Open).then_some(rates)
    }

    /// Number of whole responses, whatever their status.
    pub fn response_count(&self) -> u64 {
        self.status.values().sum()
    }

    /// Failed requests by kind, the most frequent first: `120 x 503, 3 timeout`.
    pub fn failed_by_kind(&self) -> String {
        let mut kinds: Vec<(&String, &u64)> = self.failures.iter().collect();
        kinds.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        kinds.iter().map(|(kind, n)| failure_text(n, kind, self.failed_statuses())).collect::<Vec<_>>().join(", ")
    }

    /// Statuses of failed responses, in order.
    pub fn failed_statuses(&self) -> impl Iterator<Item = &str> {
        self.status.keys().map(String::as_str).filter(|status| self.failed_by_status(status) > 0)
    }

    /// Reason why no request succeeded: the failures by kind, or that there was no request.
    pub fn why_none_succeeded(&self) -> String {
        if self.requests.total == 0 { "none was sent".to_owned() } else { self.failed_by_kind() }
    }

    /// Whether a script has measured something else: it has sent no request, and iterations of it have succeeded.
    pub fn needs_no_requests(&self) -> bool {
        self.script.is_some() && self.requests.total == 0 && self.iterations.as_ref().is_some_and(|all| all.ok > 0)
    }

    /// Fraction of failed requests, in [0, 1]; 0 without requests.
    pub fn error_fraction(&self) -> f64 {
        self.requests.failed as f64 / self.requests.total.max(1) as f64
    }

    /// Sentence on the agent that was lost during the run, if one was.
    pub fn failed_agent(&self) -> Option<&str> {
        let is_lost = self.agents.iter().any(|agent| agent.failure.is_some());
        // The first reason of such a run is the lost agent.
        self.trust.reasons.first().filter(|_| is_lost).map(String::as_str)
    }

    /// Whether weir itself may have caused slow responses: a saturated thread, or sends late by more than a tenth of
    /// the 99th percentile of response times.
    pub fn is_generator_fault(&self) -> bool {
        let of = |agent: &Agent| agent.failure.is_some() || is_p99_distorted(&agent.lateness_ms, &agent.response_ms);
        self.cpu_utilization > MAX_CPU_FRACTION
            || is_p99_distorted(&self.lateness_ms, &self.response_ms)
            || self.agents.iter().any(of)
    }

    /// Number of responses with a status that are failures by their status.
    pub fn failed_by_status(&self, status: &str) -> u64 {
        if matches!(status.as_bytes().first(), Some(b'1'..=b'3')) || status == status_text(GRPC_OK) {
            return 0;
        }
        let of = |counts: &BTreeMap<String, u64>| counts.get(status).copied().unwrap_or(0);
        of(&self.status).saturating_sub(of(&self.accepted))
    }

    /// Number of failed requests of a kind.
    pub fn failures_of(&self, kind: &str) -> u64 {
        self.failures.get(kind).copied().unwrap_or(0)
    }
}

impl Responses {
    /// Histogram of the response times.
    ///
    /// # Errors
    /// A damaged histogram, in a run from a file.
    pub fn histogram(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.histogram, Histogram::precise)
    }
}

#[cfg(test)]
mod tests;
