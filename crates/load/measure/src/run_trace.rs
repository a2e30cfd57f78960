//! Trace of a language model that a run has replayed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Trace of a language model that a run has replayed: what of it was sent, and what was left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunTrace {
    /// File; `-` is stdin.
    pub file: String,
    /// Format: `mooncake`, `bailian`, `dynamo`, `otel`, `sharegpt`, `burstgpt` or `azure`.
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
}
