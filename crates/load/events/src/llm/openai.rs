//! OpenAI's chat completions, completions and embeddings, as vLLM, SGLang and others have them, too.

use weir_json::JsonTextError;

use super::members::{count, each_element, each_event_member, each_member, is_text, plain_text};
use super::{LlmEvent, TokenKind, TokenUsage};

pub(super) fn read(data: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    each_event_member(data, event, |name, value, event| {
        match name {
            b"choices" => return each_element(value, |choice| read_choice(choice, event)),
            b"usage" => event.usage.update(usage(value)?),
            // Older servers report an error this way.
            b"object" => event.is_error |= plain_text(value) == b"error",
            _ => {}
        }
        Ok(())
    })
}

fn read_choice(choice: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    each_member(choice, |name, value| {
        match name {
            b"delta" | b"message" => return read_message(value, event),
            b"text" if is_text(value) => event.set_token(TokenKind::Text),
            b"finish_reason" => event.is_end |= is_text(value),
            _ => {}
        }
        Ok(())
    })
}

fn read_message(message: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    each_member(message, |name, value| {
        match name {
            b"content" | b"refusal" if is_text(value) => event.set_token(TokenKind::Text),
            b"content" if value.first() == Some(&b'[') => return each_element(value, |part| read_part(part, event)),
            b"audio" => return read_audio(value, event),
            b"reasoning" | b"reasoning_content" if is_text(value) => event.set_token(TokenKind::Reasoning),
            b"tool_calls" => return each_element(value, |call| read_tool_call(call, event)),
            b"function_call" => return read_function(value, event),
            _ => {}
        }
        Ok(())
    })
}

/// Part of a content that is a list, as of models that think (Mistral, "reasoning"): its text, or that of its thinking.
fn read_part(part: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    if part.first() != Some(&b'{') {
        if is_text(part) {
            event.set_token(TokenKind::Text);
        }
        return Ok(());
    }
    each_member(part, |name, value| {
        match name {
            b"text" if is_text(value) => event.set_token(TokenKind::Text),
            b"thinking" if is_text(value) => event.set_token(TokenKind::Reasoning),
            b"thinking" if value.first() == Some(&b'[') => {
                return each_element(value, |thought| {
                    let mut inner = LlmEvent::default();
                    read_part(thought, &mut inner)?;
                    if inner.token.is_some() {
                        event.set_token(TokenKind::Reasoning);
                    }
                    Ok(())
                });
            }
            _ => {}
        }
        Ok(())
    })
}

/// Spoken tokens.
fn read_audio(audio: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    if audio.first() != Some(&b'{') {
        return Ok(());
    }
    each_member(audio, |name, value| {
        if matches!(name, b"data" | b"transcript") && is_text(value) {
            event.set_token(TokenKind::Text);
        }
        Ok(())
    })
}

fn read_tool_call(call: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    each_member(call, |name, value| if name == b"function" { read_function(value, event) } else { Ok(()) })
}

/// The name of a function is a token as well as its arguments: it is generated.
fn read_function(function: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    each_member(function, |name, value| {
        if matches!(name, b"arguments" | b"name") && is_text(value) {
            event.set_token(TokenKind::ToolCall);
        }
        Ok(())
    })
}

/// Usage with OpenAI's names: of chat completions and completions, or of responses.
pub(super) fn usage(object: &[u8]) -> Result<TokenUsage, JsonTextError> {
    let mut usage = TokenUsage::default();
    each_member(object, |name, value| {
        match name {
            b"prompt_tokens" | b"input_tokens" => usage.input = count(value),
            b"completion_tokens" | b"output_tokens" => usage.output = count(value),
            _ => {}
        }
        Ok(())
    })?;
    Ok(usage)
}
