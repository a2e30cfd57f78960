//! Counts of connections and messages.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::json;
use weir_machine::lock::lock;
use weir_websocket::close_code::CloseCode;
use weir_websocket::violation::Violation;

/// Counts of all connections.
#[derive(Debug, Default)]
pub(super) struct WebSocketStats(Mutex<StatCounts>);

#[derive(Debug, Default)]
struct StatCounts {
    connections: u64,
    open: u64,
    rejected: u64,
    received: u64,
    received_bytes: u64,
    sent: u64,
    sent_bytes: u64,
    pings: u64,
    pongs: u64,
    closes: BTreeMap<u16, u64>,
    violations: BTreeMap<String, u64>,
}

impl WebSocketStats {
    pub(super) fn opened(&self) {
        let mut counts = lock(&self.0);
        counts.connections += 1;
        counts.open += 1;
    }

    /// Counts the end of a connection, with the code of the client's close frame; none without one.
    pub(super) fn ended(&self, code: CloseCode) {
        let mut counts = lock(&self.0);
        counts.open -= 1;
        *counts.closes.entry(code.0).or_default() += 1;
    }

    pub(super) fn rejected(&self) {
        lock(&self.0).rejected += 1;
    }

    pub(super) fn received(&self, bytes: usize) {
        let mut counts = lock(&self.0);
        counts.received += 1;
        counts.received_bytes += bytes as u64;
    }

    pub(super) fn sent(&self, bytes: usize) {
        let mut counts = lock(&self.0);
        counts.sent += 1;
        counts.sent_bytes += bytes as u64;
    }

    pub(super) fn pinged(&self) {
        lock(&self.0).pings += 1;
    }

    pub(super) fn ponged(&self) {
        lock(&self.0).pongs += 1;
    }

    pub(super) fn violated(&self, violation: Violation) {
        *lock(&self.0).violations.entry(violation.to_string()).or_default() += 1;
    }

    /// Body of `GET /stats`.
    pub(super) fn json(&self) -> String {
        let counts = lock(&self.0);
        json!({
            "connections": counts.connections,
            "open": counts.open,
            "rejected": counts.rejected,
            "received": counts.received,
            "received_bytes": counts.received_bytes,
            "sent": counts.sent,
            "sent_bytes": counts.sent_bytes,
            "pings": counts.pings,
            "pongs": counts.pongs,
            "closes": counts.closes,
            "violations": counts.violations,
        })
        .to_string()
    }

    /// Connections, and messages received and sent, for `/metrics`.
    pub(super) fn totals(&self) -> [u64; 3] {
        let counts = lock(&self.0);
        [counts.connections, counts.received, counts.sent]
    }
}
