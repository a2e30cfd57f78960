//! Responses whose tokens the server has not reported, until they are counted after the run.

use crate::ConversationState;
use weir_base::Nanos;
use weir_measure::llm_timeline::LlmTimeline;

/// Maximum length of all texts that are kept, in bytes; tokens of further responses are not counted.
const MAX_KEPT_BYTES: usize = 256 << 20;

/// Response whose tokens the server has not reported.
#[derive(Debug)]
pub(super) struct UncountedReply {
    /// Turn that it responds to.
    pub(super) state: ConversationState,
    /// Generated text, as content of a JSON string.
    pub(super) text: Vec<u8>,
    pub(super) timeline: LlmTimeline,
    /// End of the response.
    pub(super) done: Nanos,
}

/// Responses of a run whose tokens the server has not reported.
#[derive(Debug)]
pub(super) struct UncountedReplies {
    replies: Vec<UncountedReply>,
    kept_bytes: usize,
    /// End of the warm-up.
    from: Nanos,
}

impl UncountedReplies {
    /// None yet, of a run whose warm-up ends at `from`.
    pub(super) fn new(from: Nanos) -> Self {
        Self { replies: Vec::new(), kept_bytes: 0, from }
    }

    /// Adds a successful response to a conversation's turn, unless its tokens are known or it ended in the warm-up;
    /// `push_text` appends its text.
    pub(super) fn add(
        &mut self,
        state: &ConversationState,
        timeline: LlmTimeline,
        done: Nanos,
        push_text: impl FnOnce(&mut Vec<u8>),
    ) {
        let is_counted = timeline.output_tokens.is_some() || timeline.chunks == 0 || done < self.from;
        if is_counted || self.kept_bytes >= MAX_KEPT_BYTES {
            return;
        }
        let mut text = Vec::new();
        push_text(&mut text);
        text.shrink_to_fit();
        self.kept_bytes += text.len();
        self.replies.push(UncountedReply { state: state.clone(), text, timeline, done });
    }

    /// All of them, of which none is kept any longer.
    pub(super) fn take(&mut self) -> Vec<UncountedReply> {
        self.kept_bytes = 0;
        std::mem::take(&mut self.replies)
    }
}
