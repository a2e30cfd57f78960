//! Counts of requests to language models.

use serde::{Deserialize, Serialize};

use super::goodput::GoodputObjectives;
use super::llm_timeline::LlmTimeline;
use super::llm_window_counts::LlmWindowCounts;
use super::merge::{AddPart, PeerValue, merged};
use weir_base::Nanos;
use weir_histogram::Histogram;

merged! {
    /// Counts of requests to language models; sums over threads and agents.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct LlmCounts {
        /// Requests that succeeded.
        pub requests: u64 => sum,
        /// Of these, requests that met all objectives; all without objectives.
        pub good: u64 => sum,
        /// Of these, requests whose response has the number of its tokens.
        pub with_usage: u64 => sum,
        /// Of these, requests whose response has no token.
        pub without_tokens: u64 => sum,
        /// Tokens of prompts, as the server counts them.
        pub input_tokens: u64 => sum,
        /// Tokens of responses, as the server counts them.
        pub output_tokens: u64 => sum,
        /// Chunks: events with a text that is not empty.
        pub chunks: u64 => sum,
        /// Chunks of responses that have the number of their tokens: the divisor of tokens per chunk.
        pub chunks_with_usage: u64 => sum,
        /// Events that are not JSON, of all requests.
        pub broken_events: u64 => sum,
        /// Time to first token, from the intended start.
        pub ttft: Histogram => sum,
        /// Time to first token, from the send.
        pub ttft_service: Histogram => sum,
        /// Lateness of the send of requests with a token: the generator's own part of their time to first token.
        pub ttft_lateness: Histogram => sum,
        /// Time from the arrival of the first token, by the kernel's timestamp, until it was read.
        pub ttft_read_delay: Histogram => sum,
        /// Requests whose first token has no timestamp of the kernel.
        pub ttft_unstamped: u64 => sum,
        /// Gaps between chunks.
        pub chunk_gaps: Histogram => sum,
        /// Time per output token after the first, of responses with two tokens and more.
        pub tpot: Histogram => sum,
        /// Time from the intended start to the end of the response, divided by its number of tokens.
        pub ntpot: Histogram => sum,
        /// Time from the intended start to the end of the response.
        pub e2e: Histogram => sum,
        /// Counts within the window, also of requests from the warm-up.
        pub in_window: LlmWindowCounts => sum,
    }
}

impl LlmCounts {
    /// Records a gap, as [`LlmTimeline::record_chunk`] returned it.
    #[inline]
    pub fn record_gap(&mut self, gap: Nanos) {
        self.chunk_gaps.record(gap);
    }

    /// Records the end of a request that succeeded, at `done`; its gaps were recorded one by one.
    pub fn record_response(&mut self, timeline: &LlmTimeline, done: Nanos, objectives: &GoodputObjectives) {
        let times = timeline.times(done);
        self.requests += 1;
        self.good += u64::from(objectives.are_met(&times));
        self.input_tokens += timeline.input_tokens.unwrap_or(0);
        self.chunks += timeline.chunks;
        self.broken_events += timeline.broken_events;
        if let Some(tokens) = timeline.output_tokens {
            self.with_usage += 1;
            self.output_tokens += tokens;
            self.chunks_with_usage += timeline.chunks;
        }
        match timeline.first_chunk {
            Some(at) => {
                self.ttft.record(at - timeline.intended);
                self.ttft_service.record(at - timeline.sent);
                self.ttft_lateness.record(timeline.sent - timeline.ready);
                match timeline.first_read_delay {
                    Some(delay) => self.ttft_read_delay.record(delay),
                    None => self.ttft_unstamped += 1,
                }
            }
            None => self.without_tokens += 1,
        }
        if let Some(tpot) = times.tpot.filter(|_| timeline.output_tokens > Some(1)) {
            self.tpot.record(tpot);
        }
        if let Some(ntpot) = timeline.ntpot(done) {
            self.ntpot.record(ntpot);
        }
        self.e2e.record(times.e2e);
    }

    /// Records a request that failed: only what is broken counts.
    pub fn record_failure(&mut self, timeline: &LlmTimeline) {
        self.broken_events += timeline.broken_events;
    }

    /// Mean number of tokens per chunk; none without usage.
    pub fn tokens_per_chunk(&self) -> Option<f64> {
        (self.chunks_with_usage > 0).then(|| self.output_tokens as f64 / self.chunks_with_usage as f64)
    }

    /// Whether the counts add up.
    pub(super) fn adds_up(&self) -> bool {
        self.e2e.count() == self.requests
            && self.good <= self.requests
            && self.with_usage <= self.requests
            && self.ttft.count() == self.requests - self.without_tokens.min(self.requests)
            && self.ttft_service.count() == self.ttft.count()
            && self.ttft_lateness.count() == self.ttft.count()
            && self.ttft_read_delay.count() + self.ttft_unstamped == self.ttft.count()
            && self.tpot.count() <= self.ntpot.count()
            && self.ntpot.count() <= self.with_usage
            && self.chunks_with_usage <= self.chunks
    }
}

impl AddPart for LlmCounts {
    fn add_part(&mut self, other: &Self) {
        self.add(other);
    }
}

impl PeerValue for LlmCounts {
    fn check(&self) -> Result<(), String> {
        self.check_values()?;
        if self.adds_up() { Ok(()) } else { Err("counts of language models that do not add up".into()) }
    }
}

#[cfg(test)]
mod tests;
