//! Anthropic's messages.

use weir_json::JsonTextError;

use super::members::{count, each_element, each_event_member, each_member, is_text, plain_text};
use super::{LlmEvent, TokenKind, TokenUsage};

pub(super) fn read(data: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    each_event_member(data, event, |name, value, event| {
        match name {
            b"type" => match plain_text(value) {
                b"message_stop" => event.is_end = true,
                b"error" => event.is_error = true,
                _ => {}
            },
            b"delta" | b"content_block" => return read_block(value, event),
            b"message" => return read_message(value, event),
            // A response that is not streamed.
            b"content" => return each_element(value, |block| read_block(block, event)),
            b"usage" => event.usage.update(usage(value)?),
            _ => {}
        }
        Ok(())
    })
}

fn read_message(message: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    each_member(message, |name, value| {
        match name {
            b"usage" => event.usage.update(usage(value)?),
            b"content" => return each_element(value, |block| read_block(block, event)),
            _ => {}
        }
        Ok(())
    })
}

/// A block of content, or a part of one.
fn read_block(block: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    let (mut is_tool, mut has_name) = (false, false);
    each_member(block, |name, value| {
        match name {
            b"type" => is_tool = plain_text(value).ends_with(b"tool_use"),
            b"name" => has_name = is_text(value),
            b"text" if is_text(value) => event.set_token(TokenKind::Text),
            b"thinking" if is_text(value) => event.set_token(TokenKind::Reasoning),
            b"partial_json" if is_text(value) => event.set_token(TokenKind::ToolCall),
            _ => {}
        }
        Ok(())
    })?;
    if is_tool && has_name {
        event.set_token(TokenKind::ToolCall);
    }
    Ok(())
}

/// Usage; the prompt is what was read anew, from the cache, and into it.
fn usage(object: &[u8]) -> Result<TokenUsage, JsonTextError> {
    let mut usage = TokenUsage::default();
    let mut cached = 0_u64;
    each_member(object, |name, value| {
        match name {
            b"input_tokens" => usage.input = count(value),
            b"cache_creation_input_tokens" | b"cache_read_input_tokens" => {
                cached = cached.saturating_add(count(value).unwrap_or(0));
            }
            b"output_tokens" => usage.output = count(value),
            _ => {}
        }
        Ok(())
    })?;
    usage.input = usage.input.map(|input| input.saturating_add(cached));
    Ok(usage)
}
