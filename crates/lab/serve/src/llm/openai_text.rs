//! OpenAI's chat completions and completions: bodies and events.

use serde_json::{Value, json};

use super::generation::{Generation, GenerationStep};
use super::texts::{self, ResponseTexts};
use weir_events::llm::LlmApi;

/// Texts of a chat completion or a completion.
#[derive(Debug)]
pub(super) struct OpenAiTexts {
    id: String,
    created_s: u64,
}

impl OpenAiTexts {
    pub(super) fn new(generation: &Generation, created_s: u64) -> Self {
        let prefix = if generation.request.api == LlmApi::Chat { "chatcmpl" } else { "cmpl" };
        Self { id: texts::id(prefix, generation), created_s }
    }

    /// An event or a body with these choices.
    fn object(&self, generation: &Generation, object: &str, choices: &Value) -> Value {
        json!({
            "id": self.id,
            "object": object,
            "created": self.created_s,
            "model": generation.request.model,
            "choices": choices,
        })
    }

    fn chunk(&self, generation: &Generation, choices: &Value, usage: Option<Value>) -> String {
        let is_chat = generation.request.api == LlmApi::Chat;
        let mut chunk =
            self.object(generation, if is_chat { "chat.completion.chunk" } else { "text_completion" }, choices);
        if generation.request.wants_usage {
            chunk["usage"] = usage.unwrap_or(Value::Null);
        }
        format!("data: {chunk}\n\n")
    }

    fn text_chunk(&self, generation: &Generation, text: &str) -> String {
        let choice = if generation.request.api == LlmApi::Chat {
            json!({"index": 0, "delta": {"content": text}, "logprobs": null, "finish_reason": null})
        } else {
            json!({"index": 0, "text": text, "logprobs": null, "finish_reason": null})
        };
        self.chunk(generation, &json!([choice]), None)
    }

    fn finish(&self, generation: &Generation) -> String {
        let reason = generation.finish_reason();
        let choice = if generation.request.api == LlmApi::Chat {
            json!({"index": 0, "delta": {}, "logprobs": null, "finish_reason": reason})
        } else {
            json!({"index": 0, "text": "", "logprobs": null, "finish_reason": reason})
        };
        let mut text = self.chunk(generation, &json!([choice]), None);
        if generation.request.wants_usage {
            text += &self.chunk(generation, &json!([]), Some(usage(generation)));
        }
        text + "data: [DONE]\n\n"
    }
}

impl ResponseTexts for OpenAiTexts {
    /// The role is sent before the prefill: a client that takes it for a token measures the queue.
    fn event(&mut self, generation: &Generation, step: GenerationStep<'_>) -> String {
        match step {
            GenerationStep::Started if generation.request.api == LlmApi::Chat => {
                let delta = json!({"role": "assistant", "content": ""});
                let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": null});
                self.chunk(generation, &json!([choice]), None)
            }
            GenerationStep::Started => String::new(),
            GenerationStep::Text(text) => self.text_chunk(generation, text),
            GenerationStep::Finished => self.finish(generation),
        }
    }

    fn body(&self, generation: &Generation, text: &str) -> String {
        let reason = generation.finish_reason();
        let (object, choice) = if generation.request.api == LlmApi::Chat {
            let message = json!({"role": "assistant", "content": text, "refusal": null});
            let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": reason});
            ("chat.completion", choice)
        } else {
            ("text_completion", json!({"index": 0, "text": text, "logprobs": null, "finish_reason": reason}))
        };
        let mut body = self.object(generation, object, &json!([choice]));
        body["usage"] = usage(generation);
        body.to_string()
    }
}

fn usage(generation: &Generation) -> Value {
    let (input, output) = (generation.request.input_tokens, generation.output_tokens);
    json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output})
}
