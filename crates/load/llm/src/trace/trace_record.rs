//! Request of a trace.

use weir_base::Nanos;

use super::trace_line_error::TraceLineError;

/// Size of a request without its prompt, in bytes: with what the allocator adds.
pub(super) const TURN_BYTES: usize = 128;
/// Maximum number of tokens of a prompt, or of a response.
const MAX_TOKENS: u64 = 20_000_000;

/// Request of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceRecord {
    /// Start.
    pub start: TraceStart,
    /// Time from the start to the end of the response, as recorded; 0 if it is not.
    pub took: Nanos,
    /// Identifier by which other requests name it: a hash.
    pub id: Option<u64>,
    /// Requests that it waits for, besides its start.
    pub after: Box<[TraceDependency]>,
    /// Session that it belongs to, if the trace has one: a hash of its name.
    pub session: Option<u64>,
    /// Tokens of the prompt, >= 1.
    pub input_tokens: u64,
    /// Tokens of the response, >= 1.
    pub output_tokens: u64,
    /// Prompt.
    pub prompt: TracePrompt,
}

/// Start of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceStart {
    /// Arrival in nanoseconds, since 1970 or since the start of the trace.
    At(i64),
    /// Time after the response to the session's request before it.
    Delay(Nanos),
}

/// Request that another one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceDependency {
    /// Its identifier.
    pub request: u64,
    /// Event of that request that is waited for.
    pub trigger: TurnTrigger,
    /// Time after that.
    pub delay: Nanos,
}

/// Event of a request that another one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnTrigger {
    /// Its start.
    Start,
    /// The end of its response.
    End,
}

/// Prompt of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracePrompt {
    /// Blocks of a prefix cache: equal identifiers are equal text.
    Blocks {
        /// Identifiers, in order; what they do not cover is text of its own.
        ids: Box<[u64]>,
        /// Tokens of a block, >= 1; the last block may have fewer.
        tokens: u64,
    },
    /// Pieces, in order, which have all tokens of the prompt.
    Pieces(Box<[PromptPiece]>),
    /// Text, as content of a JSON string.
    Text(Box<[u8]>),
}

/// Piece of a prompt: equal names and tokens are equal text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptPiece {
    /// Name.
    pub name: u64,
    /// Tokens.
    pub tokens: u64,
}

impl TracePrompt {
    /// Memory that it takes on the heap, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Blocks { ids, .. } => size_of_val(&**ids),
            Self::Pieces(pieces) => size_of_val(&**pieces),
            Self::Text(text) => text.len(),
        }
    }

    /// Text of its own.
    pub(super) fn own() -> Self {
        Self::Blocks { ids: Box::default(), tokens: 1 }
    }
}

/// Tokens of a request, as a line of a trace has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceTokens {
    /// Of the prompt.
    pub(super) input: u64,
    /// Of the response.
    pub(super) output: u64,
}

impl TraceRecord {
    /// Arrival; none of a request that follows another one.
    pub fn arrival(&self) -> Option<i64> {
        match self.start {
            TraceStart::At(arrival) => Some(arrival),
            TraceStart::Delay(_) => None,
        }
    }

    /// Memory that it takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        TURN_BYTES + size_of_val(&*self.after) + self.prompt.memory_bytes()
    }

    /// Request with checked numbers.
    ///
    /// # Errors
    /// Numbers that are out of range, or blocks that do not fit the tokens of the prompt.
    pub(super) fn new(
        start: TraceStart,
        session: Option<u64>,
        TraceTokens { input: input_tokens, output: output_tokens }: TraceTokens,
        prompt: TracePrompt,
    ) -> Result<Self, TraceLineError> {
        if input_tokens == 0 || output_tokens == 0 {
            return Err(TraceLineError::NoTokens);
        }
        if let Some(tokens) = [input_tokens, output_tokens].into_iter().find(|tokens| *tokens > MAX_TOKENS) {
            return Err(TraceLineError::Broken(format!("{tokens} tokens are more than {MAX_TOKENS}")));
        }
        if let TracePrompt::Blocks { ids, tokens } = &prompt
            && !ids.is_empty()
            // Some traces have no hash of a last block that is not full.
            && !(input_tokens / tokens..=input_tokens.div_ceil(*tokens)).contains(&(ids.len() as u64))
        {
            return Err(TraceLineError::Broken(format!(
                "{} blocks of {tokens} tokens are not the {input_tokens} tokens of the prompt; --trace-block has the \
                 tokens of a block",
                ids.len()
            )));
        }
        let (took, id, after) = (Nanos::ZERO, None, Box::default());
        Ok(Self { start, took, id, after, session, input_tokens, output_tokens, prompt })
    }
}
