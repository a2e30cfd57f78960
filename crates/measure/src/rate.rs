//! Rate of requests or iterations.

use serde::{Deserialize, Serialize};

/// Requests per second over the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Intended starts; in the closed loop the same as `achieved`.
    pub offered: f64,
    /// Responses.
    pub achieved: f64,
}
