//! Counts of connections and messages of WebSocket.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::merge::{AddPart, PeerValue, merged};
use weir_histogram::Histogram;

merged! {
    /// Counts of connections and messages of WebSocket; sums over threads and agents.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct WebSocketCounts {
        /// Connections whose upgrade succeeded.
        pub upgraded: u64 => sum,
        /// Of these, connections on which the service has declined the compression that was offered.
        #[serde(default)]
        pub uncompressed: u64 => sum,
        /// Upgrades that were rejected, by status.
        pub rejected: CodeCounts => sum,
        /// Connections that ended before a response to their upgrade, or with an invalid one.
        pub failed: u64 => sum,
        /// Closes by the service, by code; 1006 without a close frame.
        pub closes: CodeCounts => sum,
        /// Connections that ended by a breach of the protocol.
        pub violations: u64 => sum,
        /// Replies that were matched in order while other messages of their connection were in flight.
        #[serde(default)]
        pub matched_in_order: u64 => sum,
        /// Messages with the ID of the one sent before them, which was in flight.
        #[serde(default)]
        pub repeated_ids: u64 => sum,
        /// Messages of the service that are not replies.
        pub unmatched: u64 => sum,
        /// Pings of the service, which have had their pongs.
        pub pings: u64 => sum,
        /// Messages that users of a script have sent.
        #[serde(default)]
        pub messages_sent: u64 => sum,
        /// Messages that users of a script have received.
        #[serde(default)]
        pub messages_received: u64 => sum,
        /// Pings that were sent.
        pub pings_sent: u64 => sum,
        /// Time from a ping to its pong.
        pub ping: Histogram => sum,
    }
}

impl AddPart for WebSocketCounts {
    fn add_part(&mut self, other: &Self) {
        self.add(other);
    }
}

impl PeerValue for WebSocketCounts {
    fn check(&self) -> Result<(), String> {
        self.check_values()
    }
}

/// Numbers by code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CodeCounts(BTreeMap<u16, u64>);

impl CodeCounts {
    /// Counts one of a code.
    pub fn record(&mut self, code: u16) {
        *self.0.entry(code).or_default() += 1;
    }

    /// Numbers by code, in order.
    pub fn by_code(&self) -> &BTreeMap<u16, u64> {
        &self.0
    }

    /// Sum of all.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }
}

impl AddPart for CodeCounts {
    fn add_part(&mut self, other: &Self) {
        other.0.iter().for_each(|(code, n)| *self.0.entry(*code).or_default() += n);
    }
}

impl PeerValue for CodeCounts {
    fn check(&self) -> Result<(), String> {
        self.0.values().try_for_each(PeerValue::check)
    }
}
