//! Conversations with a language model as the program of a load.

use std::sync::{Arc, Mutex};

use super::llm_shared::LlmShared;
use super::llm_thread::LlmThread;
use super::prompt_args::LlmPrompts;
use super::uncounted::{UncountedReplies, UncountedReply};
use weir_llm::{PromptSource, RequestBodies, RequestSettings};
use weir_load::LoadPlan;
use weir_load::program::{ProgramThread, ThreadProgram, UserProgram};
use weir_machine::lock::lock;
use weir_measure::run_steps::StepFacts;

/// Name of the one scenario.
const SCENARIO: &str = "llm";

/// Conversations with a language model: each is an iteration.
#[derive(Debug)]
pub(super) struct LlmProgram(Arc<LlmShared>);

impl LlmProgram {
    /// Conversations for this plan, whose head of a request they have.
    ///
    /// # Errors
    /// One line, if the API lacks a requested option.
    pub(super) fn new(settings: RequestSettings, prompts: LlmPrompts, plan: &LoadPlan) -> Result<Self, String> {
        let LlmPrompts { source, replies, think, counts_tokens, .. } = prompts;
        let uncounted = counts_tokens.then(|| Mutex::new(UncountedReplies::new(plan.warmup)));
        let has_turns = source.has_turns();
        let bodies = RequestBodies::new(settings, source)?;
        let head = plan.requests.first().map(|request| head_without_length(&request.bytes)).unwrap_or_default();
        Ok(Self(Arc::new(LlmShared { bodies, replies, think, head, seed: plan.seed, has_turns, uncounted })))
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
        vec![SCENARIO.to_owned()]
    }

    fn steps(&self) -> Vec<StepFacts> {
        let names: &[&str] = if self.0.has_turns { &["first turn", "later turns"] } else { &["request"] };
        let facts =
            |name: &&str| StepFacts { name: (*name).to_owned(), scenario: SCENARIO.to_owned(), checks: Vec::new() };
        names.iter().map(facts).collect()
    }

    fn has_follow_ups(&self) -> bool {
        self.0.has_turns
    }

    fn thread(&self, _: ProgramThread) -> Result<Box<dyn ThreadProgram>, String> {
        Ok(Box::new(LlmThread::new(Arc::clone(&self.0))))
    }
}
