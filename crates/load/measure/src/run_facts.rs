//! Assembly of a [`Run`] from counts, and from facts that are not counted.

use std::collections::BTreeMap;

use super::agent_counts::{Agent, AgentCounts};
use super::counts::Counts;
use super::end_reason::EndReason;
use super::goodput::GoodputObjectives;
use super::llm_counts::LlmCounts;
use super::load_model::LoadModel;
use super::run::{Bytes, Connections, Manifest, Rate, Requests, Responses, Run, RunTarget, SCHEMA_VERSION};
use super::run_changes::RunChanges;
use super::run_http2::RunHttp2;
use super::run_llm::RunLlm;
use super::run_steps::{RunIterations, RunScenario, RunStep, StepFacts};
use super::run_streams::RunStreams;
use super::run_websocket::RunWebSocket;
use super::series::RunSeries;
use super::step_counts::{IterationCounts, StepCounts};
use super::stolen_time::StolenTime;
use super::stream_counts::StreamCounts;
use super::trust::{Evidence, Trust};
use weir_base::Nanos;
use weir_base::grpc_status::status_text;

/// Facts of a run that are not counted: of its plan and of its end.
#[derive(Clone, Debug, Default)]
pub struct RunFacts {
    /// Kind of loop.
    pub model: LoadModel,
    /// Target of the requests; facts from its responses are in [`Counts`].
    pub target: RunTarget,
    /// Length of the warm-up.
    pub warmup: Nanos,
    /// End of the window after it, since the start of the run.
    pub end: Nanos,
    /// End of the arrivals of an open loop, at most `end`.
    pub arrivals_end: Option<Nanos>,
    /// Maximum number of connections (or users).
    pub max_connections: u64,
    /// Maximum number of streams of a connection, if HTTP/2 was requested.
    pub streams: Option<u64>,
    /// Whether responses were read as streams of events.
    pub reads_events: bool,
    /// Objectives of each request to a language model, if requests were such.
    pub llm_objectives: Option<GoodputObjectives>,
    /// Whether the generator busy-waits (`--spin`), which makes its CPU utilization meaningless.
    pub spins: bool,
    /// Whether an interrupt ended the run.
    pub interrupted: bool,
    /// Reason of an early end.
    pub ended_by: Option<EndReason>,
    /// Changes of the load while it ran.
    pub changes: Option<RunChanges>,
    /// Names of the scenarios; empty without scenarios.
    pub scenarios: Vec<String>,
    /// Steps of the scenarios; empty without scenarios.
    pub steps: Vec<StepFacts>,
    /// CPU time that the machine took from the generator, if it is this process.
    pub stolen: StolenTime,
}

impl RunFacts {
    /// Length of the window, in seconds; > 0.
    fn duration_s(&self) -> f64 {
        (self.end - self.warmup).as_secs_f64().max(1e-9)
    }

    /// Length that rates are of, in seconds: what takes no time has none, and no rate.
    fn rated_s(&self) -> f64 {
        if self.end > self.warmup { self.duration_s() } else { f64::INFINITY }
    }

    /// Length of the arrivals of an open loop within the window, in seconds.
    fn arrivals_s(&self) -> Option<f64> {
        self.arrivals_end.map(|end| (end - self.warmup).as_secs_f64().max(1e-9))
    }

    fn rate(&self, counts: &Counts) -> Rate {
        let achieved = counts.responses_in_window as f64 / self.rated_s();
        let offered = match self.arrivals_s() {
            // What arrives are iterations; how many requests they would have had is not known.
            _ if !self.steps.is_empty() => achieved,
            Some(_) if counts.offered == 0 => 0.0,
            Some(length) => counts.offered as f64 / length,
            None => achieved,
        };
        Rate { offered, achieved }
    }

    fn run_scenarios(&self, counts: &Counts) -> Vec<RunScenario> {
        let none = IterationCounts::default();
        let of = |index: usize| counts.scenarios.get(index).unwrap_or(&none);
        let named = self.scenarios.iter().enumerate();
        named.map(|(index, name)| RunScenario::of(name, of(index), self.rated_s())).collect()
    }

    fn run_steps(&self, counts: &Counts, series: &RunSeries, end_s: f64) -> Vec<RunStep> {
        let none = StepCounts::default();
        let step = |(index, facts): (usize, &StepFacts)| {
            let counts = counts.steps.get(index).unwrap_or(&none);
            RunStep::of(facts, counts, series.step_points(index, end_s), self.rated_s())
        };
        self.steps.iter().enumerate().map(step).collect()
    }

    fn http2(&self, counts: &Counts) -> Option<RunHttp2> {
        self.streams.map(|streams| RunHttp2::of(streams, &counts.http2))
    }

    fn run_streams(&self, counts: &Counts) -> Option<RunStreams> {
        let none = StreamCounts::default();
        (self.reads_events || counts.streams.is_some())
            .then(|| RunStreams::of(counts.streams.as_deref().unwrap_or(&none), self.rated_s()))
    }

    fn run_llm(&self, counts: &Counts) -> Option<RunLlm> {
        let none = LlmCounts::default();
        let counts = counts.llm.as_deref().unwrap_or(&none);
        self.llm_objectives.map(|objectives| RunLlm::of(counts, &objectives, self.rated_s()))
    }

    fn target_of(self, counts: &Counts) -> RunTarget {
        RunTarget {
            server: counts.server.clone().filter(|server| !server.is_empty()),
            body_length: counts.body_lengths.first,
            other_lengths: counts.other_lengths(),
            tls: counts.tls.clone(),
            http: counts.http.clone(),
            failure_details: failure_details(counts),
            ..self.target
        }
    }
}

impl Run {
    /// Run with derived figures and its trust. `counts` are those of all threads and agents; `agents` is empty if this
    /// process generated the load.
    pub fn of(
        facts: RunFacts,
        counts: &Counts,
        agents: &[AgentCounts],
        series: &RunSeries,
        manifest: Manifest,
    ) -> Self {
        let (duration_s, rate) = (facts.duration_s(), facts.rate(counts));
        let rated_s = facts.rated_s();
        let evidence = Evidence {
            counts,
            duration_s,
            achieved: rate.achieved,
            in_flight_mean: counts.area / (facts.end - facts.warmup).0.max(1) as f64,
            model: facts.model,
            spins: facts.spins,
        };
        let figures: Vec<Agent> = agents.iter().map(|agent| Agent::of(agent, rated_s)).collect();
        let end_s = counts.last_done.max(facts.end).as_secs_f64();
        let steps = facts.run_steps(counts, series, end_s);
        let trust = match agents {
            [] => Trust::judge(&evidence),
            agents => Trust::judge_agents(&evidence, agents, &figures),
        };
        let trust = trust.with_steps(&steps).with_stolen_time(&facts.stolen, &evidence);
        let (total, failed) = (counts.ended(), counts.failed_response());
        Self {
            weir: env!("CARGO_PKG_VERSION").into(),
            schema: SCHEMA_VERSION,
            model: facts.model,
            requests: Requests {
                total,
                ok: counts.ok,
                failed: total - counts.ok,
                dropped: counts.dropped,
                waited: counts.waited,
                unfinished: counts.unfinished,
            },
            rate_per_s: rate,
            duration_s,
            warmup_s: facts.warmup.as_secs_f64(),
            response_ms: counts.good.response.percentiles(),
            service_ms: counts.good.service.percentiles(),
            first_byte_ms: counts.good.first_byte.percentiles(),
            failed_ms: failed.percentiles(),
            responses: Responses::of(counts),
            connect_ms: counts.connect.percentiles(),
            bytes: Bytes { read: counts.bytes_in, written: counts.bytes_out, body_in: counts.body_in },
            status: counts.statuses.iter().map(|(status, n)| (status_text(status).into_owned(), n)).collect(),
            accepted: counts
                .accepted
                .iter()
                .flat_map(|all| all.iter())
                .map(|(status, n)| (status_text(status).into_owned(), n))
                .collect(),
            failures: counts.by_failure(),
            connections: Connections {
                max: facts.max_connections,
                opened: counts.connections,
                max_backlog: counts.max_backlog,
            },
            http2: facts.http2(counts),
            streams: facts.run_streams(counts),
            llm: facts.run_llm(counts),
            websocket: counts.websocket.as_deref().map(RunWebSocket::of),
            script: None,
            replay: None,
            trace: None,
            lateness_ms: counts.lateness.percentiles(),
            cpu_us_per_request: counts.cpu_us_per(total),
            cpu_utilization: counts.cpu_utilization,
            in_flight_mean: evidence.in_flight_mean,
            trust,
            iterations: Some(RunIterations::of(counts, facts.rated_s(), facts.arrivals_s())).filter(|iterations| {
                let has_some = iterations.total + iterations.unfinished > 0;
                !facts.steps.is_empty() || (!facts.scenarios.is_empty() && has_some)
            }),
            scenarios: facts.run_scenarios(counts),
            steps,
            slo: Vec::new(),
            interrupted: facts.interrupted,
            ended_by: facts.ended_by.clone(),
            aborted: None,
            lost_log_lines: None,
            changes: facts.changes.clone(),
            agents: figures,
            series: series.points(end_s),
            histogram: counts.good.response.to_base64(),
            service_histogram: counts.good.service.to_base64(),
            failed_histogram: failed.to_base64(),
            target: facts.target_of(counts),
            manifest,
        }
    }
}

/// First message of each kind of failures, and of each status of gRPC.
fn failure_details(counts: &Counts) -> BTreeMap<String, String> {
    let kinds = counts.details.iter().map(|(kind, text)| (kind.name().to_owned(), text.clone()));
    // A response that came after its timeout has a message, and does not count as one.
    let has_counted = |status: &u16| counts.statuses.iter().any(|(counted, _)| counted == *status);
    let statuses = counts.messages.iter().filter(|(status, _)| has_counted(status));
    let statuses = statuses.map(|(status, text)| (status_text(*status).into_owned(), text.clone()));
    kinds.chain(statuses).collect()
}

impl Responses {
    fn of(counts: &Counts) -> Self {
        let mut all = counts.good.clone();
        all.add(&counts.bad);
        Self {
            response_ms: all.response.percentiles(),
            service_ms: all.service.percentiles(),
            first_byte_ms: all.first_byte.percentiles(),
            histogram: all.response.to_base64(),
        }
    }
}
