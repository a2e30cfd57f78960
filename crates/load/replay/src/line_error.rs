//! Reasons why a line cannot be read.

use std::fmt;

use weir_base::terminal_text::is_steering;

/// Reason why a line is not a request of its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineError {
    /// A text between two fields is not there.
    Literal(String),
    /// Characters remain behind the last field.
    Remainder(String),
    /// No time.
    NoTime,
    /// A time that cannot be read.
    Time(String),
    /// A status that cannot be read.
    Status(String),
    /// A time that it took that cannot be read.
    Took(String),
    /// Not a JSON object.
    Json(String),
    /// A valid line without a request of HTTP, such as that of a TLS client at a plain port.
    NoRequest(String),
}

/// Characters of a line in a message.
const SHOWN_CHARS: usize = 40;

impl std::error::Error for LineError {}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(text) => write!(f, "expected '{text}'"),
            Self::Remainder(text) => write!(f, "expected the end of the line, found '{}'", shown(text)),
            Self::NoTime => f.write_str("no time"),
            Self::Time(text) => write!(f, "invalid time '{}'", shown(text)),
            Self::Status(text) => write!(f, "invalid status '{}'", shown(text)),
            Self::Took(text) => write!(f, "invalid duration '{}'", shown(text)),
            Self::Json(why) => write!(f, "not a JSON object: {why}"),
            Self::NoRequest(text) => write!(f, "no HTTP request: '{}'", shown(text)),
        }
    }
}

/// Start of a text of a log, without control characters.
pub(crate) fn shown(text: &str) -> String {
    let start: String = text.chars().take(SHOWN_CHARS).map(|c| if is_steering(c) { '\u{fffd}' } else { c }).collect();
    if start.len() < text.len() { format!("{start}...") } else { start }
}
