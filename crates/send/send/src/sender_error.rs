//! Errors that end a sender.

use crate::store::StoreError;

/// Error that ended a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SenderError {
    /// The store failed.
    Store(StoreError),
    /// All jobs that are left are pinned to keys that are missing or disabled.
    Unsendable {
        /// Number of these jobs; they stay in the store.
        jobs: u64,
        /// Names of the keys.
        keys: Vec<String>,
    },
    /// The listener failed to record events.
    Listener(String),
    /// The system has no thread or timer.
    System(String),
    /// All keys are disabled.
    NoKeys(String),
}

impl std::fmt::Display for SenderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Listener(why) | Self::System(why) => f.write_str(why),
            Self::Unsendable { jobs, keys } => {
                let (count, keys) =
                    (if *jobs == 1 { "1 job waits".into() } else { format!("{jobs} jobs wait") }, keys.join(", "));
                write!(
                    f,
                    "{count} for unusable keys: {keys}; give these keys, or let other keys send with 'weir send edit --pinned-key any'"
                )
            }
            Self::NoKeys(why) => write!(f, "all keys are disabled: {why}; check the keys and the limits"),
        }
    }
}

impl std::error::Error for SenderError {}

impl From<StoreError> for SenderError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
