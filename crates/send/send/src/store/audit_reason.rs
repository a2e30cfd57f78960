//! Reasons of changes of state that a store itself makes.

pub(super) const SUBMITTED: &str = "submitted";
pub(super) const CLAIMED: &str = "claimed by the sender";
pub(super) const RETRY_DUE: &str = "retry due";
pub(super) const EXPIRED: &str = "expired";
pub(super) const LEASE_EXPIRED: &str = "lease expired";
pub(super) const SENDER_ENDED_UNSENT: &str = "the sender ended before sending it";
pub(super) const SENDER_ENDED_MAYBE_SENT: &str = "the sender ended before it recorded the outcome";
pub(super) const EDITED: &str = "edited by hand";
/// Reason of a job that `weir send retry` has requeued.
pub const REQUEUED_BY_HAND: &str = "requeued by hand";
