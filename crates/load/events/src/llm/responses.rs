//! OpenAI's responses.

use weir_json::JsonTextError;

use super::members::{each_element, each_event_member, each_member, is_text, plain_text};
use super::openai::usage;
use super::{LlmEvent, TokenKind};

pub(super) fn read(data: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    let (mut kind, mut delta): (&[u8], &[u8]) = (b"", b"");
    each_event_member(data, event, |name, value, event| {
        match name {
            b"type" => kind = plain_text(value),
            b"delta" => delta = value,
            b"response" => return read_response(value, event),
            // A response that is not streamed.
            b"usage" => event.usage.update(usage(value)?),
            b"output" => return read_output(value, event),
            _ => {}
        }
        Ok(())
    })?;
    match kind {
        b"response.completed" | b"response.incomplete" => event.is_end = true,
        b"response.failed" => (event.is_end, event.is_error) = (true, true),
        b"error" => event.is_error = true,
        _ if is_text(delta) => {
            let is_of = |part: &[u8]| kind.windows(part.len()).any(|window| window == part);
            event.set_token(if is_of(b"reasoning") {
                TokenKind::Reasoning
            } else if is_of(b"arguments") || is_of(b"tool_call") {
                TokenKind::ToolCall
            } else {
                TokenKind::Text
            });
        }
        _ => {}
    }
    Ok(())
}

fn read_response(response: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    each_event_member(response, event, |name, value, event| {
        if name == b"usage" {
            event.usage.update(usage(value)?);
        }
        Ok(())
    })
}

fn read_output(output: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    each_element(output, |item| {
        each_member(item, |name, value| match name {
            b"content" => each_element(value, |part| {
                each_member(part, |name, value| {
                    if matches!(name, b"text" | b"refusal") && is_text(value) {
                        event.set_token(TokenKind::Text);
                    }
                    Ok(())
                })
            }),
            b"arguments" if is_text(value) => {
                event.set_token(TokenKind::ToolCall);
                Ok(())
            }
            _ => Ok(()),
        })
    })
}
