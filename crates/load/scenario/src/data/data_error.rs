//! Errors of a file of data.

use std::fmt;

/// Mistake in a file of data: `users.csv:3: 2 fields instead of 3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataError {
    /// Name of the file.
    pub name: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// Reason, and what to write instead.
    pub reason: String,
}

impl std::error::Error for DataError {}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.name, self.line, self.reason)
    }
}

/// Number of the line at an offset, from 1.
pub(super) fn line_at(bytes: &[u8], offset: usize) -> u64 {
    let before = bytes.get(..offset).unwrap_or(bytes);
    1 + before.iter().filter(|byte| **byte == b'\n').count() as u64
}
