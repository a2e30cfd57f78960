//! Events of language models' APIs: tokens, usage and errors, read without building a tree.
//!
//! - [`LlmApi`]: the API: its path, and where its responses have tokens
//! - [`LlmEvent`]: text of a token, usage, end, error
//!
//! An event with a token is one whose text is not empty; an event that only announces a role or ends a message is not
//! one. Unknown members are skipped, and so are heartbeats: events without data, `event: ping`, and events of other
//! names whose data is not JSON, since providers add types of events (Anthropic, "Versioning").

mod anthropic;
mod llm_api;
mod members;
mod ollama;
mod openai;
mod responses;
mod tgi;

use std::borrow::Cow;

use weir_json::{JsonTextError, unescaped};

use self::members::{each_element, each_member, is_text};

pub use self::llm_api::LlmApi;

/// Kind of a token's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Text of the response.
    Text,
    /// Text of reasoning before the response.
    Reasoning,
    /// Arguments of a tool call.
    ToolCall,
}

/// Numbers of tokens that a server reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens of the prompt.
    pub input: Option<u64>,
    /// Tokens of the response so far.
    pub output: Option<u64>,
}

/// Content of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LlmEvent {
    /// Text that is not empty, by its kind; none without one. Text of the response is preferred.
    pub token: Option<TokenKind>,
    /// Usage in this event.
    pub usage: TokenUsage,
    /// Whether the response is whole with this event: `[DONE]`, `finish_reason`, `message_stop`, `"done": true` and the
    /// like.
    pub is_end: bool,
    /// Whether the event reports an error.
    pub is_error: bool,
}

impl TokenUsage {
    /// Takes over what a later event reports; its numbers are cumulative.
    pub fn update(&mut self, later: Self) {
        self.input = later.input.or(self.input);
        self.output = later.output.or(self.output);
    }
}

impl LlmEvent {
    fn set_token(&mut self, kind: TokenKind) {
        if self.token.is_none() || kind == TokenKind::Text {
            self.token = Some(kind);
        }
    }
}

impl LlmApi {
    /// Reads an event by its name, which is empty without one; none for a heartbeat.
    ///
    /// # Errors
    /// Data that is not JSON, as far as it is read.
    pub fn read_event(self, name: &[u8], data: &[u8]) -> Result<Option<LlmEvent>, JsonTextError> {
        if data.trim_ascii().is_empty() || data.trim_ascii() == b"null" {
            return Ok(None);
        }
        let read = self.read(data);
        match name {
            b"" | b"message" => read.map(Some),
            b"error" => Ok(Some(LlmEvent { is_error: true, ..read.unwrap_or_default() })),
            _ => Ok(read.ok()),
        }
    }

    /// Reads an event's data, or the whole body of a response that is not streamed.
    ///
    /// # Errors
    /// Data that is not JSON, as far as it is read.
    pub fn read(self, data: &[u8]) -> Result<LlmEvent, JsonTextError> {
        let data = data.trim_ascii();
        if data == b"[DONE]" {
            return Ok(LlmEvent { is_end: true, ..LlmEvent::default() });
        }
        let mut event = LlmEvent::default();
        match data.first() {
            Some(b'{') => self.read_object(data, &mut event)?,
            // A body that is a list of one response.
            Some(b'[') if self == Self::Tgi => {
                let mut has_response = false;
                each_element(data, |one| match one.first() {
                    Some(b'{') => {
                        has_response = true;
                        self.read_object(one, &mut event)
                    }
                    _ => Ok(()),
                })?;
                if !has_response {
                    return Err(JsonTextError::Syntax(0));
                }
            }
            _ => return Err(JsonTextError::Syntax(0)),
        }
        Ok(event)
    }

    fn read_object(self, data: &[u8], event: &mut LlmEvent) -> Result<(), JsonTextError> {
        match self {
            Self::Chat | Self::Completions | Self::Embeddings => openai::read(data, event),
            Self::Responses => responses::read(data, event),
            Self::Messages => anthropic::read(data, event),
            Self::Ollama | Self::OllamaGenerate => ollama::read(data, event),
            Self::Tgi => tgi::read(data, event),
        }
    }
}

/// Message of an event that reports an error: that of the server, or the data.
pub fn error_message(data: &[u8]) -> String {
    let message = |object: &[u8]| {
        let mut found = None;
        let _ = each_member(object, |name, value| {
            if matches!(name, b"message" | b"detail") && is_text(value) {
                found = unescaped(value).map(Cow::into_owned);
            }
            Ok(())
        });
        found
    };
    let mut found = None;
    if data.trim_ascii().first() == Some(&b'{') {
        let _ = each_member(data.trim_ascii(), |name, value| {
            if matches!(name, b"error" | b"response") {
                found = match value.first() {
                    Some(b'"') => unescaped(value).map(Cow::into_owned),
                    Some(b'{') => message(value).or_else(|| nested_error(value).and_then(message)),
                    _ => None,
                };
            }
            Ok(())
        });
        found = found.or_else(|| message(data.trim_ascii()));
    }
    let text = found.unwrap_or_else(|| String::from_utf8_lossy(data.trim_ascii()).into_owned());
    text.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// Maximum length of the message of an error, in characters.
const MAX_MESSAGE_CHARS: usize = 200;

fn nested_error(object: &[u8]) -> Option<&[u8]> {
    let mut found = None;
    let _ = each_member(object, |name, value| {
        if name == b"error" && value.first() == Some(&b'{') {
            found = Some(value);
        }
        Ok(())
    });
    found
}
