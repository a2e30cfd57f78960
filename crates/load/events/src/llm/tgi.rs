//! `/generate_stream` and `/generate` of Text Generation Inference.

use weir_json::JsonTextError;

use super::members::{count, each_event_member, each_member, is_set, is_text};
use super::{LlmEvent, TokenKind};

pub(super) fn read(data: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    let (mut has_token, mut has_whole_text) = (false, false);
    each_event_member(data, event, |name, value, event| {
        match name {
            b"token" => {
                has_token = true;
                return read_token(value, event);
            }
            // The last event of a stream has the whole text beside its token.
            b"generated_text" => (event.is_end, has_whole_text) = (is_set(value), is_text(value)),
            b"details" => return read_details(value, event),
            _ => {}
        }
        Ok(())
    })?;
    if has_whole_text && !has_token {
        event.set_token(TokenKind::Text);
    }
    Ok(())
}

/// A special token is none of the text.
fn read_token(token: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    let (mut has_text, mut is_special) = (false, false);
    each_member(token, |name, value| {
        match name {
            b"text" => has_text = is_text(value),
            b"special" => is_special = value == b"true",
            _ => {}
        }
        Ok(())
    })?;
    if has_text && !is_special {
        event.set_token(TokenKind::Text);
    }
    Ok(())
}

fn read_details(details: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
    each_member(details, |name, value| {
        match name {
            b"generated_tokens" => event.usage.output = count(value),
            b"input_length" => event.usage.input = count(value),
            _ => {}
        }
        Ok(())
    })
}
