//! Progress of a conversation.

use serde::{Deserialize, Serialize};
use weir_base::Nanos;

use super::prompt_source::PromptSource;
use super::trace::{SessionPlay, TraceSession, TraceTurn};

/// Whose reply a conversation repeats in its next turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplySource {
    /// That of the data set, if it has one, and otherwise the server's.
    #[default]
    Dataset,
    /// The server's.
    Server,
}

/// Next action of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnAction {
    /// Sends the request of its turn.
    Send,
    /// Waits until this time, and then sends.
    WaitUntil(Nanos),
    /// Ends.
    End,
}

/// Turn of a conversation, and the replies of the server so far.
#[derive(Clone, Debug, Default)]
pub struct ConversationState {
    conversation: u64,
    turn: usize,
    /// Replies to the turns so far, as contents of JSON strings; none where that of the data set is repeated.
    replies: Vec<Option<Vec<u8>>>,
    intended: Nanos,
    /// Requests of a trace, in place of a conversation of the prompts.
    traced: Option<Box<SessionPlay>>,
}

impl ConversationState {
    /// Begins conversation `number` of the load.
    pub fn begin(&mut self, number: u64, intended: Nanos) {
        (self.conversation, self.turn, self.intended) = (number, 0, intended);
        self.replies.clear();
        self.traced = None;
    }

    /// Begins session `number` of the load, of a trace.
    pub fn begin_traced(&mut self, number: u64, intended: Nanos, session: TraceSession) {
        self.begin(number, intended);
        self.traced = Some(Box::new(SessionPlay::new(session, intended)));
    }

    /// Session of a trace, and what of it is due; none of other conversations.
    pub fn play(&mut self) -> Option<&mut SessionPlay> {
        self.traced.as_deref_mut()
    }

    /// Client of a session of a trace; none of other conversations.
    pub(crate) fn client(&self) -> Option<u32> {
        self.traced.as_ref().map(|play| play.session().client)
    }

    /// Makes a turn of a session of a trace the one that is spoken of.
    pub fn set_turn(&mut self, turn: u32, intended: Nanos) {
        (self.turn, self.intended) = (turn as usize, intended);
    }

    /// Request of a trace that the turn is; none of other conversations.
    pub(crate) fn traced_turn(&self) -> Option<&TraceTurn> {
        self.traced.as_ref()?.session().turn(self.turn)
    }

    /// Number of the conversation in the load.
    pub fn conversation(&self) -> u64 {
        self.conversation
    }

    /// Turn, from 0.
    pub fn turn(&self) -> usize {
        self.turn
    }

    /// Time at which the request of the turn should be sent.
    pub fn intended(&self) -> Nanos {
        self.intended
    }

    /// Replies of the server to the turns before.
    pub(crate) fn replies(&self) -> &[Option<Vec<u8>>] {
        &self.replies
    }

    /// Appends the texts of all messages that the request of the turn has, as content of a JSON string; false without
    /// any, for the body of a batch.
    pub fn push_prompt_text(&self, prompts: &PromptSource, out: &mut Vec<u8>) -> bool {
        match self.traced_turn() {
            Some(turn) => prompts.push_traced(turn, out),
            None => prompts.push_prompt_text((self.conversation, self.turn), &self.replies, out),
        }
    }

    /// Whether the next turn repeats what the server replies to this one.
    pub fn needs_reply(&self, prompts: &PromptSource, source: ReplySource) -> bool {
        let is_last = self.turn + 1 >= prompts.turns(self.conversation);
        !is_last
            && self.traced.is_none()
            && (source == ReplySource::Server || !prompts.has_reply(self.conversation, self.turn))
    }

    /// Takes the response to the turn, which ended at `now`; `reply` is the server's, if it is needed. Without a think
    /// time of the data set, the next turn waits for `think`.
    pub fn replied(&mut self, prompts: &PromptSource, reply: Option<Vec<u8>>, now: Nanos, think: Nanos) -> TurnAction {
        if self.turn + 1 >= prompts.turns(self.conversation) {
            return TurnAction::End;
        }
        self.replies.push(reply);
        self.turn += 1;
        let think = prompts.think(self.conversation, self.turn).unwrap_or(think);
        self.intended = now + think;
        if think == Nanos::ZERO { TurnAction::Send } else { TurnAction::WaitUntil(self.intended) }
    }
}
