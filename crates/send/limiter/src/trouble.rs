//! Failures of a shared place.

use std::fmt;

/// Reason why a key was not read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreTrouble {
    /// Another process has the key right now; another look may succeed.
    Busy,
    /// The place is unreachable, full or unreadable, in one line.
    Failed(String),
    /// The place is used with other limits, or by another program, in one line.
    Unusable(String),
}

impl fmt::Display for StoreTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => f.write_str("another process has the key"),
            Self::Failed(why) | Self::Unusable(why) => f.write_str(why),
        }
    }
}
