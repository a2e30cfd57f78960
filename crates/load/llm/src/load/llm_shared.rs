//! State shared by the threads of a language model's load.

use std::sync::{Arc, Mutex};

use super::traced_run::TracedRun;
use super::uncounted::UncountedReplies;
use crate::trace::TraceSession;
use crate::{ReplySource, RequestBodies};
use weir_load::steps::ThinkTime;
use weir_replay::load::ArrivalInbox;

/// State shared by the threads of a program.
#[derive(Debug)]
pub(super) struct LlmShared {
    pub(super) bodies: RequestBodies,
    pub(super) replies: ReplySource,
    pub(super) think: ThinkTime,
    /// Head of all requests, to which the length is added.
    pub(super) head: Vec<u8>,
    pub(super) seed: u64,
    /// Whether a conversation has several turns.
    pub(super) has_turns: bool,
    /// Whether sessions of a trace begin when users are free.
    pub(super) is_closed: bool,
    /// Responses whose tokens are counted after the run; `None` without a tokenizer.
    pub(super) uncounted: Option<Mutex<UncountedReplies>>,
    /// Sessions of a trace for each thread, until they are taken; `None` without a trace.
    pub(super) inboxes: Option<Mutex<Vec<Option<ArrivalInbox<TraceSession>>>>>,
    /// Names of the clients of a composition, each a scenario and a step; empty without one.
    pub(super) clients: Vec<String>,
    /// What is sent of a trace, and when; `None` without one.
    pub(super) traced: Option<Arc<Mutex<TracedRun>>>,
}
