//! Record of one response: the times that a client has to find.

use serde_json::json;

use super::SharedModel;
use super::request::GenerationRequest;
use weir_base::Nanos;
use weir_server::Timer;

/// End of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GenerationEnd {
    Complete,
    /// Broke off on purpose.
    Cut,
    /// The client left before.
    ClientClosed,
}

/// Record of a response so far; it ends when it is dropped. Times count from the request's arrival.
#[derive(Debug)]
pub(super) struct GenerationRecord<'a> {
    shared: &'a SharedModel,
    timer: &'a Timer,
    request: &'a GenerationRequest,
    number: u64,
    began: Nanos,
    read: Nanos,
    output_tokens: u64,
    started: Option<Nanos>,
    chunks_ns: Vec<u64>,
    end: GenerationEnd,
}

/// Numbers of tokens of one response.
#[derive(Clone, Copy, Debug)]
pub(super) struct GeneratedTokens {
    /// Tokens of the prompt.
    pub(super) input: u64,
    /// Tokens of the whole response, also if it was cut off.
    pub(super) output: u64,
}

/// Facts about a response that are known at its start.
#[derive(Clone, Copy, Debug)]
pub(super) struct GenerationStart {
    /// Number of the request among all.
    pub(super) number: u64,
    /// Arrival of the request.
    pub(super) began: Nanos,
    /// Time when its body was read and understood.
    pub(super) read: Nanos,
    /// Tokens that the response will have; at least 1.
    pub(super) output_tokens: u64,
}

impl GenerationEnd {
    fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Cut => "cut",
            Self::ClientClosed => "client_closed",
        }
    }
}

impl<'a> GenerationRecord<'a> {
    /// Record of a response that begins.
    pub(super) fn new(
        shared: &'a SharedModel,
        timer: &'a Timer,
        request: &'a GenerationRequest,
        start: GenerationStart,
    ) -> Self {
        let GenerationStart { number, began, read, output_tokens } = start;
        Self {
            shared,
            timer,
            request,
            number,
            began,
            read,
            output_tokens,
            started: None,
            chunks_ns: Vec::new(),
            end: GenerationEnd::ClientClosed,
        }
    }

    /// Sets when a slot was free.
    pub(super) fn set_started(&mut self, at: Nanos) {
        self.started = Some(at);
    }

    /// Adds a chunk that was written.
    pub(super) fn add_chunk(&mut self, at: Nanos) {
        self.chunks_ns.push(at.0);
    }

    /// Sets the end; without one, the client has left.
    pub(super) fn end(&mut self, end: GenerationEnd) {
        self.end = end;
    }

    /// Time per token behind the first, in nanoseconds; none if there is one token or the response is not whole.
    fn tpot_ns(&self) -> Option<u64> {
        let (first, last) = (self.chunks_ns.first()?, self.chunks_ns.last()?);
        let others = self.output_tokens - 1;
        (self.end == GenerationEnd::Complete && others > 0).then(|| (last - first) / others)
    }
}

impl Drop for GenerationRecord<'_> {
    fn drop(&mut self) {
        let Self { timer, request, number, began, read, output_tokens, .. } = &*self;
        let chunks = self.chunks_ns.as_slice();
        self.shared.counts.leave(
            self.end,
            self.started,
            GeneratedTokens { input: request.input_tokens, output: *output_tokens },
            chunks,
            self.tpot_ns(),
        );
        // A file that cannot be written lacks this line; `/record` has it.
        let _ = self.shared.log.add(&json!({
            "request": number,
            "api": request.api.name(),
            "stream": request.is_stream,
            "began_ns": timer.clock().monotonic_at(*began).0,
            "end": self.end.name(),
            "read_ns": read.0.saturating_sub(began.0),
            "input_tokens": request.input_tokens,
            "max_tokens": request.max_tokens,
            "blocks": request.blocks.map(|blocks| blocks.whole),
            "seen_blocks": request.blocks.map(|blocks| blocks.seen),
            "output_tokens": output_tokens,
            "queue_ns": self.started.map(|at| at.0),
            "ttft_ns": chunks.first(),
            "tpot_ns": self.tpot_ns(),
            "e2e_ns": timer.now().0.saturating_sub(began.0),
            "chunks_ns": chunks,
        }));
    }
}
