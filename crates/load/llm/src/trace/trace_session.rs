//! Requests of a trace as they are sent.

use weir_base::Nanos;

use super::trace_record::TracePrompt;

/// Size of a turn without its prompt, in bytes: with what the allocator adds.
const TURN_BYTES: usize = 128;

/// Request of a trace as it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceTurn {
    /// Number in the trace, from 0: what of its prompt is in no block is text of this number.
    pub number: u64,
    /// Session, if the trace has one: a hash of its name.
    pub session: Option<u64>,
    /// Time after the response to the turn before; 0 of the first.
    pub delay: Nanos,
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the response.
    pub output_tokens: u64,
    /// Prompt.
    pub prompt: TracePrompt,
}

/// Requests that follow one another: the first one arrives at its time, others after the response before them.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSession {
    /// First request.
    pub first: TraceTurn,
    /// Further ones, in order.
    pub later: Vec<TraceTurn>,
}

impl TraceTurn {
    /// Memory that it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        TURN_BYTES
            + match &self.prompt {
                TracePrompt::Blocks { ids, .. } => size_of_val(&**ids),
                TracePrompt::Text(text) => text.len(),
            }
    }
}

impl TraceSession {
    /// Turn, from 0.
    pub fn turn(&self, turn: usize) -> Option<&TraceTurn> {
        match turn.checked_sub(1) {
            None => Some(&self.first),
            Some(later) => self.later.get(later),
        }
    }

    /// Memory that it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.first.memory_bytes() + self.later.iter().map(TraceTurn::memory_bytes).sum::<usize>()
    }
}
