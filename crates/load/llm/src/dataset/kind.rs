//! Kinds of data sets.

use crate::json_text::{is_list, is_object, member};

/// Kind of a data set's records; all records of a file have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetKind {
    /// Lines of text: each is a prompt.
    Lines,
    /// Strings of JSON: each is a prompt.
    Strings,
    /// Objects with a prompt, and an image, a system prompt or a number of tokens beside it.
    Prompts,
    /// Conversations as OpenAI's messages.
    Messages,
    /// Conversations of turns, as AIPerf and MT-Bench have them: what the user says.
    Turns,
    /// Conversations of ShareGPT.
    ShareGpt,
    /// Requests of OpenAI's batch API.
    Batch,
}

/// Names of the member that is the prompt of a record.
pub(super) const PROMPT_NAMES: [&[u8]; 3] = [b"prompt", b"text", b"text_input"];
/// Names of the member that has the conversation of a record of ShareGPT.
pub(super) const SHARE_GPT_NAMES: [&[u8]; 2] = [b"conversations", b"conversation"];

impl DatasetKind {
    /// Kind of a record, if it is one.
    pub(super) fn of(record: &[u8]) -> Option<Self> {
        let has = |name: &[u8]| member(record, name).is_some();
        if record.first() == Some(&b'"') {
            Some(Self::Strings)
        } else if member(record, b"body").is_some_and(is_object) {
            Some(Self::Batch)
        } else if has(b"messages") || member(record, b"prompt").is_some_and(is_list) {
            Some(Self::Messages)
        } else if SHARE_GPT_NAMES.iter().any(|name| has(name)) {
            Some(Self::ShareGpt)
        } else if has(b"turns") {
            Some(Self::Turns)
        } else if PROMPT_NAMES.iter().any(|name| has(name)) {
            Some(Self::Prompts)
        } else {
            None
        }
    }

    /// Example of a record of this kind, for messages.
    pub(super) fn example(self) -> &'static str {
        match self {
            Self::Lines => "a line of text",
            Self::Strings => r#""text""#,
            Self::Prompts => r#"{"prompt": "text"}"#,
            Self::Messages => r#"{"messages": [{"role": "user", "content": "text"}]}"#,
            Self::Turns => r#"{"turns": [{"text": "text"}]}"#,
            Self::ShareGpt => r#"{"conversations": [{"from": "human", "value": "text"}]}"#,
            Self::Batch => r#"{"custom_id": "1", "body": {"messages": [{"role": "user", "content": "text"}]}}"#,
        }
    }
}
