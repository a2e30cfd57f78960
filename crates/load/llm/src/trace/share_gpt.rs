//! Conversations of ShareGPT with a time each: the first message of the user is the request.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use weir_replay::AccessTime;

use super::json_number::NameHash;
use super::trace_line_error::{TraceLineError, needed, parsed};
use super::trace_record::{TracePrompt, TraceRecord, TraceStart, TraceTokens};
use crate::json_text::push_escaped;

/// Names of a conversation's time.
pub(super) const TIMES: [&str; 4] = ["timestamp", "created_at", "create_time", "time"];
/// Names of users, and of models.
const USERS: [&str; 3] = ["human", "user", "prompter"];
const MODELS: [&str; 5] = ["gpt", "assistant", "chatgpt", "bing", "bard"];

#[derive(Debug, Deserialize)]
struct ShareGptLine<'l> {
    #[serde(alias = "created_at", alias = "create_time", alias = "time")]
    timestamp: Option<Value>,
    id: Option<NameHash>,
    #[serde(borrow)]
    conversations: Vec<ShareGptMessage<'l>>,
}

#[derive(Debug, Deserialize)]
struct ShareGptMessage<'l> {
    #[serde(borrow, alias = "role")]
    from: Cow<'l, str>,
    #[serde(borrow, alias = "content")]
    value: Cow<'l, str>,
}

/// Request of a line: a text, and as many tokens as the recorded reply has words.
pub(super) fn record(line: &str) -> Result<TraceRecord, TraceLineError> {
    let line: ShareGptLine<'_> = parsed(line)?;
    let time = needed(line.timestamp, "timestamp")?;
    let text = match &time {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let at = AccessTime::parse(&text).ok_or_else(|| {
        TraceLineError::Broken("a timestamp that is neither seconds or milliseconds since 1970 nor ISO 8601".to_owned())
    })?;
    let text_of = |names: &[&str]| {
        let message = line.conversations.iter().find(|message| names.contains(&&*message.from));
        message.map(|message| &*message.value)
    };
    let prompt = text_of(&USERS).ok_or(TraceLineError::NoRequest)?;
    let words = |text: &str| text.split_whitespace().count() as u64;
    let reply = text_of(&MODELS).ok_or(TraceLineError::NoTokens)?;
    let mut content = Vec::with_capacity(prompt.len());
    push_escaped(prompt, &mut content);
    let tokens = TraceTokens { input: words(prompt), output: words(reply) };
    TraceRecord::new(TraceStart::At(at.unix_ns), line.id.map(|name| name.0), tokens, TracePrompt::Text(content.into()))
}
