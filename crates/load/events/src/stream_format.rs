//! Framing of the events of a body.

use serde::{Deserialize, Serialize};

/// Framing of the events of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamFormat {
    /// Server-sent events, by the WHATWG's HTML standard, section 9.2.
    Sse,
    /// Lines of JSON; an event is a line that is not blank.
    #[serde(rename = "ndjson")]
    JsonLines,
    /// Raw chunks; an event is a piece as it was received.
    Chunks,
    /// One text of JSON: the whole body is one event.
    Json,
    /// Messages of gRPC, each behind a flag and its length; an event is a message. Its name is
    /// [empty](Self::PLAIN_MESSAGE), [`compressed`](Self::COMPRESSED_MESSAGE) or
    /// [`invalid`](Self::INVALID_MESSAGE), by the flag.
    Grpc,
}

/// Content types of lines of JSON; no standard has one.
const JSON_LINE_TYPES: [&[u8]; 6] = [
    b"application/x-ndjson",
    b"application/ndjson",
    b"application/jsonl",
    b"application/x-jsonlines",
    b"application/jsonlines",
    b"application/stream+json",
];

impl StreamFormat {
    /// Name of a message that is not compressed.
    pub const PLAIN_MESSAGE: &'static [u8] = b"";
    /// Name of a message that is compressed.
    pub const COMPRESSED_MESSAGE: &'static [u8] = b"compressed";
    /// Name of a message whose flag has no meaning.
    pub const INVALID_MESSAGE: &'static [u8] = b"invalid";

    /// Formats that options choose from. That of gRPC follows from the URL.
    pub const ALL: [Self; 4] = [Self::Sse, Self::JsonLines, Self::Chunks, Self::Json];

    /// Name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::JsonLines => "ndjson",
            Self::Chunks => "chunks",
            Self::Json => "json",
            Self::Grpc => "grpc",
        }
    }

    /// Parses a name.
    ///
    /// # Errors
    /// An unknown name, with the known ones.
    pub fn parse(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| format!("unknown stream format '{name}'; choose sse, ndjson, chunks or json"))
    }

    /// Format by the value of a `Content-Type` header, whose parameters are ignored; chunks if it is another type, or
    /// there is none.
    pub fn of_content_type(value: &[u8]) -> Self {
        let essence = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if essence.eq_ignore_ascii_case(b"text/event-stream") {
            Self::Sse
        } else if JSON_LINE_TYPES.iter().any(|known| essence.eq_ignore_ascii_case(known)) {
            Self::JsonLines
        } else if is_json(essence) {
            Self::Json
        } else {
            Self::Chunks
        }
    }
}

/// Whether a media type is JSON, by RFC 8259 or the suffix of RFC 6839.
fn is_json(essence: &[u8]) -> bool {
    const SUFFIX: &[u8] = b"+json";
    let suffix = &essence[essence.len().saturating_sub(SUFFIX.len())..];
    essence.eq_ignore_ascii_case(b"application/json") || suffix.eq_ignore_ascii_case(SUFFIX)
}
