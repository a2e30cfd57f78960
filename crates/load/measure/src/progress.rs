//! Progress of a run, for callbacks.

use super::agent_counts::AgentCounts;
use super::recorder::Interval;
use super::run_steps::StepFacts;
use weir_base::Nanos;

/// Counts of a run so far, reported about once per interval.
#[derive(Debug, Default)]
pub struct RunProgress<'a> {
    /// Time since the start.
    pub elapsed: Nanos,
    /// Requests (with scenarios, iterations) ended so far, up to the last whole second.
    pub ended: u64,
    /// Number of `interval`, from 0.
    pub number: u64,
    /// Last complete interval of all threads, when it has just been completed.
    pub interval: Option<&'a Interval>,
    /// Counts so far of each part that generates the load, an agent or this process, of a load that may be changed.
    pub parts: &'a [AgentCounts],
    /// Number and counts of an interval that not all threads have reached. Each is reported once, at the end.
    pub partial: Option<(u64, &'a Interval)>,
    /// Steps of scripts in agents so far, which the plan does not know; empty of other loads.
    pub named_steps: &'a [StepFacts],
}
