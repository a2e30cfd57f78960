//! API keys that several processes share: each belongs to one of them at a time.
//!
//! A key is *leased* to one sender, under a token that grows with each owner, until a time that only the store knows
//! exactly. The sender counts from before its call, so its lease ends earlier by its own clock, and sending needs no
//! round trip to the store. [`weir_delivery::key_lease`] decides the owners.

use std::fmt;

use tokio::sync::watch;

use super::{Recovery, StoreFuture};
use weir_base::Nanos;
use weir_delivery::key_lease::LeaseTable;

/// Store whose API keys several senders share.
pub trait SharedKeys: Send + Sync + fmt::Debug {
    /// Name of this sender.
    fn sender_name(&self) -> &str;

    /// Length of the leases of keys and of a sender's session.
    fn lease(&self) -> Nanos;

    /// Heartbeat: renews, releases and acquires keys in one step.
    fn heartbeat(&self, beat: Heartbeat) -> StoreFuture<HeartbeatReply>;

    /// Changes when a key was released or a sender has left.
    fn key_changes(&self) -> watch::Receiver<u64>;
}

/// Heartbeat of a sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// Whether it can use keys.
    pub can_send: bool,
    /// Whether it ends.
    pub is_leaving: bool,
    /// Keys to renew, with tokens, and whether their leases have expired by the sender's clock, so that it no longer
    /// uses them.
    pub renew: Vec<(String, u64, bool)>,
    /// Keys to release, with tokens and their states.
    pub release: Vec<(String, u64, String)>,
    /// Keys to acquire.
    pub acquire: Vec<String>,
}

/// Result of a heartbeat: renewed and acquired keys, and jobs of senders that are gone.
#[derive(Clone, Debug, Default)]
pub struct HeartbeatReply {
    /// Requeued jobs of senders that are gone.
    pub recovered: Recovery,
    /// Table of senders, and of keys with their owners.
    pub table: LeaseTable,
    /// Whether each key was renewed, in the order of the request.
    pub renewed: Vec<bool>,
    /// Acquired keys, in the order of the request; None if another sender has it.
    pub acquired: Vec<Option<AcquiredKey>>,
}

/// Ownership of a key after its acquisition, with the state that its last owner left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquiredKey {
    /// Token, higher than that of any owner before.
    pub token: u64,
    /// Last recorded state; empty if there is none.
    pub state: String,
    /// Time since an orderly release, after which the state is complete. None if the last owner crashed.
    pub released_ago: Option<Nanos>,
    /// Minimum time since the last owner stopped using it.
    pub lease_ended_ago: Nanos,
}
