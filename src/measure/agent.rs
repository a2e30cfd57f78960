//! One agent's part of a run, beside the sum of all: a slow one must not hide in the crowd.

use serde::{Deserialize, Serialize};

use super::counted::RunCounts;
use super::histogram::Percentiles;
use crate::decide::Nanos;

/// One agent's part of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// The node that it ran on.
    pub node: String,
    /// Its generator threads.
    pub threads: u64,
    /// Requests that ended.
    pub requests: u64,
    /// Of these, whole answers with a status below 400.
    pub ok: u64,
    /// Answers per second.
    pub rate_per_s: f64,
    /// From the intended start to the whole answer, over its successes.
    pub response_ms: Percentiles,
    /// How late it sent.
    pub lateness_ms: Percentiles,
    /// User and system time of it per request, in microseconds.
    pub cpu_us_per_request: f64,
    /// Its busiest thread's share of a core, in [0, 1].
    pub cpu_share: f64,
    /// How long after the agreed moment it began, in milliseconds.
    pub began_ms: f64,
    /// The most by which its clock may differ from what we take it for, in milliseconds.
    pub clock_error_ms: f64,
    /// Why it was lost in the middle of the run, if it was.
    #[serde(rename = "lost")]
    pub failure: Option<String>,
}

/// What is known of an agent when a run is over.
#[derive(Clone, Debug, Default)]
pub struct AgentCounts {
    /// The node that it ran on.
    pub node: String,
    /// Its generator threads.
    pub threads: u64,
    /// What it counted.
    pub counts: RunCounts,
    /// The most by which its clock may differ from what we take it for.
    pub clock_error: Nanos,
    /// Why it was lost, if it was.
    pub failure: Option<String>,
}

impl Agent {
    /// Its figures over a window of this length.
    pub fn of(account: &AgentCounts, duration_s: f64) -> Self {
        let RunCounts { totals, .. } = &account.counts;
        Self {
            node: account.node.clone(),
            threads: account.threads,
            requests: totals.requests + account.counts.dropped,
            ok: totals.ok,
            rate_per_s: totals.responses_in_window as f64 / duration_s,
            response_ms: totals.good.response.percentiles(),
            lateness_ms: totals.lateness.percentiles(),
            cpu_us_per_request: account.counts.cpu.as_secs_f64() * 1e6 / totals.requests.max(1) as f64,
            cpu_share: account.counts.cpu_share,
            began_ms: account.counts.began.as_millis_f64(),
            clock_error_ms: account.clock_error.as_millis_f64(),
            failure: account.failure.clone(),
        }
    }
}

/// How far apart agents began, in milliseconds; those without work began at no time.
pub fn skew_ms(agents: &[Agent]) -> f64 {
    let began =
        || agents.iter().filter(|agent| agent.threads > 0 && agent.failure.is_none()).map(|agent| agent.began_ms);
    let (first, last) = (began().fold(f64::INFINITY, f64::min), began().fold(0.0, f64::max));
    (last - first).max(0.0)
}

/// The most by which a clock of theirs may be wrong, in milliseconds.
pub fn clock_error_ms(agents: &[Agent]) -> f64 {
    agents.iter().map(|agent| agent.clock_error_ms).fold(0.0, f64::max)
}
