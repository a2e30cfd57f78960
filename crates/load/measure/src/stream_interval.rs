//! Counts of streamed responses in one interval of the time series.

use serde::{Deserialize, Serialize};

use super::goodput::GoodputObjectives;
use super::llm_timeline::LlmTimeline;
use super::merge::{AddPart, PeerValue, merged};
use super::stream_timeline::StreamTimeline;
use weir_base::Nanos;
use weir_histogram::histogram::{self, Histogram};

merged! {
    /// Counts of streamed responses in one interval: events by when they came, requests by when they ended.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct StreamInterval {
        /// Events.
        pub events: u64 => sum,
        /// Tokens of responses that ended, as the server counts them; 0 without language models.
        pub output_tokens: u64 => sum,
        /// Requests to language models that succeeded.
        pub llm_requests: u64 => sum,
        /// Of these, requests that met all objectives of each request.
        pub good: u64 => sum,
        /// Time from the intended start to the first event, of first events in the interval.
        #[serde(deserialize_with = "histogram::deserialize_coarse")]
        pub first_event: Histogram => sum,
        /// Gaps between events.
        #[serde(deserialize_with = "histogram::deserialize_coarse")]
        pub gaps: Histogram => sum,
        /// Time from the intended start to the first token, of requests that succeeded.
        #[serde(deserialize_with = "histogram::deserialize_coarse")]
        pub ttft: Histogram => sum,
        /// Time per output token after the first, of requests that succeeded.
        #[serde(deserialize_with = "histogram::deserialize_coarse")]
        pub tpot: Histogram => sum,
        /// Gaps between events with tokens.
        #[serde(deserialize_with = "histogram::deserialize_coarse")]
        pub chunk_gaps: Histogram => sum,
        /// Time from the intended start to the end of the response, of requests that succeeded.
        #[serde(deserialize_with = "histogram::deserialize_coarse")]
        pub e2e: Histogram => sum,
    }
}

impl Default for StreamInterval {
    fn default() -> Self {
        Self {
            events: 0,
            output_tokens: 0,
            llm_requests: 0,
            good: 0,
            first_event: Histogram::coarse(),
            gaps: Histogram::coarse(),
            ttft: Histogram::coarse(),
            tpot: Histogram::coarse(),
            chunk_gaps: Histogram::coarse(),
            e2e: Histogram::coarse(),
        }
    }
}

impl StreamInterval {
    /// Records an event, with the gap before it, if it is not the first one.
    #[inline]
    pub fn record_event(&mut self, gap: Option<Nanos>) {
        self.events += 1;
        gap.into_iter().for_each(|gap| self.gaps.record(gap));
    }

    /// Records the first event of a response, which has just come.
    pub fn record_first_event(&mut self, timeline: &StreamTimeline) {
        if let Some(at) = timeline.first_event {
            self.first_event.record(at - timeline.intended);
        }
    }

    /// Records the end of a request to a language model that succeeded, at `done`.
    pub fn record_llm_response(&mut self, timeline: &LlmTimeline, done: Nanos, objectives: &GoodputObjectives) {
        let times = timeline.times(done);
        self.llm_requests += 1;
        self.good += u64::from(objectives.are_met(&times));
        self.output_tokens += timeline.output_tokens.unwrap_or(0);
        times.ttft.into_iter().for_each(|ttft| self.ttft.record(ttft));
        if let Some(tpot) = times.tpot.filter(|_| timeline.output_tokens > Some(1)) {
            self.tpot.record(tpot);
        }
        self.e2e.record(times.e2e);
    }
}

impl AddPart for StreamInterval {
    fn add_part(&mut self, other: &Self) {
        self.add(other);
    }
}

impl PeerValue for StreamInterval {
    fn check(&self) -> Result<(), String> {
        self.check_values()?;
        if self.good <= self.llm_requests && self.e2e.count() == self.llm_requests {
            return Ok(());
        }
        Err("counts of streams in an interval that do not add up".into())
    }
}
