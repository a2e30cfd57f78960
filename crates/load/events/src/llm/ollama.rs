//! Ollama's `/api/chat` and `/api/generate`: lines of JSON.

use weir_json::JsonTextError;

use super::members::{count, each_element, each_event_member, each_member, is_text};
use super::{LlmEvent, TokenKind};

pub(super) fn read(data: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    each_event_member(data, event, |name, value, event| {
        match name {
            b"message" => return read_message(value, event),
            b"response" if is_text(value) => event.set_token(TokenKind::Text),
            b"thinking" if is_text(value) => event.set_token(TokenKind::Reasoning),
            b"done" => event.is_end = value == b"true",
            b"prompt_eval_count" => event.usage.input = count(value),
            b"eval_count" => event.usage.output = count(value),
            _ => {}
        }
        Ok(())
    })
}

fn read_message(message: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    each_member(message, |name, value| {
        match name {
            b"content" if is_text(value) => event.set_token(TokenKind::Text),
            b"thinking" if is_text(value) => event.set_token(TokenKind::Reasoning),
            b"tool_calls" => {
                return each_element(value, |_| {
                    event.set_token(TokenKind::ToolCall);
                    Ok(())
                });
            }
            _ => {}
        }
        Ok(())
    })
}
