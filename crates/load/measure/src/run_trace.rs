//! Trace of a language model that a run has replayed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_histogram::percentiles::Percentiles;

/// Trace of a language model that a run has replayed: what of it was sent, and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTrace {
    /// File; `-` is stdin.
    pub file: String,
    /// Format: `mooncake`, `agentic`, `bailian`, `dynamo`, `otel`, `sharegpt`, `burstgpt` or `azure`; `clients` of a
    /// composition, which has no lines.
    pub format: String,
    /// Speed: the time of the trace divided by that of the run.
    pub speed: f64,
    /// Lines that were read, without empty ones and a heading.
    pub lines: u64,
    /// Requests that were to be sent.
    pub requests: u64,
    /// Of these, requests that wait for the response before them in their session.
    pub later_turns: u64,
    /// Time from the first arrival to the last one in the trace, in seconds.
    pub trace_s: f64,
    /// Tokens of the prompts of these requests, as recorded.
    pub input_tokens: u64,
    /// Tokens of their responses, as recorded.
    pub output_tokens: u64,
    /// Blocks of a prefix cache that their prompts have, as recorded; 0 in a trace without any.
    pub blocks: u64,
    /// Requests and lines that were left out by reason: `broken`, `too_long`, `no_request`, `no_tokens`, `not_sampled`,
    /// `out_of_order`, `lost_turn`.
    pub left_out: BTreeMap<String, u64>,
    /// First broken line, with its place and problem; `None` if all could be read.
    pub first_broken: Option<String>,
    /// Clients of a composition, in order; empty of a recorded trace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<TracedClient>,
}

/// Client of a composition: what of it was sent, and the times of its responses in milliseconds, over those that
/// succeeded after the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TracedClient {
    /// Name; its scenario and its step have the same.
    pub name: String,
    /// Sessions that were to be sent: requests, or conversations of several.
    pub sessions: u64,
    /// Requests of these.
    pub requests: u64,
    /// Tokens of the prompts of these requests, as composed.
    pub input_tokens: u64,
    /// Tokens of their responses, as composed.
    pub output_tokens: u64,
    /// Responses that succeeded.
    pub responses: u64,
    /// Time to first token, from the intended start.
    pub ttft_ms: Percentiles,
    /// Time per output token after the first, of responses with two tokens and more.
    pub tpot_ms: Percentiles,
    /// Time from the intended start to the end of the response.
    pub e2e_ms: Percentiles,
}
