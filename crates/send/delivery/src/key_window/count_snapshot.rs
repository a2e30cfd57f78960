//! A window's count at the send of a request, to compare with what the response reports.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::MAX_WINDOWS;
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

/// Stores the snapshots of the windows that exist.
pub(super) fn serialize<S: Serializer>(all: &[CountSnapshot; MAX_WINDOWS], to: S) -> Result<S::Ok, S::Error> {
    let used = all.iter().rposition(|snapshot| *snapshot != CountSnapshot::default()).map_or(0, |last| last + 1);
    all[..used].serialize(to)
}

/// Reads snapshots.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[CountSnapshot; MAX_WINDOWS], D::Error> {
    let stored = Vec::<CountSnapshot>::deserialize(from)?;
    let mut all = [CountSnapshot::default(); MAX_WINDOWS];
    for (snapshot, stored) in all.iter_mut().zip(stored) {
        *snapshot = stored;
    }
    Ok(all)
}
