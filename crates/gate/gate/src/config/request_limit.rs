//! Parses a route's limits of the size of requests.

use super::read::DocumentTable;

/// Maximum of a limit of bodies, in bytes.
const MAX_BODY_BYTES: usize = 1 << 40;
/// Maximum of a limit of heads, in bytes.
const MAX_HEAD_BYTES: usize = 1 << 20;

/// Limits of a request's size, beside those of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestLimits {
    /// Maximum body, in bytes; above it 413.
    pub max_body_bytes: Option<usize>,
    /// Maximum head, in bytes; above it 431.
    pub max_head_bytes: Option<usize>,
    /// Maximum number of header fields; above it 431.
    pub max_headers: Option<usize>,
}

/// Parses `max_body`, `max_head` and `max_headers` of a route.
pub(super) fn request_limits(table: &DocumentTable<'_>) -> RequestLimits {
    let size = |key, max| table.get(key).and_then(|node| node.size(0..=max));
    RequestLimits {
        max_body_bytes: size("max_body", MAX_BODY_BYTES),
        max_head_bytes: size("max_head", MAX_HEAD_BYTES),
        max_headers: table.get("max_headers").and_then(|node| node.integer(1..=10_000)).map(|number| number as usize),
    }
}
