//! Bodies and events of a response, by API.

use serde_json::Value;

use super::generation::{Generation, GenerationStep};

/// Events and body of one response, in the form of an API.
pub(super) trait ResponseTexts {
    /// Server-sent events of a step; empty if there are none.
    fn event(&mut self, generation: &Generation, step: GenerationStep<'_>) -> String;

    /// Body of a response that is not streamed.
    fn body(&self, generation: &Generation, text: &str) -> String;
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
