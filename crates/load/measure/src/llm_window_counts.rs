//! Work of a language model within the window of a run.

use serde::{Deserialize, Serialize};

use super::goodput::GoodputObjectives;
use super::llm_timeline::LlmTimeline;
use super::merge::{AddPart, PeerValue, merged};
use super::time_window::TimeWindow;
use weir_base::Nanos;

merged! {
    /// Tokens and requests of a language model within the window, for its rates: also for requests of the warm-up, and
    /// only the part within it of responses that end later. A response may take as long as the window, so that counting
    /// those that began within it, or those that ended within it, may be far from what was generated meanwhile.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct LlmWindowCounts {
        /// Requests that succeeded, by the end of the response.
        pub requests: u64 => sum,
        /// Of these, requests that met all objectives.
        pub good: u64 => sum,
        /// Tokens of prompts, by the first chunk of the response.
        pub input_tokens: u64 => sum,
        /// Tokens of responses, by their chunks: each has the same number of a response's tokens.
        pub output_tokens: u64 => sum,
        /// Chunks, by their arrival.
        pub chunks: u64 => sum,
    }
}

impl LlmWindowCounts {
    /// Records the end of a request that succeeded, at `done`.
    pub fn record_response(
        &mut self,
        timeline: &LlmTimeline,
        done: Nanos,
        objectives: &GoodputObjectives,
        window: &TimeWindow,
    ) {
        let has_ended = window.contains(done);
        self.requests += u64::from(has_ended);
        self.good += u64::from(has_ended && objectives.are_met(&timeline.times(done)));
        self.chunks += timeline.chunks_in_window;
        self.record_tokens(timeline, done, window);
    }

    /// Records the tokens of a response that ended at `done`.
    pub fn record_tokens(&mut self, timeline: &LlmTimeline, done: Nanos, window: &TimeWindow) {
        if window.contains(timeline.first_chunk.unwrap_or(done)) {
            self.input_tokens += timeline.input_tokens.unwrap_or(0);
        }
        let output_tokens = timeline.output_tokens.unwrap_or(0);
        self.output_tokens += match timeline.chunks {
            0 if window.contains(done) => output_tokens,
            0 => 0,
            chunks => (output_tokens as f64 * timeline.chunks_in_window as f64 / chunks as f64).round() as u64,
        };
    }
}

impl AddPart for LlmWindowCounts {
    fn add_part(&mut self, other: &Self) {
        self.add(other);
    }
}

impl PeerValue for LlmWindowCounts {
    fn check(&self) -> Result<(), String> {
        self.check_values()?;
        let adds_up = self.good <= self.requests;
        if adds_up { Ok(()) } else { Err("counts of a language model's window that do not add up".into()) }
    }
}
