//! Rate of requests or iterations.

use serde::{Deserialize, Serialize};

/// Requests per second over the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Intended starts; the same as `achieved` in the closed loop, and for requests of iterations.
    pub offered: f64,
    /// Responses.
    pub achieved: f64,
}
