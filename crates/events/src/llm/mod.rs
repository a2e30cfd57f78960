//! What events of language models' APIs hold, read without a tree.
//!
//! - [`LlmApi`]: the API, which decides where to look
//! - [`LlmEvent`]: text of a token, usage, end, error
//!
//! An event with a token is one whose text is not empty; an event that only announces a role or ends a message is not
//! one. Unknown members are skipped.

mod anthropic;
mod members;
mod ollama;
mod openai;
mod responses;
mod tgi;

use serde::{Deserialize, Serialize};
use weir_json::JsonTextError;

/// API of a language model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LlmApi {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's completions.
    Completions,
    /// OpenAI's responses.
    Responses,
    /// OpenAI's embeddings, which have usage and no tokens.
    Embeddings,
    /// Anthropic's messages.
    Messages,
    /// Ollama's `/api/chat` and `/api/generate`.
    Ollama,
    /// `/generate_stream` and `/generate` of Text Generation Inference.
    Tgi,
}

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
    /// Whether the stream ends with this event: `[DONE]`, `message_stop`, `"done": true` and the like.
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
    /// All APIs.
    pub const ALL: [Self; 7] =
        [Self::Chat, Self::Completions, Self::Responses, Self::Embeddings, Self::Messages, Self::Ollama, Self::Tgi];

    /// Name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
            Self::Responses => "responses",
            Self::Embeddings => "embeddings",
            Self::Messages => "messages",
            Self::Ollama => "ollama",
            Self::Tgi => "tgi",
        }
    }

    /// Parses a name.
    ///
    /// # Errors
    /// An unknown name, with the known ones.
    pub fn parse(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|api| api.name() == name).ok_or_else(|| {
            format!("unknown API '{name}'; choose chat, completions, responses, embeddings, messages, ollama or tgi")
        })
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
        if data.first() != Some(&b'{') {
            return Err(JsonTextError::Syntax(0));
        }
        let mut event = LlmEvent::default();
        match self {
            Self::Chat | Self::Completions | Self::Embeddings => openai::read(data, &mut event),
            Self::Responses => responses::read(data, &mut event),
            Self::Messages => anthropic::read(data, &mut event),
            Self::Ollama => ollama::read(data, &mut event),
            Self::Tgi => tgi::read(data, &mut event),
        }?;
        Ok(event)
    }
}
