//! Requests of a trace as they are sent.

use weir_base::Nanos;

use super::trace_record::{TURN_BYTES, TracePrompt, TurnTrigger};

/// Request of a trace as it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceTurn {
    /// Number in the trace, from 0: what of its prompt is in no block is text of this number.
    pub number: u64,
    /// Session, if the trace has one: a hash of its name.
    pub session: Option<u64>,
    /// Turns that it waits for, all of them earlier ones in its session.
    pub after: Box<[TurnDependency]>,
    /// Time after the start of the session before which it does not start.
    pub not_before: Nanos,
    /// Tokens of the prompt.
    pub input_tokens: u64,
    /// Tokens of the response.
    pub output_tokens: u64,
    /// Prompt.
    pub prompt: TracePrompt,
}

/// Turn that another one of its session waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnDependency {
    /// Number in the session, from 0.
    pub turn: u32,
    /// Event of that turn that is waited for.
    pub trigger: TurnTrigger,
    /// Time after that.
    pub delay: Nanos,
}

/// Requests that belong together: the first one arrives at its time, others when what they wait for is over.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSession {
    /// Client that it belongs to, from 0: of a composition of several.
    pub client: u32,
    /// Arrival of the first request, in nanoseconds of the trace's time.
    pub arrival: i64,
    /// First request.
    pub first: TraceTurn,
    /// Further ones, in order.
    pub later: Vec<TraceTurn>,
}

impl TraceTurn {
    /// Memory that it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        TURN_BYTES + size_of_val(&*self.after) + self.prompt.memory_bytes()
    }
}

impl TraceSession {
    /// Turns, in order.
    pub fn turns(&self) -> impl Iterator<Item = &TraceTurn> {
        std::iter::once(&self.first).chain(&self.later)
    }

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
