//! Options of WebSocket as given.

use serde::{Deserialize, Serialize};

/// Options of WebSocket as given; they are for a URL of `ws://` or `wss://`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebSocketOptions {
    /// Whether messages are binary; without it those are that are not UTF-8.
    pub is_binary: bool,
    /// Subprotocols that are offered, the preferred one first.
    pub subprotocols: Vec<String>,
}

impl WebSocketOptions {
    /// First option that is given, as its flag without dashes.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        [("binary", self.is_binary), ("subprotocol", !self.subprotocols.is_empty())]
            .into_iter()
            .find_map(|(name, is_given)| is_given.then_some(name))
    }
}
