//! Counts of violations and of the clients' reactions.

use std::collections::BTreeMap;

use serde::Serialize;

/// Counts of the service.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct HostileCounts {
    pub(super) connections: u64,
    /// Requests, without those to `/stats`.
    pub(super) requests: u64,
    /// Whole responses, also those that a violation followed.
    pub(super) responses: u64,
    /// Requests that GOAWAY has left out.
    pub(super) unprocessed: u64,
    pub(super) resets: u64,
    pub(super) closes: u64,
    /// Violations by name.
    pub(super) violations: BTreeMap<&'static str, ViolationCounts>,
}

/// How often a violation was sent, and the clients' reactions to it.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct ViolationCounts {
    pub(super) sent: u64,
    /// The client has ended what RFC 9113 demands, with the right code.
    pub(super) right: u64,
    /// With another code, and which one was last.
    pub(super) other_code: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_code: Option<String>,
    /// The client has closed the connection, and its reason was not to be read: a client that closes while a flood
    /// comes resets the connection, and what it wrote before is lost.
    pub(super) closed: u64,
    /// The client has not ended it in time.
    pub(super) ignored: u64,
}
