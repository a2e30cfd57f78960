//! Tests of data sets and bodies.

mod bodies;
mod conversations;
mod datasets;
mod properties;
mod replies;

use serde_json::Value;
use weir_base::Nanos;
use weir_events::llm::LlmApi;

use super::*;

/// Data set without images in files.
fn dataset(content: &str) -> Dataset {
    try_dataset(content).unwrap_or_else(|error| panic!("{error}: {content}"))
}

fn try_dataset(content: &str) -> Result<Dataset, DatasetError> {
    Dataset::parse("data", content.as_bytes().to_vec(), &mut |file| Err(format!("no file {file}")))
}

fn source(content: &str) -> PromptSource {
    PromptSource::of_dataset(dataset(content), PromptOrder::File, 0)
}

fn settings(api: LlmApi) -> RequestSettings {
    RequestSettings { api, model: Some("m".to_owned()), streams: true, ..RequestSettings::default() }
}

fn bodies(settings: RequestSettings, prompts: PromptSource) -> RequestBodies {
    RequestBodies::new(settings, prompts).unwrap_or_else(|why| panic!("{why}"))
}

/// Body of the first turn of a conversation.
fn body(bodies: &RequestBodies, conversation: u64) -> Value {
    let mut state = ConversationState::default();
    state.begin(conversation, Nanos::ZERO);
    body_of(bodies, &state)
}

fn body_of(bodies: &RequestBodies, state: &ConversationState) -> Value {
    let mut out = Vec::new();
    bodies.push_body(state, &mut out);
    serde_json::from_slice(&out).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&out)))
}
