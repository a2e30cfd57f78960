//! WebSocket of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::websocket_counts::{CodeCounts, WebSocketCounts};
use weir_histogram::percentiles::Percentiles;

/// Connections and messages of a run over WebSocket. Its requests are messages with their replies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunWebSocket {
    /// Connections whose upgrade succeeded.
    pub upgraded: u64,
    /// Of these, connections on which the service has declined the compression that was offered.
    #[serde(default)]
    pub uncompressed: u64,
    /// Upgrades that were rejected, by status.
    pub rejected: BTreeMap<String, u64>,
    /// Connections that ended before a response to their upgrade, or with an invalid one.
    pub failed: u64,
    /// Closes by the service, by code; 1006 without a close frame.
    pub closes: BTreeMap<String, u64>,
    /// Connections that ended by a breach of the protocol.
    pub violations: u64,
    /// Messages of the service that are not replies.
    pub unmatched: u64,
    /// Pings of the service, which have had their pongs.
    pub pings: u64,
    /// Messages that users of a script have sent.
    #[serde(default)]
    pub messages_sent: u64,
    /// Messages that users of a script have received.
    #[serde(default)]
    pub messages_received: u64,
    /// Pings that were sent.
    pub pings_sent: u64,
    /// Time from a ping to its pong.
    pub ping_ms: Percentiles,
}

impl RunWebSocket {
    /// WebSocket of these counts.
    pub fn of(counts: &WebSocketCounts) -> Self {
        let texts = |codes: &CodeCounts| codes.by_code().iter().map(|(code, n)| (code.to_string(), *n)).collect();
        Self {
            upgraded: counts.upgraded,
            uncompressed: counts.uncompressed,
            rejected: texts(&counts.rejected),
            failed: counts.failed,
            closes: texts(&counts.closes),
            violations: counts.violations,
            unmatched: counts.unmatched,
            messages_sent: counts.messages_sent,
            messages_received: counts.messages_received,
            pings: counts.pings,
            pings_sent: counts.pings_sent,
            ping_ms: counts.ping.percentiles(),
        }
    }
}
