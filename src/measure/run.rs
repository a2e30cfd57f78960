//! The result of a plan, as people's tools read it: one documented, versioned object (`docs/run.schema.json`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::agent::{Agent, AgentCounts};
use super::histogram::{Histogram, Percentiles};
use super::recorder::Totals;
use super::series::SeriesPoint;
use super::trust::{Evidence, Trust};

/// The version of the object's form; it grows when a field changes its meaning or goes.
pub const SCHEMA_VERSION: u32 = 2;

/// Who sets the pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadModel {
    /// A number of users, each of whom waits for its answer.
    Closed,
    /// Arrivals come whether or not answers do.
    Open,
}

/// The result of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The version of weir that made it.
    pub weir: String,
    /// The version of this object's form, [`SCHEMA_VERSION`].
    pub schema: u32,
    /// Who set the pace.
    pub model: LoadModel,
    /// What was asked.
    pub target: RunTarget,
    /// How many requests, and how they ended.
    pub requests: Requests,
    /// Requests per second.
    pub rate_per_s: Rate,
    /// Length of the measured window, without warm-up, in seconds.
    pub duration_s: f64,
    /// Length of the warm-up before it, in seconds.
    pub warmup_s: f64,
    /// From the intended start to the whole answer, over successes.
    pub response_ms: Percentiles,
    /// From the send to the whole answer, over successes.
    pub service_ms: Percentiles,
    /// From the send to the first byte of the answer, over successes.
    pub first_byte_ms: Percentiles,
    /// From the intended start to the end of failed requests: until the response was there, or until it was clear that
    /// none would be. Those that were never sent are not among them.
    #[serde(default)]
    pub failed_ms: Percentiles,
    /// Times of all responses, whatever their status.
    #[serde(default)]
    pub responses: Responses,
    /// Time to connect, over the requests that waited for a connection to be made.
    pub connect_ms: Percentiles,
    /// Bytes moved.
    pub bytes: Bytes,
    /// Answers by status.
    pub status: BTreeMap<String, u64>,
    /// Failed requests by kind.
    pub failures: BTreeMap<String, u64>,
    /// What connections were made.
    pub connections: Connections,
    /// How late the generator itself sent.
    pub lateness_ms: Percentiles,
    /// User and system time of the generator per request, in microseconds.
    pub cpu_us_per_request: f64,
    /// The busiest generator thread's share of a core, in [0, 1].
    pub cpu_share: f64,
    /// Requests in the system, averaged over time.
    pub in_flight_mean: f64,
    /// Whether the run may be believed.
    pub trust: Trust,
    /// Objectives, held or not.
    pub slo: Vec<SloResult>,
    /// Whether the run was cut short by an interrupt.
    pub interrupted: bool,
    /// The part of each agent, where there were several or they were elsewhere.
    #[serde(default)]
    pub agents: Vec<Agent>,
    /// The run second by second, warm-up included.
    pub series: Vec<SeriesPoint>,
    /// Response times of all successes: HdrHistogram V2 at three digits, in nanoseconds, base64.
    pub histogram: String,
    /// Their service times, in the same form.
    pub service_histogram: String,
    /// The times of `failed_ms`, in the same form; empty if there are none.
    #[serde(default)]
    pub failed_histogram: String,
    /// What was run, where and when.
    pub manifest: Manifest,
}

/// Times of all responses, whatever their status, as ab and wrk count them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Responses {
    /// From the intended start to the whole response.
    pub response_ms: Percentiles,
    /// From the send to the whole response.
    pub service_ms: Percentiles,
    /// From the send to its first byte.
    pub first_byte_ms: Percentiles,
    /// The response times: HdrHistogram V2 at three digits, in nanoseconds, base64.
    pub histogram: String,
}

/// What was asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTarget {
    /// The URL as given.
    pub url: String,
    /// The method.
    pub method: String,
    /// The host that was asked.
    pub host: String,
    /// The port that was asked.
    pub port: u16,
    /// Path and query.
    pub path: String,
    /// What the service calls itself (the `Server` header of the first answer).
    pub server: Option<String>,
    /// Body length of the first answer.
    pub body_length: Option<u64>,
    /// Answers with another body length than the first.
    pub other_lengths: u64,
    /// TLS version and cipher, if there is TLS.
    pub tls: Option<String>,
    /// What the first failure of each kind said.
    pub failure_details: BTreeMap<String, String>,
}

/// How many requests, and how they ended. `total` = `ok` + `failed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// All that were meant to start in the window and ended: sent, or dropped.
    pub total: u64,
    /// Whole answers with a status below 400.
    pub ok: u64,
    /// All others, dropped ones included.
    pub failed: u64,
    /// Of the failed: never sent, since no connection was free in time.
    pub dropped: u64,
    /// Sent late because all connections were busy.
    pub waited: u64,
    /// Cut off by an interrupt; not in `total`.
    pub unfinished: u64,
}

/// Requests per second over the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Meant to start; in the closed loop the same as `achieved`.
    pub offered: f64,
    /// Answered.
    pub achieved: f64,
}

/// Bytes moved for the requests of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// Read, heads and framing included.
    #[serde(rename = "in")]
    pub read: u64,
    /// Written.
    #[serde(rename = "out")]
    pub written: u64,
    /// Read, bodies only.
    pub body_in: u64,
}

/// What connections were made, over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// The cap: most connections (or users) at a time.
    pub limit: u64,
    /// Made in all.
    pub opened: u64,
    /// Most requests that waited for a connection at one moment.
    #[serde(rename = "most_backlog")]
    pub max_backlog: u64,
}

/// What was run, where and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The command, or the call, that made the run; secrets left out.
    pub command: Vec<String>,
    /// The seed that repeats its arrivals and bodies.
    pub seed: u64,
    /// When it started, seconds since 1970.
    pub started_unix_s: f64,
    /// Generator threads.
    pub threads: u64,
    /// Name of the machine.
    pub hostname: String,
    /// Operating system and version.
    pub os: String,
    /// Processor model.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: u64,
    /// Memory of the machine, MiB.
    pub memory_mib: u64,
}

/// An objective and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SloResult {
    /// The objective as given.
    pub objective: String,
    /// Whether it held.
    pub ok: bool,
    /// What was measured, in words: figure, clock and unit.
    pub measured: String,
}

/// What a [`Run`] is made from: what was counted, and what was known beforehand.
#[derive(Debug)]
pub struct RunInput {
    /// Who set the pace.
    pub model: LoadModel,
    /// What was asked.
    pub target: RunTarget,
    /// What was counted.
    pub totals: Totals,
    /// The run second by second.
    pub series: Vec<SeriesPoint>,
    /// Length of the window, in seconds; > 0.
    pub duration_s: f64,
    /// Length of the warm-up, in seconds.
    pub warmup_s: f64,
    /// Arrivals per second meant to start in the window (open loop only).
    pub offered_per_s: Option<f64>,
    /// Arrivals never sent.
    pub dropped: u64,
    /// Requests that an interrupt cut off.
    pub unfinished: u64,
    /// Connections made.
    pub connections: Connections,
    /// User and system time of all generator threads in the window, in seconds.
    pub cpu_s: f64,
    /// The busiest generator thread's share of a core.
    pub cpu_share: f64,
    /// Whether the generator spins on purpose, so that its share says nothing.
    pub spins: bool,
    /// Requests in the system, averaged over time.
    pub in_flight_mean: f64,
    /// Whether it was cut short.
    pub interrupted: bool,
    /// What each agent did, where there were some.
    pub agents: Vec<AgentCounts>,
    /// What was run, where and when.
    pub manifest: Manifest,
}

impl Run {
    /// Puts the parts together and judges them.
    pub fn new(mut parts: RunInput) -> Self {
        let accounts = std::mem::take(&mut parts.agents);
        let RunInput { totals, duration_s, .. } = &parts;
        let total = totals.requests + parts.dropped;
        let achieved = totals.responses_in_window as f64 / duration_s;
        let offered = parts.offered_per_s.unwrap_or(achieved);
        let evidence = Evidence {
            duration_s: *duration_s,
            totals,
            offered,
            achieved,
            dropped: parts.dropped,
            cpu_share: parts.cpu_share,
            in_flight_mean: parts.in_flight_mean,
            model: parts.model,
            spins: parts.spins,
        };
        let figures = |account: AgentCounts| {
            let agent = Agent::of(&account, *duration_s);
            (account, agent)
        };
        let agents: Vec<(AgentCounts, Agent)> = accounts.into_iter().map(figures).collect();
        let trust = match agents.as_slice() {
            [] => Trust::judge(&evidence),
            agents => Trust::judge_agents(&evidence, agents),
        };
        let failed = totals.failed_response();
        let responses = Responses::of(totals);
        Self {
            weir: env!("CARGO_PKG_VERSION").into(),
            schema: SCHEMA_VERSION,
            model: parts.model,
            requests: Requests {
                total,
                ok: totals.ok,
                failed: total - totals.ok,
                dropped: parts.dropped,
                waited: totals.waited,
                unfinished: parts.unfinished,
            },
            rate_per_s: Rate { offered, achieved },
            duration_s: *duration_s,
            warmup_s: parts.warmup_s,
            response_ms: totals.good.response.percentiles(),
            service_ms: totals.good.service.percentiles(),
            first_byte_ms: totals.good.first_byte.percentiles(),
            failed_ms: failed.percentiles(),
            responses,
            connect_ms: totals.connect.percentiles(),
            bytes: Bytes { read: totals.bytes_in, written: totals.bytes_out, body_in: totals.body_in },
            status: totals.by_status(),
            failures: failures(totals, parts.dropped),
            lateness_ms: totals.lateness.percentiles(),
            cpu_us_per_request: parts.cpu_s * 1e6 / total.max(1) as f64,
            cpu_share: parts.cpu_share,
            in_flight_mean: parts.in_flight_mean,
            trust,
            slo: Vec::new(),
            interrupted: parts.interrupted,
            agents: agents.into_iter().map(|(_, agent)| agent).collect(),
            histogram: totals.good.response.to_base64(),
            service_histogram: totals.good.service.to_base64(),
            failed_histogram: failed.to_base64(),
            target: RunTarget { body_length: totals.body_length, other_lengths: totals.other_lengths, ..parts.target },
            connections: parts.connections,
            series: parts.series,
            manifest: parts.manifest,
        }
    }

    /// Response times of all successes.
    ///
    /// # Errors
    /// When the run came from a file and its histogram is damaged.
    pub fn response_histogram(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.histogram, Histogram::precise)
    }

    /// Service times of all successes.
    ///
    /// # Errors
    /// When the run came from a file and its histogram is damaged.
    pub fn service_histogram(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.service_histogram, Histogram::precise)
    }

    /// Response times of all failed requests that were sent: until the response was there, or until it was clear that none
    /// would be.
    ///
    /// # Errors
    /// When the run came from a file and its histogram is damaged.
    pub fn failed_histogram(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.failed_histogram, Histogram::precise)
    }

    /// Requests that got a whole answer, whatever its status.
    pub fn response_count(&self) -> u64 {
        self.status.values().sum()
    }

    /// How requests failed, the most frequent kind first: `120 5xx, 3 timeout`.
    pub fn failed_by_kind(&self) -> String {
        let mut kinds: Vec<(&String, &u64)> = self.failures.iter().collect();
        kinds.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        kinds.iter().map(|(kind, n)| format!("{n} {kind}")).collect::<Vec<_>>().join(", ")
    }

    /// Failed requests as a share of all, in [0, 1]; 0 without requests.
    pub fn error_fraction(&self) -> f64 {
        self.requests.failed as f64 / self.requests.total.max(1) as f64
    }

    /// Which agent was lost before the end, and how, in a sentence; none if all were there.
    pub fn failed_agent(&self) -> Option<&str> {
        let is_lost = self.agents.iter().any(|agent| agent.failure.is_some());
        // The first thing that is said against such a run.
        self.trust.reasons.first().filter(|_| is_lost).map(String::as_str)
    }

    /// Failed requests of a kind.
    pub fn failures_of(&self, kind: &str) -> u64 {
        self.failures.get(kind).copied().unwrap_or(0)
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

    /// The response times.
    ///
    /// # Errors
    /// When the run came from a file and its histogram is damaged.
    pub fn histogram(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.histogram, Histogram::precise)
    }
}

fn failures(totals: &Totals, dropped: u64) -> BTreeMap<String, u64> {
    let mut failures = totals.by_failure();
    if dropped > 0 {
        failures.insert("dropped".into(), dropped);
    }
    failures
}
