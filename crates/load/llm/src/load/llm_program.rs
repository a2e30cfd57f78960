//! Conversations with a language model as the program of a load.

use std::sync::{Arc, Mutex};

use super::llm_shared::LlmShared;
use super::llm_thread::LlmThread;
use super::prompt_options::LlmPrompts;
use super::traced_run::TracedRun;
use super::uncounted::{UncountedReplies, UncountedReply};
use crate::trace::TraceSession;
use crate::{PromptSource, RequestBodies, RequestSettings};
use weir_load::LoadPlan;
use weir_load::program::{ProgramThread, ThreadProgram, UserProgram};
use weir_machine::lock::lock;
use weir_measure::run_steps::StepFacts;
use weir_replay::load::ArrivalInbox;

/// Connections that a session of a trace may have, on average over all of them.
const MAX_PARALLEL_TURNS: u64 = 16;
/// Name of the one scenario.
const SCENARIO: &str = "llm";

/// Sessions of a trace for each thread.
#[derive(Debug)]
pub(super) struct TracedSessions {
    /// Whether requests wait for others, as far as it can be known.
    pub(super) has_turns: bool,
    /// Whether sessions begin when users are free, instead of at their times.
    pub(super) is_closed: bool,
    /// Names of the clients of a composition; none of a recorded trace.
    pub(super) clients: Vec<String>,
    pub(super) run: Arc<Mutex<TracedRun>>,
    pub(super) inboxes: Vec<ArrivalInbox<TraceSession>>,
}

/// Conversations with a language model: each is an iteration.
#[derive(Debug)]
pub struct LlmProgram(Arc<LlmShared>);

impl LlmProgram {
    /// Conversations for this plan, whose head of a request they have.
    ///
    /// # Errors
    /// One line, if the API lacks what is asked for.
    pub fn new(settings: RequestSettings, prompts: LlmPrompts, plan: &LoadPlan) -> Result<Self, String> {
        Self::of(settings, prompts, plan, None)
    }

    /// Requests of a trace for this plan.
    ///
    /// # Errors
    /// One line, if the API lacks what is asked for.
    pub(super) fn of_trace(
        settings: RequestSettings,
        prompts: LlmPrompts,
        plan: &LoadPlan,
        traced: TracedSessions,
    ) -> Result<Self, String> {
        Self::of(settings, prompts, plan, Some(traced))
    }

    fn of(
        settings: RequestSettings,
        prompts: LlmPrompts,
        plan: &LoadPlan,
        traced: Option<TracedSessions>,
    ) -> Result<Self, String> {
        let LlmPrompts { source, replies, think, counts_tokens, .. } = prompts;
        let uncounted = counts_tokens.then(|| Mutex::new(UncountedReplies::new(plan.warmup)));
        let has_turns = traced.as_ref().map_or_else(|| source.has_turns(), |traced| traced.has_turns);
        let is_closed = traced.as_ref().is_some_and(|traced| traced.is_closed);
        let (mut clients, mut run) = (Vec::new(), None);
        let inboxes = traced.map(|traced| {
            (clients, run) = (traced.clients, Some(traced.run));
            Mutex::new(traced.inboxes.into_iter().map(Some).collect())
        });
        let bodies = RequestBodies::new(settings, source)?;
        let head = plan.requests.first().map(|request| head_without_length(&request.bytes)).unwrap_or_default();
        Ok(Self(Arc::new(LlmShared {
            bodies,
            replies,
            think,
            head,
            seed: plan.seed,
            has_turns,
            is_closed,
            uncounted,
            inboxes,
            clients,
            traced: run,
        })))
    }
}

impl LlmProgram {
    /// Responses since the last call whose tokens the server has not reported.
    pub(super) fn take_uncounted(&self) -> Vec<UncountedReply> {
        self.0.uncounted.as_ref().map(|uncounted| lock(uncounted).take()).unwrap_or_default()
    }

    /// Prompts of all requests.
    pub(super) fn prompts(&self) -> &PromptSource {
        self.0.bodies.prompts()
    }
}

/// Head of a request up to its empty line, without its length.
fn head_without_length(request: &[u8]) -> Vec<u8> {
    let lines = request.split_inclusive(|byte| *byte == b'\n').take_while(|line| *line != b"\r\n");
    let is_length = |line: &[u8]| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        name.eq_ignore_ascii_case(b"content-length")
    };
    lines.filter(|line| !is_length(line)).flatten().copied().collect()
}

impl UserProgram for LlmProgram {
    fn scenarios(&self) -> Vec<String> {
        if self.0.clients.is_empty() { vec![SCENARIO.to_owned()] } else { self.0.clients.clone() }
    }

    fn steps(&self) -> Vec<StepFacts> {
        if !self.0.clients.is_empty() {
            let facts = |name: &String| StepFacts { name: name.clone(), scenario: name.clone(), checks: Vec::new() };
            return self.0.clients.iter().map(facts).collect();
        }
        let names: &[&str] = if self.0.has_turns { &["first turn", "later turns"] } else { &["request"] };
        let facts =
            |name: &&str| StepFacts { name: (*name).to_owned(), scenario: SCENARIO.to_owned(), checks: Vec::new() };
        names.iter().map(facts).collect()
    }

    fn connections_per_user(&self) -> u64 {
        // What requests that start together may need. They are made when they are needed. Turns of clients follow one
        // another.
        let may_be_parallel = self.0.inboxes.is_some() && self.0.has_turns && self.0.clients.is_empty();
        if may_be_parallel { MAX_PARALLEL_TURNS } else { 1 }
    }

    fn has_follow_ups(&self) -> bool {
        self.0.has_turns
    }

    fn begins_when_free(&self) -> bool {
        self.0.is_closed
    }

    fn has_script(&self) -> bool {
        false
    }

    fn thread(&self, thread: ProgramThread) -> Result<Box<dyn ThreadProgram>, String> {
        let inbox = match &self.0.inboxes {
            Some(inboxes) => {
                let mut inboxes = lock(inboxes);
                let own = usize::try_from(thread.index).ok().and_then(|index| inboxes.get_mut(index)?.take());
                Some(own.ok_or_else(|| "a trace is replayed once".to_owned())?)
            }
            None => None,
        };
        Ok(Box::new(LlmThread::new(Arc::clone(&self.0), inbox)))
    }
}
