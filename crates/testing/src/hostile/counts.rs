//! What the service has done, and what its clients have done then.

use std::collections::BTreeMap;

/// Counts of the service.
#[derive(Clone, Debug, Default)]
pub struct HostileCounts {
    pub connections: u64,
    pub requests: u64,
    /// Whole responses, also those that a violation followed.
    pub responses: u64,
    /// Requests that GOAWAY has left out.
    pub unprocessed: u64,
    pub resets: u64,
    pub closes: u64,
    /// Violations by name.
    pub violations: BTreeMap<&'static str, ViolationCounts>,
}

/// Counts of a violation.
#[derive(Clone, Debug, Default)]
pub struct ViolationCounts {
    pub sent: u64,
    /// The client has ended what RFC 9113 demands, with the right code.
    pub right: u64,
    /// With another code, and which one was last.
    pub other_code: u64,
    pub last_code: Option<String>,
    /// The client has closed the connection, and its reason was not to be read: a client that closes while a flood comes
    /// resets the connection, and what it wrote before is lost.
    pub closed: u64,
    /// The client has not ended it in time.
    pub ignored: u64,
}
