//! Errors of a data set.

use std::fmt;

/// Mistake in a data set: `prompts.jsonl:3: ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetError {
    /// Name of the file.
    pub name: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// Expected content, with an example.
    pub reason: String,
}

impl std::error::Error for DatasetError {}

impl fmt::Display for DatasetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.name, self.line, self.reason)
    }
}
