//! Bodies and events of a response, by API.

use serde_json::Value;

use super::anthropic_text::AnthropicTexts;
use super::generation::{Generation, GenerationStep};
use super::openai_text::OpenAiTexts;
use super::responses_text::ResponsesTexts;
use weir_events::llm::LlmApi;

/// Texts of one response.
pub(super) trait ResponseTexts {
    /// Server-sent events of a step; empty if there are none.
    fn event(&mut self, generation: &Generation, step: GenerationStep<'_>) -> String;

    /// Body of a response that is not streamed.
    fn body(&self, generation: &Generation, text: &str) -> String;
}

/// Texts of a response in the form of its API, created at this time, in seconds since 1970.
pub(super) fn texts_of(generation: &Generation, created_s: u64) -> Box<dyn ResponseTexts> {
    match generation.request.api {
        LlmApi::Messages => Box::new(AnthropicTexts::new(generation)),
        LlmApi::Responses => Box::new(ResponsesTexts::new(generation, created_s)),
        _ => Box::new(OpenAiTexts::new(generation, created_s)),
    }
}

/// ID of a response: the same in each run with the same seed.
pub(super) fn id(prefix: &str, generation: &Generation) -> String {
    format!("{prefix}-{:x}-{}", generation.shared.options.seed, generation.number)
}

/// Server-sent event that is named for the type in its data.
pub(super) fn named_event(data: &Value) -> String {
    let name = data["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n")
}
