//! Keys that several processes share: each belongs to one of them at a time.
//!
//! A key is *leased*: to one sender, under a token that grows with each owner, until a time that only the store knows
//! exactly. The sender counts from the moment before it asked, so for it the lease ends earlier; what it sends in between
//! needs no journey to the store. Who may own what is decided by [`decide::ownership`](crate::decide::ownership).

use std::fmt;

use tokio::sync::watch;

use super::{Recovery, StoreFuture};
use crate::decide::Nanos;
use crate::decide::ownership::LeaseTable;

/// A store that several senders share, each with keys of its own.
pub trait SharedKeys: Send + Sync + fmt::Debug {
    /// This sender's name in the tables.
    fn sender_name(&self) -> &str;

    /// How long a key and a sender's life are leased.
    fn lease(&self) -> Nanos;

    /// Says that this sender lives, and deals with its keys, in one step.
    fn heartbeat(&self, beat: Heartbeat) -> StoreFuture<HeartbeatReply>;

    /// Changes when a key was given back or a sender has left.
    fn key_changes(&self) -> watch::Receiver<u64>;
}

/// What a sender says now and then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// It can use keys now.
    pub can_send: bool,
    /// It ends.
    pub is_leaving: bool,
    /// Keys that it holds on to, with their tokens, and whether their leases are over by its clock: then it has stopped to
    /// use them.
    pub renew: Vec<(String, u64, bool)>,
    /// Keys that it gives back in good order, with tokens and all that counts of their past.
    pub release: Vec<(String, u64, String)>,
    /// Keys that it would have.
    pub acquire: Vec<String>,
}

/// What the store says to it.
#[derive(Clone, Debug, Default)]
pub struct HeartbeatReply {
    /// Jobs of senders that are gone; they are queued again.
    pub recovered: Recovery,
    /// Who sends, and who holds which key.
    pub table: LeaseTable,
    /// Whether each key is still held, in the order in which it was asked for.
    pub renewed: Vec<bool>,
    /// The keys that were taken, in the order in which they were asked for; None: somebody else has it.
    pub acquired: Vec<Option<AcquiredKey>>,
}

/// A key that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquiredKey {
    /// Higher than that of any owner before.
    pub token: u64,
    /// What was noted of it last; empty if nothing was.
    pub state: String,
    /// How long ago that was, if it was given back in good order: then the note says all. None: whoever had it is gone
    /// without a word.
    pub released_ago: Option<Nanos>,
    /// So long ago the last owner stopped to use it at the latest.
    pub lease_ended_ago: Nanos,
}
