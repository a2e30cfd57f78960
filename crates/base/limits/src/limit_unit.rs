//! Unit of a rate limit: requests, or their weights.

use serde::{Deserialize, Serialize};

/// Unit in which a limit counts a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitUnit {
    /// One per request.
    Requests,
    /// The request's weight, e.g. tokens or points.
    #[default]
    Weight,
}

impl LimitUnit {
    /// Amount that a request of this weight counts.
    pub const fn amount(self, weight: u64) -> u64 {
        match self {
            Self::Requests => 1,
            Self::Weight => weight,
        }
    }
}
