//! A window's count at the send of a request, to compare with what the response reports.

use serde::{Deserialize, Serialize};

use super::external_usage::ExternalSnapshot;

/// A window's count at a send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CountSnapshot {
    /// Maximum of the server's count, requests in transit included, without the request itself.
    pub(super) used: u64,
    /// Amount ever sent, without the request itself.
    pub(super) total_sent: u64,
    /// State of the bookings for other clients.
    pub(super) external: ExternalSnapshot,
    /// Whether the response has reported this limit.
    pub(super) is_reported: bool,
}
