//! Connections of WebSocket over time.

use serde::{Deserialize, Serialize};

use super::merge::{AddPart, PeerValue, merged};

merged! {
    /// Connections of WebSocket in an interval, of threads and agents together.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct WebSocketPoint {
        /// Connections that were open at the end of the interval.
        pub held: u64 => sum,
        /// Connections whose upgrade succeeded in the interval.
        pub upgraded: u64 => sum,
    }
}

impl WebSocketPoint {
    /// Adds a later interval.
    pub(super) fn follow(&mut self, later: &Self) {
        self.held = later.held;
        self.upgraded += later.upgraded;
    }
}

impl AddPart for WebSocketPoint {
    fn add_part(&mut self, other: &Self) {
        self.add(other);
    }
}

impl PeerValue for WebSocketPoint {
    fn check(&self) -> Result<(), String> {
        self.check_values()
    }
}
