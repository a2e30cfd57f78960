//! Traces of language models: nothing panics, a mistake is one line, and each body of a request is JSON.
//!
//! Input: the file; its first line tells the format.

use serde_json::value::RawValue;
use weir_base::Nanos;
use weir_events::llm::LlmApi;
use weir_llm::trace::{BlockText, TraceLines, TraceSession, TraceTurn};
use weir_llm::{ConversationState, PromptSource, RequestBodies, RequestSettings};

/// Maximum number of tokens of a prompt that is written.
const MAX_WRITTEN: u64 = 10_000;

crate::target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let reader = match TraceLines::new(None, first, None) {
        Ok(reader) => reader,
        Err(why) => return assert!(!why.contains('\n'), "{why}"),
    };
    let mut records = Vec::new();
    for line in text.lines().skip(usize::from(reader.has_heading())) {
        if let Err(why) = reader.push_records(line, &mut records) {
            assert!(!why.to_string().contains('\n'), "{why}");
        }
    }
    let settings = RequestSettings { api: LlmApi::Chat, has_minimum: true, ..RequestSettings::default() };
    let prompts = PromptSource::of_trace(BlockText::of_short_words(1));
    let Ok(bodies) = RequestBodies::new(settings, prompts) else { return };
    for (number, record) in (0..).zip(records.into_iter().filter(|record| record.input_tokens <= MAX_WRITTEN)) {
        let turn = TraceTurn {
            number,
            session: record.session,
            after: Box::default(),
            not_before: Nanos::ZERO,
            input_tokens: record.input_tokens,
            output_tokens: record.output_tokens,
            prompt: record.prompt,
        };
        let (mut state, mut body) = (ConversationState::default(), Vec::new());
        state.begin_traced(number, Nanos::ZERO, TraceSession { client: 0, arrival: 0, first: turn, later: Vec::new() });
        bodies.push_body(&state, &mut body);
        assert!(serde_json::from_slice::<&RawValue>(&body).is_ok(), "{}", body.escape_ascii());
    }
});
