//! Counts of a run, or of a part of it: a thread, an agent, an interval.

use std::collections::BTreeMap;
use std::iter::Sum;

use serde::{Deserialize, Serialize};

use super::http2_counts::Http2Counts;
use super::llm_counts::LlmCounts;
use super::merge::{AddPart, PeerValue, at, merged, texts};
use super::response_counts::{BodyLengths, CheckedResponses, StatusCounts, failed_by_kind};
use super::step_counts::{IterationCounts, StepCounts};
use super::stream_counts::StreamCounts;
use super::times::ResponseTimes;
use super::websocket_counts::WebSocketCounts;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_histogram::Histogram;

merged! {
    /// Counts of the measured window; agents send them as JSON.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct Counts {
        /// Requests that ended, without dropped and unfinished ones.
        pub requests: u64 => sum,
        /// Whole responses with a status below 400, or OK of gRPC.
        pub ok: u64 => sum,
        /// Responses that ended within the window, the numerator of the rate.
        pub responses_in_window: u64 => sum,
        /// Number of responses by status.
        pub statuses: StatusCounts => sum,
        /// Requests without a response, by kind.
        pub failures: [u64; FailureKind::ALL.len()] => sum,
        /// Bytes read, heads and framing included.
        pub bytes_in: u64 => sum,
        /// Bytes of response bodies.
        pub body_in: u64 => sum,
        /// Bytes written.
        pub bytes_out: u64 => sum,
        /// Times of successes.
        pub good: ResponseTimes => sum,
        /// Times of whole responses with a status of 400 and above, separate so that fast failures improve no
        /// percentile.
        pub bad: ResponseTimes => sum,
        /// Time from the intended start to the failure, of requests without a whole response.
        pub no_response: Histogram => sum,
        /// Time to connect, of requests that waited for it.
        pub connect: Histogram => sum,
        /// Lateness of the generator itself.
        pub lateness: Histogram => sum,
        /// Requests that waited because every connection was busy.
        pub waited: u64 => sum,
        /// Body length of the first response, and of how many others.
        pub body_lengths: BodyLengths => sum,
        /// Requests in the system, integrated over the window, in request nanoseconds.
        pub area: f64 => sum,
        /// End of the last request, since the start of the run.
        pub last_done: Nanos => maximum,
        /// Requests in flight when the run was interrupted.
        pub unfinished: u64 => sum,
        /// Arrivals of the open loop with an intended start in the window.
        pub offered: u64 => sum,
        /// Of these, arrivals that were never sent.
        pub dropped: u64 => sum,
        /// Maximum number of requests that waited for a connection at once; of a later interval, its growth.
        pub max_backlog: u64 => sum,
        /// Number of connections opened.
        pub connections: u64 => sum,
        /// `Server` header of the first response; empty if it has none.
        #[serde(serialize_with = "texts::serialize_one")]
        pub server: Option<String> => first,
        /// TLS version and cipher.
        #[serde(serialize_with = "texts::serialize_one")]
        pub tls: Option<String> => first,
        /// Version of HTTP that was spoken first, such as `HTTP/2`.
        #[serde(serialize_with = "texts::serialize_one")]
        pub http: Option<String> => first,
        /// Connections with HTTP/2.
        pub http2: Http2Counts => sum,
        /// Message of the first failure of each kind.
        #[serde(serialize_with = "texts::serialize_each")]
        pub details: BTreeMap<FailureKind, String> => first_of_each,
        /// CPU time of the generator in the window.
        pub cpu: Nanos => sum,
        /// CPU utilization of its busiest thread since the start of the window, in [0, 1].
        pub cpu_utilization: f64 => maximum,
        /// Time of its busiest thread within calls of a script since the start of the window, as a fraction of all.
        pub script_utilization: f64 => maximum,
        /// Longest call of a script in the window.
        pub longest_script_call: Nanos => maximum,
        /// Offset of the last thread's start from the start of the run.
        pub began: Nanos => maximum,
        /// Responses whose success is not that of their status.
        pub unexpected: CheckedResponses => sum,
        /// Successes whose status is one of failures, which their step or a program accepts; none without any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub accepted: Option<Box<StatusCounts>> => sum,
        /// Message of the first response of each status of gRPC other than OK.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty", serialize_with = "texts::serialize_each")]
        pub messages: BTreeMap<u16, String> => first_of_each,
        /// Iterations of each scenario, in order; empty without scenarios.
        pub scenarios: Vec<IterationCounts> => sum,
        /// Steps of the scenarios, in order; empty without scenarios.
        pub steps: Vec<StepCounts> => sum,
        /// Streamed responses; none if responses are not read as streams.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub streams: Option<Box<StreamCounts>> => sum,
        /// Requests to language models; none if they are not such.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub llm: Option<Box<LlmCounts>> => sum,
        /// Connections and messages of WebSocket; none if it was not spoken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub websocket: Option<Box<WebSocketCounts>> => sum,
    }
}

impl Counts {
    /// Takes the memory for what any request may record: at the first success, and at the first failure, other responses
    /// would wait for it.
    pub(super) fn reserve(&mut self) {
        self.good.reserve();
        self.bad.reserve();
        [&mut self.no_response, &mut self.connect, &mut self.lateness].into_iter().for_each(Histogram::reserve);
    }

    /// Counts of a scenario by its index.
    pub fn scenario(&mut self, index: u32) -> &mut IterationCounts {
        at(&mut self.scenarios, index)
    }

    /// Counts of a step by its index among all steps.
    pub fn step(&mut self, index: u32) -> &mut StepCounts {
        at(&mut self.steps, index)
    }

    /// CPU time per request, in microseconds; `None` without requests.
    pub fn cpu_us_per(&self, requests: u64) -> Option<f64> {
        (requests > 0).then(|| self.cpu.as_secs_f64() * 1e6 / requests as f64)
    }

    /// Adds later counts of the same thread or agent.
    pub fn add_later(&mut self, later: &Self) {
        self.add(later);
        // Utilization is an average since the start of the window: the latest value replaces earlier ones.
        self.cpu_utilization = later.cpu_utilization;
        self.script_utilization = later.script_utilization;
    }

    /// Checks counts that a peer sent.
    ///
    /// # Errors
    /// The first impossible value.
    pub fn check(&self) -> Result<(), String> {
        self.check_values()?;
        if !(0.0..1e6).contains(&self.cpu_utilization) {
            return Err(format!("invalid CPU utilization {}", self.cpu_utilization));
        }
        if !(0.0..1e6).contains(&self.script_utilization) {
            return Err(format!("invalid utilization by a script {}", self.script_utilization));
        }
        let responses = self.responses();
        let adds_up = self.statuses.sum(0..1000) == responses
            && self.failures.iter().sum::<u64>() + responses == self.requests
            && self.ok == self.good.count()
            && self.body_lengths.same <= responses
            && self.no_response.count() == self.no_response_count()
            && self.steps.iter().all(StepCounts::adds_up)
            && self.scenarios.iter().all(IterationCounts::adds_up)
            && [&self.good, &self.bad].iter().all(|times| times.service.count() == times.count());
        if adds_up { Ok(()) } else { Err("counts that do not add up".into()) }
    }

    /// Requests that have ended: sent, or dropped.
    pub fn ended(&self) -> u64 {
        self.requests + self.dropped
    }

    /// Number of whole responses, whatever their status.
    pub fn responses(&self) -> u64 {
        self.good.count() + self.bad.count()
    }

    /// Mean response time of all whole responses, in nanoseconds; 0 without any.
    pub fn mean_response_ns(&self) -> f64 {
        let sum = |times: &ResponseTimes| times.response.sum_ns();
        (sum(&self.good) + sum(&self.bad)) / self.responses().max(1) as f64
    }

    /// Histogram of times of failures: until the response had arrived, or until it was clear that none would.
    pub fn failed_response(&self) -> Histogram {
        let mut all = self.bad.response.clone();
        all.add(&self.no_response);
        all
    }

    /// Number of requests that ended without a response.
    pub fn no_response_count(&self) -> u64 {
        self.requests - self.responses()
    }

    /// Number of responses with another body length than the first.
    pub fn other_lengths(&self) -> u64 {
        self.responses() - self.body_lengths.same
    }

    /// Failed requests by kind: without a response, of class `4xx` or `5xx` (and above), `check`, or `dropped`.
    pub fn by_failure(&self) -> BTreeMap<String, u64> {
        failed_by_kind(&self.failures, &self.statuses, self.unexpected, self.dropped)
    }
}

impl AddPart for Counts {
    fn add_part(&mut self, other: &Self) {
        self.add(other);
    }
}

impl PeerValue for Counts {
    fn check(&self) -> Result<(), String> {
        Self::check(self)
    }
}

impl<'a> Sum<&'a Self> for Counts {
    fn sum<I: Iterator<Item = &'a Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |mut sum, part| {
            sum.add(part);
            sum
        })
    }
}

#[cfg(test)]
mod tests;
