//! Requests of a run to a language model.

use serde::{Deserialize, Serialize};

use super::goodput::GoodputObjectives;
use super::histogram::{Histogram, Percentiles};
use super::llm_counts::LlmCounts;

/// Requests of a run to a language model, over those that succeeded. Times are in milliseconds. A chunk is an event with
/// a text that is not empty; tokens are those that the server reports in its usage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunLlm {
    /// Requests that succeeded.
    pub requests: u64,
    /// Of these, requests that met all objectives; all without objectives.
    pub good: u64,
    /// Objectives of each request, such as `ttft:500ms tpot:50ms`; empty without any.
    pub objectives: String,
    /// Of these, requests whose response has the number of its tokens.
    pub with_usage: u64,
    /// Of these, requests whose response has no token.
    pub without_tokens: u64,
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of responses.
    pub output_tokens: u64,
    /// Chunks of responses.
    pub chunks: u64,
    /// Mean number of tokens per chunk; `None` without usage.
    pub tokens_per_chunk: Option<f64>,
    /// Events that are not JSON, of all requests.
    pub broken_events: u64,
    /// Requests that met all objectives, per second.
    pub goodput_per_s: f64,
    /// Requests that succeeded, per second.
    pub requests_per_s: f64,
    /// Tokens of prompts per second.
    pub input_tokens_per_s: f64,
    /// Tokens of responses per second.
    pub output_tokens_per_s: f64,
    /// Chunks per second.
    pub chunks_per_s: f64,
    /// Time to first token, from the intended start.
    pub ttft_ms: Percentiles,
    /// Time to first token, from the send.
    pub ttft_service_ms: Percentiles,
    /// Gaps between chunks.
    pub chunk_gap_ms: Percentiles,
    /// Time per output token behind the first, of responses with two tokens and more.
    pub tpot_ms: Percentiles,
    /// Time from the intended start to the end of the response.
    pub e2e_ms: Percentiles,
    /// Histogram of `ttft_ms`, in the format of [`Run::histogram`](crate::Run::histogram).
    pub ttft_histogram: String,
    /// Histogram of `chunk_gap_ms`, in the same format.
    pub chunk_gap_histogram: String,
    /// Histogram of `tpot_ms`, in the same format.
    pub tpot_histogram: String,
    /// Histogram of `e2e_ms`, in the same format.
    pub e2e_histogram: String,
}

impl RunLlm {
    /// Requests of these counts, in a window of `duration_s` seconds.
    pub fn of(counts: &LlmCounts, objectives: &GoodputObjectives, duration_s: f64) -> Self {
        let per_s = |n: u64| n as f64 / duration_s;
        Self {
            requests: counts.requests,
            good: counts.good,
            objectives: objectives.to_string(),
            with_usage: counts.with_usage,
            without_tokens: counts.without_tokens,
            input_tokens: counts.input_tokens,
            output_tokens: counts.output_tokens,
            chunks: counts.chunks,
            tokens_per_chunk: counts.tokens_per_chunk(),
            broken_events: counts.broken_events,
            goodput_per_s: per_s(counts.good),
            requests_per_s: per_s(counts.requests),
            input_tokens_per_s: per_s(counts.input_tokens),
            output_tokens_per_s: per_s(counts.output_tokens),
            chunks_per_s: per_s(counts.chunks),
            ttft_ms: counts.ttft.percentiles(),
            ttft_service_ms: counts.ttft_service.percentiles(),
            chunk_gap_ms: counts.chunk_gaps.percentiles(),
            tpot_ms: counts.tpot.percentiles(),
            e2e_ms: counts.e2e.percentiles(),
            ttft_histogram: counts.ttft.to_base64(),
            chunk_gap_histogram: counts.chunk_gaps.to_base64(),
            tpot_histogram: counts.tpot.to_base64(),
            e2e_histogram: counts.e2e.to_base64(),
        }
    }

    /// Histogram of the times to first token.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn ttft_times(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.ttft_histogram, Histogram::precise)
    }

    /// Histogram of the gaps between chunks.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn chunk_gaps(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.chunk_gap_histogram, Histogram::precise)
    }

    /// Histogram of the times per output token.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn tpot_times(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.tpot_histogram, Histogram::precise)
    }

    /// Histogram of the times to the end of the response.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn e2e_times(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.e2e_histogram, Histogram::precise)
    }
}
