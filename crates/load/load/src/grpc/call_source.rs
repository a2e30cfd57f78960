//! A call of gRPC as the one step of a scenario.

use serde::{Deserialize, Serialize};

/// A call of gRPC as the one step of a scenario, as given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSource {
    /// URL, or a path behind the base URL: `/package.Service/Method`.
    pub url: String,
    /// Message as JSON, with templates.
    pub message: String,
}
