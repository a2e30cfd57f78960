//! Messages and images, as each API has them.

use std::io::Write as _;

use weir_events::llm::LlmApi;

use crate::dataset::{ChatRole, ContentPart, PartKind};
use crate::json_text::{string_content, string_text};
use crate::prompt_source::{MessageContent, PromptSource, RequestMessage};

/// Writer of the messages of one conversation.
#[derive(Clone, Copy, Debug)]
pub(super) struct MessageWriter<'p> {
    pub(super) api: LlmApi,
    pub(super) prompts: &'p PromptSource,
    pub(super) conversation: u64,
}

impl MessageWriter<'_> {
    /// Appends the texts of all messages as one JSON string, joined by line breaks.
    pub(super) fn push_prompt(self, messages: &[RequestMessage<'_>], out: &mut Vec<u8>) {
        out.push(b'"');
        self.push_prompt_content(messages, out);
        out.push(b'"');
    }

    /// Appends the texts of all messages as content of a JSON string, joined by line breaks.
    pub(super) fn push_prompt_content(self, messages: &[RequestMessage<'_>], out: &mut Vec<u8>) {
        for (index, message) in messages.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b"\\n");
            }
            self.prompts.push_text(self.conversation, message, out);
        }
    }

    /// Appends the messages as a list.
    pub(super) fn push_messages(self, messages: &[RequestMessage<'_>], out: &mut Vec<u8>) {
        out.push(b'[');
        for (index, message) in messages.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            self.push_message(message, out);
        }
        out.push(b']');
    }

    fn push_message(self, message: &RequestMessage<'_>, out: &mut Vec<u8>) {
        if let (LlmApi::Chat, Some(raw), true) = (self.api, message.raw, message.prefix.is_empty()) {
            out.extend_from_slice(raw);
            return;
        }
        // Writing to a vector does not fail.
        let _ = write!(out, r#"{{"role":"{}","content":"#, message.role.name());
        let images = images(message);
        if self.api == LlmApi::Ollama {
            self.push_text(message, out);
            if !images.is_empty() {
                out.extend_from_slice(br#","images":["#);
                for (index, image) in images.iter().enumerate() {
                    out.extend_from_slice(if index > 0 { b"," } else { b"" });
                    let url = string_content(self.prompts.span(image.span)).unwrap_or_default();
                    let _ = write!(out, "\"{}\"", data_of_url(&String::from_utf8_lossy(url)).unwrap_or_default().1);
                }
                out.push(b']');
            }
        } else if images.is_empty() && !has_other(message) {
            self.push_text(message, out);
        } else {
            self.push_parts(message, out);
        }
        out.push(b'}');
    }

    /// Appends the text of a message as a JSON string.
    fn push_text(self, message: &RequestMessage<'_>, out: &mut Vec<u8>) {
        out.push(b'"');
        self.prompts.push_text(self.conversation, message, out);
        out.push(b'"');
    }

    /// Appends the parts of a message as a list.
    fn push_parts(self, message: &RequestMessage<'_>, out: &mut Vec<u8>) {
        let MessageContent::Parts(parts) = message.content else { return self.push_text(message, out) };
        out.push(b'[');
        let mut prefix = message.prefix;
        let has_text = parts.iter().any(is_text);
        let mut is_first = true;
        let mut separate = |out: &mut Vec<u8>| {
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
        };
        if !prefix.is_empty() && !has_text {
            separate(out);
            self.push_text_part(message.role, std::mem::take(&mut prefix), None, out);
        }
        for part in parts {
            separate(out);
            match part.kind {
                PartKind::PlainText | PartKind::JsonText => {
                    self.push_text_part(message.role, std::mem::take(&mut prefix), Some(part), out);
                }
                PartKind::Image => self.push_image(part, out),
                PartKind::Other => out.extend_from_slice(self.prompts.span(part.span)),
            }
        }
        out.push(b']');
    }

    fn push_text_part(self, role: ChatRole, prefix: &[u8], part: Option<&ContentPart>, out: &mut Vec<u8>) {
        let kind = match (self.api, role) {
            (LlmApi::Responses, ChatRole::Assistant) => "output_text",
            (LlmApi::Responses, _) => "input_text",
            _ => "text",
        };
        let _ = write!(out, r#"{{"type":"{kind}","text":""#);
        out.extend_from_slice(prefix);
        if let Some(part) = part {
            self.prompts.push_part(part, out);
        }
        out.extend_from_slice(b"\"}");
    }

    fn push_image(self, part: &ContentPart, out: &mut Vec<u8>) {
        let url = self.prompts.span(part.span);
        match self.api {
            LlmApi::Responses => {
                out.extend_from_slice(br#"{"type":"input_image","image_url":"#);
                out.extend_from_slice(url);
                out.push(b'}');
            }
            LlmApi::Messages => {
                let text = string_text(url).unwrap_or_default();
                out.extend_from_slice(br#"{"type":"image","source":{"type":"#);
                if let Some((media_type, data)) = data_of_url(&text) {
                    let _ = write!(out, r#""base64","media_type":"{media_type}","data":"{data}""#);
                } else {
                    out.extend_from_slice(br#""url","url":"#);
                    out.extend_from_slice(url);
                }
                out.extend_from_slice(b"}}");
            }
            _ => {
                out.extend_from_slice(br#"{"type":"image_url","image_url":{"url":"#);
                out.extend_from_slice(url);
                out.extend_from_slice(b"}}");
            }
        }
    }
}

/// Media type and base64 of a data URL; none of another one.
pub(super) fn data_of_url(url: &str) -> Option<(&str, &str)> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    // Both stand in JSON strings.
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
    (is_plain(media_type) && is_plain(data)).then_some((media_type, data))
}

fn is_text(part: &ContentPart) -> bool {
    matches!(part.kind, PartKind::PlainText | PartKind::JsonText)
}

fn images<'p>(message: &RequestMessage<'p>) -> Vec<&'p ContentPart> {
    match message.content {
        MessageContent::Parts(parts) => parts.iter().filter(|part| part.kind == PartKind::Image).collect(),
        MessageContent::Reply(_) | MessageContent::Random(_) | MessageContent::Traced(_) => Vec::new(),
    }
}

fn has_other(message: &RequestMessage<'_>) -> bool {
    matches!(message.content, MessageContent::Parts(parts) if parts.iter().any(|part| part.kind == PartKind::Other))
}
