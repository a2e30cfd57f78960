//! APIs of language models, their names and paths.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// HTTP API by which a language model is served: how requests are written, and where responses have tokens and usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LlmApi {
    /// OpenAI's chat completions.
    #[default]
    Chat,
    /// OpenAI's completions.
    Completions,
    /// OpenAI's responses.
    Responses,
    /// OpenAI's embeddings, which have usage and no tokens.
    Embeddings,
    /// Anthropic's messages.
    Messages,
    /// Ollama's `/api/chat`.
    Ollama,
    /// Ollama's `/api/generate`.
    OllamaGenerate,
    /// `/generate_stream` and `/generate` of Text Generation Inference.
    Tgi,
}

impl LlmApi {
    /// All APIs.
    pub const ALL: [Self; 8] = [
        Self::Chat,
        Self::Completions,
        Self::Responses,
        Self::Embeddings,
        Self::Messages,
        Self::Ollama,
        Self::OllamaGenerate,
        Self::Tgi,
    ];

    /// Name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Completions => "completions",
            Self::Responses => "responses",
            Self::Embeddings => "embeddings",
            Self::Messages => "messages",
            Self::Ollama => "ollama",
            Self::OllamaGenerate => "ollama-generate",
            Self::Tgi => "tgi",
        }
    }

    /// Whether responses have tokens; embeddings have none.
    pub fn has_tokens(self) -> bool {
        self != Self::Embeddings
    }

    /// Whether servers of the API know `ignore_eos` and `min_tokens`, as vLLM and SGLang do.
    pub fn has_ignore_eos(self) -> bool {
        matches!(self, Self::Chat | Self::Completions)
    }

    /// Path of the API, for responses that are streamed or not.
    pub fn path(self, streams: bool) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Responses => "/v1/responses",
            Self::Embeddings => "/v1/embeddings",
            Self::Messages => "/v1/messages",
            Self::Ollama => "/api/chat",
            Self::OllamaGenerate => "/api/generate",
            Self::Tgi if streams => "/generate_stream",
            Self::Tgi => "/generate",
        }
    }

    /// API whose path a URL's path ends with.
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or(path).trim_end_matches('/');
        // Completions are the end of chat completions, too, but chat comes first.
        Self::ALL.into_iter().find(|api| {
            let own = api.path(true);
            path.ends_with(own.strip_prefix("/v1").unwrap_or(own)) || path.ends_with(api.path(false))
        })
    }

    /// Path of requests to a URL with this path and query: the API's path is added, unless it is there.
    pub fn target_path(self, given: &str, streams: bool) -> String {
        let (path, query) = given.split_once('?').map_or((given, None), |(path, query)| (path, Some(query)));
        let path = path.trim_end_matches('/');
        let own = self.path(streams);
        let whole = if Self::of_path(path) == Some(self) {
            path.to_owned()
        } else if let (true, Some(rest)) = (path.ends_with("/v1"), own.strip_prefix("/v1")) {
            format!("{path}{rest}")
        } else {
            format!("{path}{own}")
        };
        match query {
            Some(query) => format!("{whole}?{query}"),
            None => whole,
        }
    }
}

/// Reads a name; also those that vLLM has for its backends.
impl FromStr for LlmApi {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let name = match name {
            "openai-chat" | "vllm-chat" => "chat",
            "openai" | "vllm" => "completions",
            "openai-embeddings" => "embeddings",
            "anthropic" => "messages",
            other => other,
        };
        let known = Self::ALL.into_iter().find(|api| api.name() == name);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown API '{name}'; choose {names}")
        })
    }
}
