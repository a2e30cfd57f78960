//! Text of a model's response.

use weir_events::llm::LlmApi;
use weir_events::{EventReader, StreamFormat};

use super::json_text::{elements, member, string_content};

/// Appends the text of a whole response, streamed or not, as content of a JSON string; reasoning and tool calls are left
/// out. Escapes stay as the server wrote them, so that half a surrogate pair finds its other half in the next event.
pub fn push_reply_text(api: LlmApi, format: StreamFormat, body: &[u8], out: &mut Vec<u8>) {
    if matches!(format, StreamFormat::Chunks) {
        push_event_text(api, body, out);
        return;
    }
    let mut reader = EventReader::with_max_data(format, body.len().max(1));
    let mut rest = body;
    while let Some(event) = reader.next_event(&mut rest) {
        push_event_text(api, event.data, out);
    }
    if let Some(event) = reader.end() {
        push_event_text(api, event.data, out);
    }
}

fn push_event_text(api: LlmApi, data: &[u8], out: &mut Vec<u8>) {
    let data = data.trim_ascii();
    let mut push = |value: Option<&[u8]>| {
        if let Some(text) = value.and_then(string_content) {
            out.extend_from_slice(text);
        }
    };
    match api {
        LlmApi::Chat | LlmApi::Completions => {
            let choices = member(data, b"choices").unwrap_or_default();
            let Some(choice) = elements(choices).first().copied() else { return };
            let message = member(choice, b"delta").or_else(|| member(choice, b"message"));
            push(message.and_then(|message| member(message, b"content")).or_else(|| member(choice, b"text")));
        }
        LlmApi::Responses => {
            if member(data, b"type") == Some(b"\"response.output_text.delta\"") {
                push(member(data, b"delta"));
            }
            for item in elements(member(data, b"output").unwrap_or_default()) {
                for part in elements(member(item, b"content").unwrap_or_default()) {
                    push(member(part, b"text"));
                }
            }
        }
        LlmApi::Messages => {
            push(member(data, b"delta").and_then(|delta| member(delta, b"text")));
            for block in elements(member(data, b"content").unwrap_or_default()) {
                push(member(block, b"text"));
            }
        }
        LlmApi::Ollama => {
            push(member(data, b"message").and_then(|message| member(message, b"content")));
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
