//! Conversations of one thread.

use std::io::Write as _;
use std::sync::Arc;

use super::error_body::error_message;
use super::llm_shared::LlmShared;
use crate::trace::{PlayStep, TraceSession};
use crate::{ConversationState, ReplyParts, TurnAction, push_reply_text};
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::rng::SeededRng;
use weir_events::StreamFormat;
use weir_load::program::{KeptParts, ProgramAction, ProgramCall, ProgramResponse, ProgramSend, ThreadProgram};
use weir_machine::lock::lock;
use weir_pace::arrival_queue::ArrivalQueue;
use weir_replay::load::ArrivalInbox;

/// Stream of random numbers that think times are made from.
const THINK_SALT: u64 = 0x6c6c_6d05;

/// Conversations of one thread: each user has one at a time.
#[derive(Debug)]
pub(super) struct LlmThread {
    shared: Arc<LlmShared>,
    users: Vec<ConversationState>,
    /// Sessions of a trace; `None` without one.
    inbox: Option<ArrivalInbox<TraceSession>>,
    /// Body, and the whole request: they stay allocated.
    body: Vec<u8>,
    request: Vec<u8>,
}

impl LlmThread {
    pub(super) fn new(shared: Arc<LlmShared>, inbox: Option<ArrivalInbox<TraceSession>>) -> Self {
        Self { shared, users: Vec::new(), inbox, body: Vec::new(), request: Vec::new() }
    }

    fn user(&mut self, user: u32) -> &mut ConversationState {
        let at = user as usize;
        if self.users.len() <= at {
            self.users.resize_with(at + 1, ConversationState::default);
        }
        &mut self.users[at]
    }

    /// Sends the request of a user's turn.
    fn send(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        let shared = Arc::clone(&self.shared);
        self.body.clear();
        self.request.clear();
        let Some(state) = self.users.get(call.user as usize) else { return ProgramAction::End { ok: false } };
        shared.bodies.push_body(state, &mut self.body);
        self.request.extend_from_slice(&shared.head);
        // Writing to a vector does not fail.
        let _ = write!(self.request, "Content-Length: {}\r\n\r\n", self.body.len());
        self.request.extend_from_slice(&self.body);
        call.put_request(&self.request);
        let needs_reply = state.needs_reply(shared.bodies.prompts(), shared.replies);
        ProgramAction::Send(ProgramSend {
            step: match state.client() {
                Some(client) if !shared.clients.is_empty() => client,
                _ => u32::from(shared.has_turns && state.turn() > 0),
            },
            intended: state.intended(),
            keeps: if needs_reply || shared.uncounted.is_some() {
                KeptParts::HeadAndBody
            } else {
                KeptParts::HeadAndErrorBody
            },
            ..ProgramSend::default()
        })
    }

    /// Does what is due of a user's session.
    fn play(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        let shared = Arc::clone(&self.shared);
        let state = self.user(call.user);
        let Some(play) = state.play() else { return ProgramAction::End { ok: false } };
        match play.next(call.now) {
            PlayStep::Send(turn, intended) => {
                if let Some(traced) = &shared.traced {
                    lock(traced).send(play.session(), turn);
                }
                let waits = play.waits_for_one();
                state.set_turn(turn, intended);
                match self.send(call) {
                    ProgramAction::Send(send) if waits => ProgramAction::Send(ProgramSend { key: turn, ..send }),
                    ProgramAction::Send(send) => ProgramAction::SendBeside(ProgramSend { key: turn, ..send }),
                    other => other,
                }
            }
            PlayStep::WaitUntil(at) => ProgramAction::WaitUntil(at),
            PlayStep::Await => ProgramAction::Await,
            PlayStep::End { ok } => ProgramAction::End { ok },
        }
    }

    /// Ends the turn of a call, and does what follows.
    fn end_turn(&mut self, call: &mut ProgramCall<'_>, ok: bool) -> ProgramAction {
        let (turn, now) = (call.key, call.now);
        match self.user(call.user).play() {
            Some(play) => play.ended(turn, now, ok),
            None => return ProgramAction::End { ok },
        }
        self.play(call)
    }

    /// Reason why a response with a good status is not the expected one.
    fn problem(&self, content_type: &[u8]) -> Option<String> {
        let streams = self.shared.bodies.settings().streams;
        let is_stream =
            matches!(StreamFormat::of_content_type(content_type), StreamFormat::Sse | StreamFormat::JsonLines);
        (streams && !is_stream).then(|| {
            let content_type = String::from_utf8_lossy(content_type).into_owned();
            format!("not a stream: Content-Type '{content_type}'; if the server cannot stream, write --no-stream")
        })
    }
}

impl ThreadProgram for LlmThread {
    fn begin(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        let (conversation, intended) = (call.iteration, call.intended);
        match &mut self.inbox {
            Some(inbox) => {
                let Some(session) = inbox.take(conversation) else { return ProgramAction::End { ok: false } };
                if let Some(traced) = &self.shared.traced {
                    lock(traced).begin(&session);
                }
                call.scenario = if self.shared.clients.is_empty() { 0 } else { session.client };
                self.user(call.user).begin_traced(conversation, intended, session);
                // It is due, whatever the clock of the loop had at its last look.
                call.now = call.now.max(intended);
                self.play(call)
            }
            None => {
                self.user(call.user).begin(conversation, intended);
                self.send(call)
            }
        }
    }

    fn refill(&mut self, queue: &mut ArrivalQueue) {
        match &mut self.inbox {
            Some(inbox) => inbox.refill(queue),
            None => queue.close(),
        }
    }

    fn woken(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        if self.inbox.is_some() { self.play(call) } else { self.send(call) }
    }

    fn more(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        self.play(call)
    }

    fn response(&mut self, response: &ProgramResponse<'_>, call: &mut ProgramCall<'_>) -> ProgramAction {
        if response.status >= 400 {
            call.fail(error_message(response.status, response.body));
            return self.end_turn(call, false);
        }
        let content_type = response.with_headers(|headers| {
            let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
            found.map(|(_, value)| value.to_vec()).unwrap_or_default()
        });
        if let Some(problem) = self.problem(&content_type) {
            call.fail(problem);
            return self.end_turn(call, false);
        }
        let shared = Arc::clone(&self.shared);
        let prompts = shared.bodies.prompts();
        let key = call.key;
        let state = self.user(call.user);
        if state.play().is_some() {
            state.set_turn(key, state.intended());
        }
        if let (Some(traced), Some(play), Some(timeline)) = (&shared.traced, state.play(), &response.llm) {
            lock(traced).record(play.session(), timeline, call.now);
        }
        if let (Some(uncounted), Some(timeline)) = (&shared.uncounted, response.llm) {
            let (api, format) = (shared.bodies.settings().api, StreamFormat::of_content_type(&content_type));
            lock(uncounted).add(state, timeline, call.now, |text| {
                push_reply_text(api, ReplyParts::Generated, format, response.body, text);
            });
        }
        if self.inbox.is_some() {
            return self.end_turn(call, true);
        }
        let state = self.user(call.user);
        let reply = state.needs_reply(prompts, shared.replies).then(|| {
            let (format, mut text) = (StreamFormat::of_content_type(&content_type), Vec::new());
            let api = shared.bodies.settings().api;
            push_reply_text(api, ReplyParts::Content, format, response.body, &mut text);
            text
        });
        let think = think(&shared, state);
        match state.replied(prompts, reply, call.now, think) {
            TurnAction::Send => self.send(call),
            TurnAction::WaitUntil(at) => ProgramAction::WaitUntil(at),
            TurnAction::End => ProgramAction::End { ok: true },
        }
    }

    fn failed(&mut self, _: FailureKind, _: usize, call: &mut ProgramCall<'_>) -> ProgramAction {
        self.end_turn(call, false)
    }
}

/// Think time before a conversation's next turn, where the data set has none: a function of the seed and the turn.
fn think(shared: &LlmShared, state: &ConversationState) -> Nanos {
    let turn = state.turn() as u64;
    let mut rng = SeededRng::new(shared.seed ^ state.conversation().rotate_left(24) ^ turn, THINK_SALT);
    shared.think.sample(&mut rng)
}
