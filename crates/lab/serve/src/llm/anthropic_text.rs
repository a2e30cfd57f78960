//! Anthropic's messages: bodies and events.

use serde_json::{Value, json};

use super::generation::{Generation, GenerationStep};
use super::texts::{self, ResponseTexts};

/// Texts of a message.
#[derive(Debug)]
pub(super) struct AnthropicTexts {
    id: String,
}

impl AnthropicTexts {
    pub(super) fn new(generation: &Generation) -> Self {
        Self { id: texts::id("msg", generation) }
    }

    fn message(
        &self,
        generation: &Generation,
        content: &Value,
        stop_reason: Option<&str>,
        output_tokens: u64,
    ) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": generation.request.model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": null,
            "usage": {"input_tokens": generation.request.input_tokens, "output_tokens": output_tokens},
        })
    }
}

/// Reason of the end, in Anthropic's words.
fn stop_reason(generation: &Generation) -> &'static str {
    if generation.finish_reason() == "length" { "max_tokens" } else { "end_turn" }
}

impl ResponseTexts for AnthropicTexts {
    fn event(&mut self, generation: &Generation, step: GenerationStep<'_>) -> String {
        match step {
            GenerationStep::Started => {
                let message = self.message(generation, &json!([]), None, 1);
                let block = json!({"type": "text", "text": ""});
                texts::named_event(&json!({"type": "message_start", "message": message}))
                    + &texts::named_event(&json!({"type": "content_block_start", "index": 0, "content_block": block}))
                    + &texts::named_event(&json!({"type": "ping"}))
            }
            GenerationStep::Text(text) => {
                let delta = json!({"type": "text_delta", "text": text});
                texts::named_event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
            }
            GenerationStep::Finished => {
                let delta = json!({"stop_reason": stop_reason(generation), "stop_sequence": null});
                let usage = json!({"output_tokens": generation.output_tokens});
                texts::named_event(&json!({"type": "content_block_stop", "index": 0}))
                    + &texts::named_event(&json!({"type": "message_delta", "delta": delta, "usage": usage}))
                    + &texts::named_event(&json!({"type": "message_stop"}))
            }
        }
    }

    fn body(&self, generation: &Generation, text: &str) -> String {
        let content = json!([{"type": "text", "text": text}]);
        self.message(generation, &content, Some(stop_reason(generation)), generation.output_tokens).to_string()
    }
}
