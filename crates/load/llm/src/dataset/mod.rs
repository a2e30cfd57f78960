//! Prompts and conversations of a file.
//!
//! - [`Dataset`]: a file, and the places of its texts
//! - [`DatasetKind`]: kind of its records, detected from the first one
//! - `record`: reader of one record; `content`: of what a message holds
//! - `images`: images of records; those of files become data URLs

mod content;
mod error;
mod images;
mod kind;
mod read;
mod record;

use std::collections::BTreeSet;
use std::ops::Range;

use weir_base::Nanos;

pub use self::error::DatasetError;
pub use self::images::ImageReader;
pub use self::kind::DatasetKind;

/// Place of a text in the bytes of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Role of a message's author.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChatRole {
    System,
    User,
    Assistant,
    /// Result of a tool call.
    Tool,
}

impl ChatRole {
    /// Name in APIs.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// Kind of a part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    /// Text as it is.
    PlainText,
    /// Text as a JSON string, with its quotes.
    JsonText,
    /// URL of an image as a JSON string, with its quotes.
    Image,
    /// Part of another type, as JSON: sound, or a file.
    Other,
}

/// Part of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContentPart {
    pub(crate) kind: PartKind,
    pub(crate) span: TextSpan,
}

/// Message of a conversation.
#[derive(Clone, Debug)]
pub(crate) struct DatasetMessage {
    pub(crate) role: ChatRole,
    pub(crate) parts: Range<usize>,
    /// The whole message, if it has more than role and content: tool calls, for instance.
    pub(crate) raw: Option<TextSpan>,
    /// Think time before the message.
    pub(crate) think: Option<Nanos>,
}

/// Request body or conversation of a record, as places in the file's text.
#[derive(Clone, Debug)]
pub(crate) enum RecordContent {
    /// Body of a request, as it is.
    Body(TextSpan),
    /// Conversation.
    Messages(Range<usize>),
}

/// Record of a data set.
#[derive(Clone, Debug)]
pub(crate) struct DatasetRecord {
    /// Line that it begins in, from 1.
    pub(crate) line: u64,
    pub(crate) content: RecordContent,
    /// Maximum number of tokens of a response, if the record has one.
    pub(crate) max_tokens: Option<u64>,
}

/// Prompts and conversations of a file, stored as it came; records are places in it.
#[derive(Debug)]
pub struct Dataset {
    name: String,
    kind: DatasetKind,
    /// The file, and behind it the data URLs of images that were files.
    text: Vec<u8>,
    records: Vec<DatasetRecord>,
    messages: Vec<DatasetMessage>,
    parts: Vec<ContentPart>,
    /// Path of the batch's requests.
    batch_url: Option<String>,
    skipped: u64,
    /// Names of members that a body could have, and that are not sent, in order.
    unsent: BTreeSet<&'static str>,
}

impl Dataset {
    /// Reads the content of a file; images that it names as files are read by `images`.
    ///
    /// # Errors
    /// The first record that is not of the file's kind, with its line.
    pub fn parse(name: &str, content: Vec<u8>, images: &mut ImageReader<'_>) -> Result<Self, DatasetError> {
        read::dataset(name, content, images)
    }

    /// Kind of the records.
    pub fn kind(&self) -> DatasetKind {
        self.kind
    }

    /// Number of records, >= 1.
    pub fn count(&self) -> usize {
        self.records.len()
    }

    /// Names of members of records that a body of the API could have, and that are not sent.
    pub fn unsent_members(&self) -> impl Iterator<Item = &'static str> {
        self.unsent.iter().copied()
    }

    /// Number of records that were left out, since they have no message of a user.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Path of the requests of a batch, such as `/v1/chat/completions`.
    pub fn batch_url(&self) -> Option<&str> {
        self.batch_url.as_deref()
    }

    /// Error about a record.
    pub(crate) fn error_at(&self, record: usize, reason: String) -> DatasetError {
        let line = self.records.get(record).map_or(1, |record| record.line);
        DatasetError { name: self.name.clone(), line, reason }
    }

    /// Record `index`; a number beyond the last one begins anew.
    pub(crate) fn record(&self, index: usize) -> &DatasetRecord {
        &self.records[index % self.records.len()]
    }

    /// Messages of a conversation.
    pub(crate) fn messages(&self, record: &DatasetRecord) -> &[DatasetMessage] {
        match &record.content {
            RecordContent::Messages(range) => &self.messages[range.clone()],
            RecordContent::Body(_) => &[],
        }
    }

    /// Parts of a message.
    pub(crate) fn parts(&self, message: &DatasetMessage) -> &[ContentPart] {
        &self.parts[message.parts.clone()]
    }

    /// Text at a place.
    pub(crate) fn text(&self, span: TextSpan) -> &[u8] {
        &self.text[span.start..span.end]
    }
}
