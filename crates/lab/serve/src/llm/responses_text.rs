//! OpenAI's responses: bodies and events.

use serde_json::{Value, json};

use super::generation::{Generation, GenerationStep};
use super::texts::{self, ResponseTexts};

/// Events and body of OpenAI's responses API.
#[derive(Debug)]
pub(super) struct ResponsesTexts {
    id: String,
    item_id: String,
    created_s: u64,
    /// Number of the next event.
    sequence: u64,
    /// Text so far, which the last events repeat.
    text: String,
}

impl ResponsesTexts {
    pub(super) fn new(generation: &Generation, created_s: u64) -> Self {
        let (id, item_id) = (texts::id("resp", generation), texts::id("msg", generation));
        Self { id, item_id, created_s, sequence: 0, text: String::new() }
    }

    fn response(&self, generation: &Generation, status: &str, output: &Value) -> Value {
        let (input, output_tokens) = (generation.request.input_tokens, generation.output_tokens);
        let is_whole = status != "in_progress";
        let usage = json!({
            "input_tokens": input,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": input + output_tokens,
        });
        let is_cut = status == "incomplete";
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created_s,
            "status": status,
            "error": null,
            "incomplete_details": is_cut.then(|| json!({"reason": "max_output_tokens"})),
            "instructions": null,
            "metadata": {},
            "model": generation.request.model,
            "output": output,
            "parallel_tool_calls": true,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": is_whole.then_some(usage),
        })
    }

    fn item(&self, status: &str, content: &Value) -> Value {
        json!({"id": self.item_id, "type": "message", "role": "assistant", "status": status, "content": content})
    }

    fn numbered(&mut self, kind: &str, mut event: Value) -> String {
        event["type"] = kind.into();
        event["sequence_number"] = self.sequence.into();
        self.sequence += 1;
        texts::named_event(&event)
    }

    /// An event about the text.
    fn of_part(&mut self, kind: &str, name: &str, value: Value) -> String {
        let mut event = json!({"item_id": self.item_id, "output_index": 0, "content_index": 0});
        event[name] = value;
        self.numbered(kind, event)
    }
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

/// Status of the whole response.
fn status(generation: &Generation) -> &'static str {
    if generation.finish_reason() == "length" { "incomplete" } else { "completed" }
}

impl ResponseTexts for ResponsesTexts {
    fn event(&mut self, generation: &Generation, step: GenerationStep<'_>) -> String {
        match step {
            GenerationStep::Started => {
                let response = self.response(generation, "in_progress", &json!([]));
                let item = self.item("in_progress", &json!([]));
                self.numbered("response.created", json!({"response": response}))
                    + &self.numbered("response.in_progress", json!({"response": response}))
                    + &self.numbered("response.output_item.added", json!({"output_index": 0, "item": item}))
                    + &self.of_part("response.content_part.added", "part", part(""))
            }
            GenerationStep::Text(text) => {
                self.text.push_str(text);
                self.of_part("response.output_text.delta", "delta", text.into())
            }
            GenerationStep::Finished => {
                let text = std::mem::take(&mut self.text);
                let status = status(generation);
                let item = self.item(status, &json!([part(&text)]));
                let response = self.response(generation, status, &json!([item]));
                let end = if status == "incomplete" { "response.incomplete" } else { "response.completed" };
                self.of_part("response.output_text.done", "text", text.as_str().into())
                    + &self.of_part("response.content_part.done", "part", part(&text))
                    + &self.numbered("response.output_item.done", json!({"output_index": 0, "item": item}))
                    + &self.numbered(end, json!({"response": response}))
            }
        }
    }

    fn body(&self, generation: &Generation, text: &str) -> String {
        let status = status(generation);
        let item = self.item(status, &json!([part(text)]));
        self.response(generation, status, &json!([item])).to_string()
    }
}
