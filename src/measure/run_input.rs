//! Assembly of a [`Run`] from counts.

use std::collections::BTreeMap;

use super::agent_counts::{Agent, AgentCounts};
use super::recorder::Totals;
use super::run::{Bytes, Connections, LoadModel, Manifest, Rate, Requests, Responses, Run, RunTarget, SCHEMA_VERSION};
use super::series::SeriesPoint;
use super::trust::{Evidence, Trust};

/// Input of [`Run::new`]: counts, and facts known before the run.
#[derive(Debug)]
pub struct RunInput {
    /// Kind of loop.
    pub model: LoadModel,
    /// Target of the requests.
    pub target: RunTarget,
    /// Counts of all threads and agents.
    pub totals: Totals,
    /// Time series by the second.
    pub series: Vec<SeriesPoint>,
    /// Length of the window, in seconds; > 0.
    pub duration_s: f64,
    /// Length of the warm-up, in seconds.
    pub warmup_s: f64,
    /// Intended starts per second of the window; open loop only.
    pub offered_per_s: Option<f64>,
    /// Arrivals that were never sent.
    pub dropped: u64,
    /// Requests cut off by an interrupt.
    pub unfinished: u64,
    /// Connections of the run.
    pub connections: Connections,
    /// User and system time of all generator threads in the window, in seconds.
    pub cpu_s: f64,
    /// CPU utilization of the busiest generator thread, in [0, 1].
    pub cpu_utilization: f64,
    /// Whether the generator busy-waits (`--spin`), which makes its CPU utilization meaningless.
    pub spins: bool,
    /// Requests in the system, averaged over time.
    pub in_flight_mean: f64,
    /// Whether an interrupt ended the run.
    pub interrupted: bool,
    /// Counts of each agent, if agents generated the load.
    pub agents: Vec<AgentCounts>,
    /// Command, seed, time and machine.
    pub manifest: Manifest,
}

impl Run {
    /// Run with derived figures and its trust.
    pub fn new(mut input: RunInput) -> Self {
        let counts = std::mem::take(&mut input.agents);
        let RunInput { totals, duration_s, .. } = &input;
        let total = totals.requests + input.dropped;
        let achieved = totals.responses_in_window as f64 / duration_s;
        let offered = input.offered_per_s.unwrap_or(achieved);
        let evidence = Evidence {
            duration_s: *duration_s,
            totals,
            offered,
            achieved,
            dropped: input.dropped,
            cpu_utilization: input.cpu_utilization,
            in_flight_mean: input.in_flight_mean,
            model: input.model,
            spins: input.spins,
        };
        let figures = |counts: AgentCounts| {
            let agent = Agent::of(&counts, *duration_s);
            (counts, agent)
        };
        let agents: Vec<(AgentCounts, Agent)> = counts.into_iter().map(figures).collect();
        let trust = match agents.as_slice() {
            [] => Trust::judge(&evidence),
            agents => Trust::judge_agents(&evidence, agents),
        };
        let failed = totals.failed_response();
        let responses = Responses::of(totals);
        Self {
            weir: env!("CARGO_PKG_VERSION").into(),
            schema: SCHEMA_VERSION,
            model: input.model,
            requests: Requests {
                total,
                ok: totals.ok,
                failed: total - totals.ok,
                dropped: input.dropped,
                waited: totals.waited,
                unfinished: input.unfinished,
            },
            rate_per_s: Rate { offered, achieved },
            duration_s: *duration_s,
            warmup_s: input.warmup_s,
            response_ms: totals.good.response.percentiles(),
            service_ms: totals.good.service.percentiles(),
            first_byte_ms: totals.good.first_byte.percentiles(),
            failed_ms: failed.percentiles(),
            responses,
            connect_ms: totals.connect.percentiles(),
            bytes: Bytes { read: totals.bytes_in, written: totals.bytes_out, body_in: totals.body_in },
            status: totals.by_status(),
            failures: failures(totals, input.dropped),
            lateness_ms: totals.lateness.percentiles(),
            cpu_us_per_request: input.cpu_s * 1e6 / total.max(1) as f64,
            cpu_utilization: input.cpu_utilization,
            in_flight_mean: input.in_flight_mean,
            trust,
            slo: Vec::new(),
            interrupted: input.interrupted,
            agents: agents.into_iter().map(|(_, agent)| agent).collect(),
            histogram: totals.good.response.to_base64(),
            service_histogram: totals.good.service.to_base64(),
            failed_histogram: failed.to_base64(),
            target: RunTarget { body_length: totals.body_length, other_lengths: totals.other_lengths, ..input.target },
            connections: input.connections,
            series: input.series,
            manifest: input.manifest,
        }
    }
}

impl Responses {
    fn of(totals: &Totals) -> Self {
        let mut all = totals.good.clone();
        all.add(&totals.bad);
        Self {
            response_ms: all.response.percentiles(),
            service_ms: all.service.percentiles(),
            first_byte_ms: all.first_byte.percentiles(),
            histogram: all.response.to_base64(),
        }
    }
}

fn failures(totals: &Totals, dropped: u64) -> BTreeMap<String, u64> {
    let mut failures = totals.by_failure();
    if dropped > 0 {
        failures.insert("dropped".into(), dropped);
    }
    failures
}
