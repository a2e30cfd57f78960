//! Samples of failures of steps, for a person.

use serde::{Deserialize, Serialize};

use super::merge::{FirstFew, PeerValue, texts};

/// Failure of a step, for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureSample {
    /// Reason of the failure, in words.
    #[serde(serialize_with = "texts::serialize_text")]
    pub reason: String,
    /// Beginning of the response, with secrets left out; empty without one.
    #[serde(serialize_with = "texts::serialize_text")]
    pub response: String,
}

impl FailureSample {
    /// Maximum number of samples of a step.
    pub const MAX_PER_STEP: usize = 3;
}

impl FirstFew for FailureSample {
    const MAX_COUNT: usize = Self::MAX_PER_STEP;
}

impl PeerValue for FailureSample {
    fn check(&self) -> Result<(), String> {
        self.reason.check()?;
        self.response.check()
    }
}
