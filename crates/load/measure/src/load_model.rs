//! Kind of a load: closed or open loop.

use serde::{Deserialize, Serialize};

/// Kind of loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadModel {
    /// Users wait for responses.
    #[default]
    Closed,
    /// Arrivals follow a schedule, independent of responses.
    Open,
}
