//! Reasons why a file cannot be read at all.

use std::fmt;

/// File that is not of its kind: its place, what is expected there, and what is there instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Description of what the format has there.
    pub expected: String,
    /// Description of what is there.
    pub found: String,
}

/// `shop.har:12: expected a value, found '}'`.
impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: expected {}, found {}", self.file, self.line, self.expected, self.found)
    }
}

impl std::error::Error for ImportError {}

/// An [`ImportError`] whose file is not yet known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) line: u32,
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl Mismatch {
    pub(crate) fn new(line: u32, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { line, expected: expected.into(), found: found.into() }
    }

    pub(crate) fn in_file(self, file: &str) -> ImportError {
        ImportError { file: file.to_owned(), line: self.line, expected: self.expected, found: self.found }
    }
}
