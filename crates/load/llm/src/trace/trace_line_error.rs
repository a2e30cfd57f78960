//! Reasons why a line of a trace has no request.

use std::fmt;

/// Reason why a line has no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceLineError {
    /// The line cannot be read.
    Broken(String),
    /// The line is about something else: a tool call, or another span.
    NoRequest,
    /// A request without tokens of a prompt or of a response, as one that has failed.
    NoTokens,
}

impl fmt::Display for TraceLineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(why) => f.write_str(why),
            Self::NoRequest => f.write_str("no request"),
            Self::NoTokens => f.write_str("no tokens"),
        }
    }
}

/// Reads a line of JSON.
pub(super) fn parsed<'l, T: serde::Deserialize<'l>>(line: &'l str) -> Result<T, TraceLineError> {
    serde_json::from_str(line).map_err(|error| TraceLineError::Broken(error.to_string()))
}

/// Member that a line has to have.
pub(super) fn needed<T>(value: Option<T>, name: &str) -> Result<T, TraceLineError> {
    value.ok_or_else(|| TraceLineError::Broken(format!("no {name}")))
}
