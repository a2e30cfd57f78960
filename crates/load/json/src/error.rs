//! Errors of paths and of the texts that they are applied to.

use std::fmt;

/// Mistake of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPathError {
    /// Offset in the text of the path, in bytes.
    pub offset: usize,
    /// Description of what was expected there.
    pub expected: &'static str,
}

impl fmt::Display for JsonPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at character {}", self.expected, self.offset + 1)
    }
}

impl std::error::Error for JsonPathError {}

/// Text that is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonTextError {
    /// Unexpected byte, or end, at this offset.
    Syntax(usize),
    /// More levels of lists and objects than are read.
    Depth,
}

impl fmt::Display for JsonTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(offset) => write!(f, "the body is not JSON: unexpected byte {offset}"),
            Self::Depth => f.write_str("the body's JSON is nested too deeply"),
        }
    }
}

impl std::error::Error for JsonTextError {}
