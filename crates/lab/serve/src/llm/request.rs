//! Requests of all APIs, as far as the service uses them.

use serde::Deserialize;
use serde_json::Value;

use weir_events::llm::LlmApi;

use super::error::LlmError;
use super::seen_blocks::{PromptBlocks, TOKEN_BYTES};

/// Request for text, of any API.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GenerationRequest {
    pub(super) api: LlmApi,
    pub(super) model: String,
    pub(super) input_tokens: u64,
    /// Maximum tokens of the response.
    pub(super) max_tokens: Option<u64>,
    /// Whether the response has as many tokens as it may.
    pub(super) ignores_end: bool,
    pub(super) is_stream: bool,
    /// Whether a stream ends with its usage.
    pub(super) wants_usage: bool,
    /// Texts of the prompt, each filled up to whole tokens; empty unless they are kept.
    pub(super) text: Vec<u8>,
    /// Blocks of the prompt, where they are counted.
    pub(super) blocks: Option<PromptBlocks>,
}

/// Members of requests, of all APIs.
#[derive(Debug, Deserialize)]
struct GenerationBody {
    model: Option<String>,
    messages: Option<Value>,
    system: Option<Value>,
    prompt: Option<Value>,
    input: Option<Value>,
    instructions: Option<Value>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
    #[serde(default)]
    stream: Option<bool>,
    stream_options: Option<UsageOption>,
    ignore_eos: Option<bool>,
    n: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct UsageOption {
    include_usage: Option<bool>,
}

impl GenerationRequest {
    /// Parses the body of a request; `keeps_text` keeps the texts of its prompt.
    pub(super) fn read(api: LlmApi, body: &[u8], keeps_text: bool) -> Result<Self, LlmError> {
        let body: GenerationBody =
            serde_json::from_slice(body).map_err(|error| LlmError::invalid(format!("invalid body: {error}"), None))?;
        let missing = |name: &'static str| LlmError::invalid(format!("missing parameter: '{name}'"), Some(name));
        let model = body.model.ok_or_else(|| missing("model"))?;
        let (name, content) = match api {
            LlmApi::Chat | LlmApi::Messages => ("messages", body.messages),
            LlmApi::Responses | LlmApi::Embeddings => ("input", body.input),
            _ => ("prompt", body.prompt),
        };
        let content = content.ok_or_else(|| missing(name))?;
        if matches!(api, LlmApi::Chat | LlmApi::Messages) && content.as_array().is_none_or(Vec::is_empty) {
            return Err(LlmError::invalid("'messages' is not a list of messages".to_owned(), Some("messages")));
        }
        if body.n.is_some_and(|n| n != 1) {
            return Err(LlmError::invalid("'n' is not 1".to_owned(), Some("n")));
        }
        let max_tokens = body.max_tokens.or(body.max_completion_tokens).or(body.max_output_tokens);
        if max_tokens == Some(0) {
            return Err(LlmError::invalid("'max_tokens' is 0".to_owned(), Some("max_tokens")));
        }
        if api == LlmApi::Messages && max_tokens.is_none() {
            return Err(missing("max_tokens"));
        }
        let others = [&body.system, &body.instructions].into_iter().flatten();
        let mut text = Vec::new();
        if keeps_text {
            others.clone().chain([&content]).for_each(|content| push_texts(content, &mut text));
        }
        let input_tokens = tokens_of(&content) + others.map(tokens_of).sum::<u64>();
        Ok(Self {
            api,
            model,
            input_tokens,
            max_tokens,
            ignores_end: body.ignore_eos.unwrap_or(false),
            is_stream: body.stream.unwrap_or(false) && api != LlmApi::Embeddings,
            wants_usage: body.stream_options.is_some_and(|options| options.include_usage.unwrap_or(false)),
            text,
            blocks: None,
        })
    }
}

/// Tokens of a prompt: one for each four bytes of text or part of that, per text, and one for each element of a list of
/// token IDs.
pub(super) fn tokens_of(content: &Value) -> u64 {
    match content {
        Value::String(text) => text.len().div_ceil(4) as u64,
        Value::Number(_) => 1,
        Value::Array(list) => list.iter().map(tokens_of).sum(),
        // Of a message or a part of one, its text.
        Value::Object(map) => {
            ["content", "text", "thinking"].iter().filter_map(|name| map.get(*name)).map(tokens_of).sum()
        }
        Value::Null | Value::Bool(_) => 0,
    }
}

/// Appends the texts of a prompt, each filled up with spaces to whole tokens; an element of a list of token IDs is one.
fn push_texts(content: &Value, out: &mut Vec<u8>) {
    match content {
        Value::String(text) => {
            out.extend_from_slice(text.as_bytes());
            out.resize(out.len().next_multiple_of(TOKEN_BYTES), b' ');
        }
        Value::Number(number) => {
            let id = number.as_u64().unwrap_or(0).to_le_bytes();
            out.extend_from_slice(&id[..TOKEN_BYTES]);
        }
        Value::Array(list) => list.iter().for_each(|content| push_texts(content, out)),
        Value::Object(map) => {
            let parts = ["content", "text", "thinking"].iter().filter_map(|name| map.get(*name));
            parts.for_each(|content| push_texts(content, out));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_prompt_has_a_token_for_each_four_bytes_of_text() {
        for (content, tokens) in [
            (json!("hello"), 2),
            (json!([{"role": "user", "content": "1234"}, {"role": "assistant", "content": "12345"}]), 3),
            (json!([{"role": "user", "content": [{"type": "text", "text": "12345678"}, {"type": "image_url"}]}]), 2),
            (json!(["abc", "abcd"]), 2),
            (json!([1, 2, 3]), 3),
            (json!(null), 0),
        ] {
            assert_eq!(tokens_of(&content), tokens, "{content}");
            let mut text = Vec::new();
            push_texts(&content, &mut text);
            assert_eq!(text.len() as u64, tokens * TOKEN_BYTES as u64, "{content}");
        }
    }

    #[test]
    fn requests_of_all_apis_are_read() {
        let chat = GenerationRequest::read(
            LlmApi::Chat,
            br#"{"model":"m","messages":[{"role":"user","content":"hi"}],"max_completion_tokens":5,"stream":true,"stream_options":{"include_usage":true}}"#,
            false,
        );
        let expected = GenerationRequest {
            api: LlmApi::Chat,
            model: "m".to_owned(),
            input_tokens: 1,
            max_tokens: Some(5),
            ignores_end: false,
            is_stream: true,
            wants_usage: true,
            text: Vec::new(),
            blocks: None,
        };
        assert_eq!(chat, Ok(expected));
        for (api, body, reason) in [
            (LlmApi::Chat, "{", "invalid body: EOF while parsing an object at line 1 column 1"),
            (LlmApi::Chat, r#"{"messages":[]}"#, "missing parameter: 'model'"),
            (LlmApi::Chat, r#"{"model":"m"}"#, "missing parameter: 'messages'"),
            (LlmApi::Chat, r#"{"model":"m","messages":"hi"}"#, "'messages' is not a list of messages"),
            (LlmApi::Completions, r#"{"model":"m","prompt":"a","n":2}"#, "'n' is not 1"),
            (LlmApi::Completions, r#"{"model":"m","prompt":"a","max_tokens":0}"#, "'max_tokens' is 0"),
            (LlmApi::Messages, r#"{"model":"m","messages":[{}]}"#, "missing parameter: 'max_tokens'"),
            (LlmApi::Responses, r#"{"model":"m"}"#, "missing parameter: 'input'"),
        ] {
            let error = GenerationRequest::read(api, body.as_bytes(), true).expect_err(body);
            assert_eq!(error.message, reason);
        }
    }
}
