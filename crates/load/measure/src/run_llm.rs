//! Requests of a run to a language model.

use serde::{Deserialize, Serialize};

use super::goodput::GoodputObjectives;
use super::llm_counts::LlmCounts;
use super::llm_timeline::LlmTimeline;
use super::llm_window_counts::LlmWindowCounts;
use super::time_window::TimeWindow;
use weir_base::Nanos;
use weir_histogram::Histogram;
use weir_histogram::percentiles::Percentiles;

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
    /// Of these, requests whose response has the number of its tokens, or whose tokens were counted.
    pub with_usage: u64,
    /// Of those with a number, requests whose tokens weir has counted, with a tokenizer, since the server does not.
    pub with_counted_tokens: u64,
    /// Of all that succeeded, requests whose response has no token.
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
    /// Requests that met all objectives per second, by the end of the response within the window.
    pub goodput_per_s: f64,
    /// Requests that succeeded per second, by the end of the response within the window.
    pub requests_per_s: f64,
    /// Tokens of prompts per second, by the first chunk within the window.
    pub input_tokens_per_s: f64,
    /// Tokens of responses per second, by the chunks within the window.
    pub output_tokens_per_s: f64,
    /// Chunks per second, by their arrival within the window.
    pub chunks_per_s: f64,
    /// Time to first token, from the intended start.
    pub ttft_ms: Percentiles,
    /// Time to first token, from the send.
    pub ttft_service_ms: Percentiles,
    /// Lateness of the send, by weir itself, of requests with a token: the part of `ttft_ms` that is the client's.
    pub ttft_lateness_ms: Percentiles,
    /// Time from the arrival of the first token, by the kernel's timestamp, until it was read; not part of `ttft_ms`.
    pub ttft_read_delay_ms: Percentiles,
    /// Requests whose first token has no timestamp of the kernel: the delay until it was read is unknown, and part of
    /// their `ttft_ms`.
    pub ttft_unstamped: u64,
    /// Gaps between chunks.
    pub chunk_gap_ms: Percentiles,
    /// Time per output token after the first, of responses with two tokens and more.
    pub tpot_ms: Percentiles,
    /// Normalized time per output token: from the intended start to the end, divided by the number of tokens.
    #[serde(default)]
    pub ntpot_ms: Percentiles,
    /// Time from the intended start to the end of the response.
    pub e2e_ms: Percentiles,
    /// Histogram of `ttft_ms`, in the format of [`Run::histogram`](crate::Run::histogram).
    pub ttft_histogram: String,
    /// Histogram of `chunk_gap_ms`, in the same format.
    pub chunk_gap_histogram: String,
    /// Histogram of `tpot_ms`, in the same format.
    pub tpot_histogram: String,
    /// Histogram of `ntpot_ms`, in the same format; empty in runs of versions before it.
    #[serde(default)]
    pub ntpot_histogram: String,
    /// Histogram of `e2e_ms`, in the same format.
    pub e2e_histogram: String,
}

impl RunLlm {
    /// Requests of these counts, in a window of `duration_s` seconds.
    pub fn of(counts: &LlmCounts, objectives: &GoodputObjectives, duration_s: f64) -> Self {
        let in_window = &counts.in_window;
        let per_s = |n: u64| n as f64 / duration_s;
        Self {
            requests: counts.requests,
            good: counts.good,
            objectives: objectives.to_string(),
            with_usage: counts.with_usage,
            with_counted_tokens: 0,
            without_tokens: counts.without_tokens,
            input_tokens: counts.input_tokens,
            output_tokens: counts.output_tokens,
            chunks: counts.chunks,
            tokens_per_chunk: counts.tokens_per_chunk(),
            broken_events: counts.broken_events,
            goodput_per_s: per_s(in_window.good),
            requests_per_s: per_s(in_window.requests),
            input_tokens_per_s: per_s(in_window.input_tokens),
            output_tokens_per_s: per_s(in_window.output_tokens),
            chunks_per_s: per_s(in_window.chunks),
            ttft_ms: counts.ttft.percentiles(),
            ttft_service_ms: counts.ttft_service.percentiles(),
            ttft_lateness_ms: counts.ttft_lateness.percentiles(),
            ttft_read_delay_ms: counts.ttft_read_delay.percentiles(),
            ttft_unstamped: counts.ttft_unstamped,
            chunk_gap_ms: counts.chunk_gaps.percentiles(),
            tpot_ms: counts.tpot.percentiles(),
            ntpot_ms: counts.ntpot.percentiles(),
            e2e_ms: counts.e2e.percentiles(),
            ttft_histogram: counts.ttft.to_base64(),
            chunk_gap_histogram: counts.chunk_gaps.to_base64(),
            tpot_histogram: counts.tpot.to_base64(),
            ntpot_histogram: counts.ntpot.to_base64(),
            e2e_histogram: counts.e2e.to_base64(),
        }
    }

    /// Adds the tokens of requests whose responses have no number of them: each is in all other counts, and its usage is
    /// in the timeline now. Those of the warm-up count in the rates alone, as far as they came within the window.
    ///
    /// # Errors
    /// A damaged histogram, in a run from a file.
    pub fn add_counted(
        &mut self,
        requests: &[(LlmTimeline, Nanos)],
        objectives: &GoodputObjectives,
        window: &TimeWindow,
    ) -> Result<(), String> {
        let (mut tpot, mut ntpot) = (self.tpot_times()?, self.ntpot_times()?);
        let mut chunks = self.tokens_per_chunk.map_or(0.0, |tokens| self.output_tokens as f64 / tokens);
        let mut in_window = LlmWindowCounts::default();
        for (timeline, done) in requests {
            let times = timeline.times(*done);
            // Without a number of tokens it has missed an objective of TPOT.
            let is_good = objectives.tpot.is_some() && objectives.are_met(&times);
            in_window.record_tokens(timeline, *done, window);
            in_window.good += u64::from(is_good && window.contains(*done));
            if timeline.intended < window.from {
                continue;
            }
            self.with_usage += 1;
            self.with_counted_tokens += 1;
            self.input_tokens += timeline.input_tokens.unwrap_or(0);
            self.output_tokens += timeline.output_tokens.unwrap_or(0);
            chunks += timeline.chunks as f64;
            if let Some(tpot_of_request) = times.tpot.filter(|_| timeline.output_tokens > Some(1)) {
                tpot.record(tpot_of_request);
            }
            if let Some(ntpot_of_request) = timeline.ntpot(*done) {
                ntpot.record(ntpot_of_request);
            }
            self.good += u64::from(is_good);
        }
        let per_s = |n: u64| n as f64 / window.length_s();
        self.goodput_per_s += per_s(in_window.good);
        self.input_tokens_per_s += per_s(in_window.input_tokens);
        self.output_tokens_per_s += per_s(in_window.output_tokens);
        self.tokens_per_chunk = (chunks > 0.0).then(|| self.output_tokens as f64 / chunks);
        (self.tpot_ms, self.tpot_histogram) = (tpot.percentiles(), tpot.to_base64());
        (self.ntpot_ms, self.ntpot_histogram) = (ntpot.percentiles(), ntpot.to_base64());
        Ok(())
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

    /// Histogram of the normalized times per output token.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn ntpot_times(&self) -> Result<Histogram, String> {
        if self.ntpot_histogram.is_empty() {
            return Ok(Histogram::precise());
        }
        Histogram::from_base64(&self.ntpot_histogram, Histogram::precise)
    }

    /// Histogram of the times to the end of the response.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn e2e_times(&self) -> Result<Histogram, String> {
        Histogram::from_base64(&self.e2e_histogram, Histogram::precise)
    }
}
