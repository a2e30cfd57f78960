//! Reason why a run ended before its time.

use serde::{Deserialize, Serialize};

/// Reason why a run ended before its time, other than an interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Each row of this file of data was used once.
    DataRows(String),
}
