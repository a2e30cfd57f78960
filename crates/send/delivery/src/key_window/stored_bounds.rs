//! Bounds of the numbers that a stored key may have, far from overflows.

/// Bound of the numbers of requests.
pub(super) const MAX_NUMBER: u64 = 1 << 53;
/// Bound of sums.
pub(super) const MAX_SUM: u128 = 1 << 100;
