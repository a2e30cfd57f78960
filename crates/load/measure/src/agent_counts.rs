//! Figures of one agent of a run: a slow agent must not hide in the sum.

use serde::{Deserialize, Serialize};

use super::counts::Counts;
use weir_base::Nanos;
use weir_histogram::percentiles::Percentiles;

/// One agent's part of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Node of the agent.
    pub node: String,
    /// Number of generator threads; 0 without any work.
    pub threads: u64,
    /// Requests that have ended: sent, or dropped.
    pub requests: u64,
    /// Of these, whole responses with a status below 400.
    pub ok: u64,
    /// Responses per second.
    pub rate_per_s: f64,
    /// Time from the intended start to the whole response, over its successes.
    pub response_ms: Percentiles,
    /// Lateness of the agent.
    pub lateness_ms: Percentiles,
    /// User and system time of the agent per request, in microseconds; `None` without requests.
    pub cpu_us_per_request: Option<f64>,
    /// CPU utilization of its busiest thread, in [0, 1].
    pub cpu_utilization: f64,
    /// Offset of its start from the common start, in milliseconds.
    pub start_offset_ms: f64,
    /// Maximum error of its clock, in milliseconds.
    pub clock_error_ms: f64,
    /// Reason why it was lost during the run, if it was.
    #[serde(rename = "lost")]
    pub failure: Option<String>,
}

/// Counts of an agent at the end of a run.
#[derive(Clone, Debug, Default)]
pub struct AgentCounts {
    /// Node of the agent.
    pub node: String,
    /// Number of generator threads; 0 without any work.
    pub threads: u64,
    /// Counts of the run.
    pub counts: Counts,
    /// Maximum error of its clock.
    pub clock_error: Nanos,
    /// Reason why it was lost, if it was.
    pub failure: Option<String>,
}

impl Agent {
    /// Figures over a window of this length, in seconds.
    pub fn of(agent: &AgentCounts, duration_s: f64) -> Self {
        let counts = &agent.counts;
        Self {
            node: agent.node.clone(),
            threads: agent.threads,
            requests: counts.ended(),
            ok: counts.ok,
            rate_per_s: counts.responses_in_window as f64 / duration_s,
            response_ms: counts.good.response.percentiles(),
            lateness_ms: counts.lateness.percentiles(),
            cpu_us_per_request: counts.cpu_us_per(counts.requests),
            cpu_utilization: counts.cpu_utilization,
            start_offset_ms: counts.began.as_millis_f64(),
            clock_error_ms: agent.clock_error.as_millis_f64(),
            failure: agent.failure.clone(),
        }
    }
}

/// Time between the first and the last start, in milliseconds, over agents with work that were not lost.
pub fn skew_ms(agents: &[Agent]) -> f64 {
    let began = || {
        agents.iter().filter(|agent| agent.threads > 0 && agent.failure.is_none()).map(|agent| agent.start_offset_ms)
    };
    let (first, last) = (began().fold(f64::INFINITY, f64::min), began().fold(0.0, f64::max));
    (last - first).max(0.0)
}

/// Maximum error of their clocks, in milliseconds.
pub fn clock_error_ms(agents: &[Agent]) -> f64 {
    agents.iter().map(|agent| agent.clock_error_ms).fold(0.0, f64::max)
}
