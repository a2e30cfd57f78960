//! The reasons of changes that a store makes by itself or for a person.

pub(super) const SUBMITTED: &str = "submitted";
pub(super) const CLAIMED: &str = "claimed by the sender";
pub(super) const RETRY_DUE: &str = "another try is due";
pub(super) const EXPIRED: &str = "its time is over";
pub(super) const LEASE_EXPIRED: &str = "its lease was over";
pub(super) const SENDER_ENDED_UNSENT: &str = "the sender ended before it was sent";
pub(super) const SENDER_ENDED_MAYBE_SENT: &str = "the sender ended before it noted what came of it";
pub(super) const EDITED: &str = "edited by hand";
pub(super) const RETRIED: &str = "queued again by hand";
