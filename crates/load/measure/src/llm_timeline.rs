//! Times of one response of a language model, as its tokens arrive.

use weir_base::Nanos;

use super::goodput::LlmTimes;
use super::time_window::TimeWindow;

/// Times of one response of a language model so far.
///
/// Only events with a text that is not empty are recorded; they are called chunks, since one may hold several tokens.
/// The number of tokens is the server's, from its usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LlmTimeline {
    /// Intended start of the request.
    pub intended: Nanos,
    /// Time from which only the generator itself could delay the send; the send without any such delay.
    pub ready: Nanos,
    /// Time of the send.
    pub sent: Nanos,
    /// Arrival of the first chunk; none before it.
    pub first_chunk: Option<Nanos>,
    /// Time from the arrival of the first chunk, by the kernel's timestamp, until it was read; none without a timestamp,
    /// in which case the arrival is the time of the read.
    pub first_read_delay: Option<Nanos>,
    /// Arrival of the last chunk so far; 0 before the first.
    pub last_chunk: Nanos,
    /// Number of chunks.
    pub chunks: u64,
    /// Of these, chunks that came within the window of the run.
    pub chunks_in_window: u64,
    /// Tokens of the prompt; none if the server reports none.
    pub input_tokens: Option<u64>,
    /// Tokens of the response; none if the server reports none.
    pub output_tokens: Option<u64>,
    /// Events that are not JSON.
    pub broken_events: u64,
}

impl LlmTimeline {
    /// Timeline of a request that was sent at `sent`, without lateness.
    pub fn new(intended: Nanos, sent: Nanos) -> Self {
        Self {
            intended,
            ready: sent,
            sent,
            first_chunk: None,
            first_read_delay: None,
            last_chunk: Nanos::ZERO,
            chunks: 0,
            chunks_in_window: 0,
            input_tokens: None,
            output_tokens: None,
            broken_events: 0,
        }
    }

    /// Records an event with a text that is not empty, and returns its gap to the one before it; none for the first.
    #[inline]
    pub fn record_chunk(&mut self, at: Nanos, window: &TimeWindow) -> Option<Nanos> {
        self.chunks += 1;
        self.chunks_in_window += u64::from(window.contains(at));
        let before = std::mem::replace(&mut self.last_chunk, at);
        if self.first_chunk.is_none() {
            self.first_chunk = Some(at);
            return None;
        }
        Some(at - before)
    }

    /// Takes over the numbers of tokens of an event; later ones replace earlier ones.
    pub fn record_usage(&mut self, input: Option<u64>, output: Option<u64>) {
        self.input_tokens = input.or(self.input_tokens);
        self.output_tokens = output.or(self.output_tokens);
    }

    /// Time per output token: from the first chunk to the last, divided by the number of tokens less one. 0 with one
    /// token; none without a chunk, or if the number of tokens is unknown or 0.
    pub fn tpot(&self) -> Option<Nanos> {
        let (first, tokens) = (self.first_chunk?, self.output_tokens.filter(|tokens| *tokens > 0)?);
        if tokens == 1 {
            return Some(Nanos::ZERO);
        }
        Some(Nanos((self.last_chunk - first).0 / (tokens - 1)))
    }

    /// Normalized time per output token: from the intended start to the end at `done`, divided by the number of tokens;
    /// none if that is unknown or 0.
    pub fn ntpot(&self, done: Nanos) -> Option<Nanos> {
        let tokens = self.output_tokens.filter(|tokens| *tokens > 0)?;
        Some(Nanos((done - self.intended).0 / tokens))
    }

    /// Times of the response, which ended at `done`.
    pub fn times(&self, done: Nanos) -> LlmTimes {
        LlmTimes { ttft: self.first_chunk.map(|at| at - self.intended), tpot: self.tpot(), e2e: done - self.intended }
    }
}
