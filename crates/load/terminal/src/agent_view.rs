//! An agent of a load as the screen shows it.

use weir_base::Nanos;
use weir_base::terminal_text::single_line;
use weir_measure::agent_counts::AgentCounts;

/// Agent of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AgentView {
    pub(crate) node: String,
    pub(crate) requests: u64,
    pub(crate) failed: u64,
    /// Requests per second since the last look.
    pub(crate) rate_per_s: f64,
    /// 99th percentile of the lateness of its own; None before the first request.
    pub(crate) lateness: Option<Nanos>,
    /// CPU utilization of its busiest thread, in [0, 1].
    pub(crate) cpu: f64,
    pub(crate) clock_error: Nanos,
    /// Why it was lost.
    pub(crate) failure: Option<String>,
}

impl AgentView {
    /// Agent with these counts, after another look `seconds` ago.
    pub(crate) fn of(part: &AgentCounts, before: Option<&Self>, seconds: f64) -> Self {
        let counts = &part.counts;
        let new = counts.requests.saturating_sub(before.map_or(0, |before| before.requests));
        Self {
            node: single_line(&part.node),
            requests: counts.requests,
            failed: counts.requests.saturating_sub(counts.ok),
            rate_per_s: if seconds > 0.0 { new as f64 / seconds } else { 0.0 },
            lateness: counts.lateness.quantile(0.99),
            cpu: counts.cpu_utilization,
            clock_error: part.clock_error,
            failure: part.failure.as_deref().map(single_line),
        }
    }
}
