//! Text of a model's response.

use weir_events::llm::LlmApi;
use weir_events::{EventReader, StreamFormat};

use super::json_text::{elements, member, string_content};

/// Parts of a response whose text is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyParts {
    /// Text that the next turn of a conversation repeats: without reasoning and tool calls.
    Content,
    /// All that was generated.
    Generated,
}

/// Appends the text of a whole response, streamed or not, as content of a JSON string. Escapes stay as the server wrote them, so that half a surrogate pair finds its other half in the next event.
pub fn push_reply_text(api: LlmApi, parts: ReplyParts, format: StreamFormat, body: &[u8], out: &mut Vec<u8>) {
    if matches!(format, StreamFormat::Chunks) {
        push_event_text(api, parts, body, out);
        return;
    }
    let mut reader = EventReader::with_max_data(format, body.len().max(1));
    let mut rest = body;
    while let Some(event) = reader.next_event(&mut rest) {
        push_event_text(api, parts, event.data, out);
    }
    if let Some(event) = reader.end() {
        push_event_text(api, parts, event.data, out);
    }
}

fn push_event_text(api: LlmApi, parts: ReplyParts, data: &[u8], out: &mut Vec<u8>) {
    let data = data.trim_ascii();
    let mut push = |value: Option<&[u8]>| {
        if let Some(text) = value.and_then(string_content) {
            out.extend_from_slice(text);
        }
    };
    let has_all = parts == ReplyParts::Generated;
    match api {
        LlmApi::Chat | LlmApi::Completions => {
            let choices = member(data, b"choices").unwrap_or_default();
            let Some(choice) = elements(choices).first().copied() else { return };
            let message = member(choice, b"delta").or_else(|| member(choice, b"message"));
            if let Some(message) = message.filter(|_| has_all) {
                push(member(message, b"reasoning_content").or_else(|| member(message, b"reasoning")));
                for call in elements(member(message, b"tool_calls").unwrap_or_default()) {
                    let function = member(call, b"function").unwrap_or_default();
                    push(member(function, b"name"));
                    push(member(function, b"arguments"));
                }
            }
            push(message.and_then(|message| member(message, b"content")).or_else(|| member(choice, b"text")));
        }
        LlmApi::Responses => {
            let kind = member(data, b"type").unwrap_or_default();
            let is_other =
                kind.starts_with(b"\"response.reasoning") || kind.starts_with(b"\"response.function_call_arg");
            if kind == b"\"response.output_text.delta\"" || (has_all && is_other && kind.ends_with(b".delta\"")) {
                push(member(data, b"delta"));
            }
            for item in elements(member(data, b"output").unwrap_or_default()) {
                for part in elements(member(item, b"content").unwrap_or_default()) {
                    push(member(part, b"text"));
                }
            }
        }
        LlmApi::Messages => {
            let delta = member(data, b"delta");
            if let Some(delta) = delta.filter(|_| has_all) {
                push(member(delta, b"thinking").or_else(|| member(delta, b"partial_json")));
            }
            push(delta.and_then(|delta| member(delta, b"text")));
            for block in elements(member(data, b"content").unwrap_or_default()) {
                push(member(block, b"text"));
            }
        }
        LlmApi::Ollama | LlmApi::OllamaGenerate => {
            let message = member(data, b"message");
            if has_all {
                push(message.and_then(|message| member(message, b"thinking")).or_else(|| member(data, b"thinking")));
            }
            push(message.and_then(|message| member(message, b"content")));
            push(member(data, b"response"));
        }
        LlmApi::Tgi => match member(data, b"token") {
            Some(token) if member(token, b"special") == Some(b"true") => {}
            Some(token) => push(member(token, b"text")),
            None => push(member(data, b"generated_text")),
        },
        LlmApi::Embeddings => {}
    }
}
