//! Data sets of prompts: nothing panics, a mistake has a line of the file, and each body of each API is JSON.
//!
//! Input: a byte of the order, then the file.

use serde_json::value::RawValue;
use weir_base::Nanos;
use weir_events::llm::LlmApi;
use weir_llm::{
    ConversationState, Dataset, PromptOrder, PromptSource, ReplySource, RequestBodies, RequestSettings, TurnAction,
};

/// Maximum number of conversations and turns that are played.
const MAX_PLAYED: usize = 4;

crate::target!(|input: &[u8]| {
    let Some((order, file)) = input.split_first() else { return };
    let lines = 1 + file.iter().filter(|byte| **byte == b'\n').count() as u64;
    let order = if order & 1 == 0 { PromptOrder::File } else { PromptOrder::Shuffled };
    for api in LlmApi::ALL {
        let set = match Dataset::parse("data", file.to_vec(), &mut |_| Ok(vec![1, 2, 3])) {
            Ok(set) => set,
            Err(error) => {
                assert!((1..=lines).contains(&error.line), "{error}");
                return;
            }
        };
        let count = set.count().min(MAX_PLAYED);
        let prompts = PromptSource::of_dataset(set, order, 1).with_max_turns(MAX_PLAYED).with_prefixes(2, 2);
        let settings = RequestSettings { api, streams: true, ..RequestSettings::default() };
        let Ok(bodies) = RequestBodies::new(settings, prompts) else { continue };
        for conversation in 0..count as u64 {
            play(&bodies, conversation);
        }
    }
});

fn play(bodies: &RequestBodies, conversation: u64) {
    let mut state = ConversationState::default();
    state.begin(conversation, Nanos::ZERO);
    for _ in 0..MAX_PLAYED {
        let mut body = Vec::new();
        bodies.push_body(&state, &mut body);
        assert!(serde_json::from_slice::<&RawValue>(&body).is_ok(), "{}", body.escape_ascii());
        let reply = state.needs_reply(bodies.prompts(), ReplySource::Server).then(|| b"reply".to_vec());
        if state.replied(bodies.prompts(), reply, Nanos::ZERO, Nanos::ZERO) == TurnAction::End {
            return;
        }
    }
}
