//! Requests to the store of leases, and its replies.

use super::Nanos;

/// A sender that shares the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Name, unique at the store.
    pub name: String,
    /// Whether the sender can use keys.
    pub is_able: bool,
    /// Time until the sender counts as gone, unless it renews.
    pub ttl: Nanos,
}

/// The store's record of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPlacement {
    /// Name of the key.
    pub key: String,
    /// Current or last owner.
    pub owner: Option<String>,
    /// Time until the key is free; 0: now.
    pub free_in: Nanos,
}

/// All senders and keys at the store, at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseTable {
    /// Senders that are alive.
    pub peers: Vec<Peer>,
    /// Keys that were ever leased.
    pub placements: Vec<KeyPlacement>,
}

/// Request to the store; keys by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRequest {
    /// Whether this sender can use keys.
    pub is_able: bool,
    /// Keys to renew, their tokens, and whether their leases have expired by this sender's clock.
    pub renew: Vec<(usize, u64, bool)>,
    /// Keys to release, and their tokens.
    pub release: Vec<(usize, u64)>,
    /// Keys to acquire.
    pub acquire: Vec<usize>,
}

/// The store's reply to a request.
#[derive(Clone, Copy, Debug)]
pub struct LeaseReply<'a> {
    /// State of the store after the request.
    pub table: &'a LeaseTable,
    /// For each key to renew, whether it was renewed.
    pub renewed: &'a [bool],
    /// For each key to acquire, its token, or None if it was not free.
    pub acquired: &'a [Option<u64>],
}
