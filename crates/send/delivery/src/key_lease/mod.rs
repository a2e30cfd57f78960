//! Leases of keys that several senders share: acquisition, renewal, release, and an even distribution.
//!
//! ```text
//!               acquired                 too many, not able, or shutdown
//!   not held ────────────► held ───────────────────────────► releasing
//!    ▲  ▲                   │  ▲                                 │ none in flight
//!    │  │ another owner     ▼  │ renewed                         ▼
//!    │  └─────────────── expired                              released
//!    └────────────────────────── confirmed by the store ─────────┘
//! ```
//!
//! The store grants a lease to one sender at a time, under a token that grows, and only after the previous lease has
//! expired by the *store's* clock. A sender counts its lease from before its request, less a tenth, so it expires here
//! before it does at the store. Clocks have to run at the same rate, but need not agree. The tenth also covers the time
//! between the decision to send and the last byte.
//!
//! - Able senders share the keys evenly: of k keys and n senders each has k/n, rounded up for those with the most keys
//!   (then by name), so that as few keys move as possible. All compute that from the same table; a request based on an
//!   older table is rejected by the store, and its reply has the newer one.
//! - A key moves when none of its requests is in flight, with its history: the next owner continues at once. After a
//!   crash the key is free when its lease expires, and everything that the owner may have sent until then counts
//!   ([`KeyHistory::worst_case`](super::key_window::KeyHistory::worst_case)).
//! - An expired lease that no other sender has taken meanwhile is renewed: the key was not used in between. A store
//!   that may have forgotten the new owner renews only leases that have not expired by the sender's clock.

mod messages;

use std::collections::HashMap;

pub use self::messages::{KeyPlacement, LeaseReply, LeaseRequest, LeaseTable, Peer};
use weir_base::Nanos;

/// Change of a key that the dispatcher has to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    /// Key acquired: continue from its history at the store.
    Acquire {
        /// Number of the key.
        key: usize,
        /// Index among the keys to acquire of the request.
        index: usize,
    },
    /// Key held again; it was not used meanwhile.
    Resume(usize),
    /// Key to release: send nothing more, await the requests in flight, then call [`KeyLeases::drained`].
    Release(usize),
    /// Lease expired: send nothing more, and cancel requests that have not been written.
    Expire(usize),
}

impl LeaseAction {
    /// Number of the key.
    pub const fn key(self) -> usize {
        match self {
            Self::Acquire { key, .. } | Self::Resume(key) | Self::Release(key) | Self::Expire(key) => key,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeaseState {
    NotHeld,
    Held { token: u64, until: Nanos },
    Expired { token: u64 },
    Releasing { token: u64, until: Nanos },
    Released { token: u64 },
}

#[derive(Clone, Debug)]
struct SharedKey {
    name: String,
    lease: LeaseState,
    /// Whether the service accepts the key.
    is_accepted: bool,
    owner: Option<String>,
    free_at: Nanos,
}

/// Request to the store with its reply, and the end of the leases that the reply grants.
#[derive(Clone, Copy, Debug)]
struct LeaseExchange<'a> {
    now: Nanos,
    until: Nanos,
    request: &'a LeaseRequest,
    reply: LeaseReply<'a>,
}

/// A sender's leases. Pure: instants are arguments, requests and replies are values.
#[derive(Clone, Debug)]
pub struct KeyLeases {
    name: String,
    lease_duration: Nanos,
    keys: Vec<SharedKey>,
    /// Other able senders, and until when they count as alive.
    peers: Vec<(String, Nanos)>,
    is_able: bool,
    /// Whether the store has replied yet.
    has_table: bool,
    /// Time of the next request.
    next_request_at: Nanos,
    /// Time of the latest request.
    requested_at: Option<Nanos>,
    /// Whether a request awaits its reply.
    is_requesting: bool,
}

impl KeyLeases {
    /// Leases of the sender `me`, none held yet; `lease_duration` is that of the store.
    pub fn new(me: &str, keys: impl IntoIterator<Item = String>, lease_duration: Nanos) -> Self {
        let key =
            |name| SharedKey { name, lease: LeaseState::NotHeld, is_accepted: true, owner: None, free_at: Nanos::ZERO };
        let keys = keys.into_iter().map(key).collect();
        Self {
            name: me.to_owned(),
            lease_duration,
            keys,
            peers: Vec::new(),
            is_able: true,
            has_table: false,
            next_request_at: Nanos::ZERO,
            requested_at: None,
            is_requesting: false,
        }
    }

    /// Number of keys held, or expired and possibly renewed by the next reply.
    pub fn held_count(&self) -> usize {
        self.keys.iter().filter(|key| matches!(key.lease, LeaseState::Held { .. } | LeaseState::Expired { .. })).count()
    }

    /// Token of the key's lease, in any state.
    pub fn token(&self, key: usize) -> Option<u64> {
        match self.keys.get(key)?.lease {
            LeaseState::NotHeld => None,
            LeaseState::Held { token, .. }
            | LeaseState::Expired { token }
            | LeaseState::Releasing { token, .. }
            | LeaseState::Released { token } => Some(token),
        }
    }

    /// Token and end of the key's lease, if it is held or to be released.
    pub fn lease(&self, key: usize) -> Option<(u64, Nanos)> {
        match self.keys.get(key)?.lease {
            LeaseState::Held { token, until } | LeaseState::Releasing { token, until } => Some((token, until)),
            _ => None,
        }
    }

    /// Time of the next expiry or request.
    pub fn wake_at(&self) -> Nanos {
        let ends = self.keys.iter().filter_map(|key| match key.lease {
            LeaseState::Held { until, .. } | LeaseState::Releasing { until, .. } => Some(until),
            _ => None,
        });
        let next = if self.is_requesting { Nanos::NEVER } else { self.next_request_at };
        ends.fold(next, Nanos::min)
    }

    /// Expires leases. Called before anything is sent.
    pub fn expire_leases(&mut self, now: Nanos, actions: &mut Vec<LeaseAction>) {
        for (number, key) in self.keys.iter_mut().enumerate() {
            match key.lease {
                LeaseState::Held { token, until } if until <= now => {
                    key.lease = LeaseState::Expired { token };
                    actions.push(LeaseAction::Expire(number));
                    self.next_request_at = self.next_request_at.min(now);
                }
                LeaseState::Releasing { until, .. } if until <= now => {
                    key.lease = LeaseState::NotHeld;
                    actions.push(LeaseAction::Expire(number));
                }
                _ => {}
            }
        }
    }

    /// Marks a key to release as without requests in flight.
    pub fn drained(&mut self, now: Nanos, key: usize) {
        if let Some(key) = self.keys.get_mut(key)
            && let LeaseState::Releasing { token, .. } = key.lease
        {
            key.lease = LeaseState::Released { token };
            self.next_request_at = self.next_request_at.min(now);
        }
    }

    /// Marks a key as rejected by the service; it is released and not acquired again.
    pub fn key_rejected(&mut self, key: usize) {
        if let Some(key) = self.keys.get_mut(key) {
            key.is_accepted = false;
            if let LeaseState::Held { token, until } = key.lease {
                key.lease = LeaseState::Releasing { token, until };
            }
        }
    }

    /// Sets whether this sender can use keys; if not, other senders get them.
    pub fn set_able(&mut self, now: Nanos, able: bool, actions: &mut Vec<LeaseAction>) {
        if std::mem::replace(&mut self.is_able, able) != able {
            self.next_request_at = self.next_request_at.min(now);
            self.rebalance(now, actions);
        }
    }

    /// Schedules a request, since a key was released or a sender came or left; at most one per 1/16 lease.
    pub fn peers_changed(&mut self, now: Nanos) {
        let soonest = self.requested_at.map_or(now, |requested_at| requested_at + Nanos(self.lease_duration.0 / 16));
        self.next_request_at = self.next_request_at.min(soonest.max(now));
    }

    /// The next request, if one is due; [`Self::on_reply`] or [`Self::request_failed`] must follow.
    pub fn next_request(&mut self, now: Nanos, actions: &mut Vec<LeaseAction>) -> Option<LeaseRequest> {
        if self.is_requesting || now < self.next_request_at {
            return None;
        }
        self.expire_leases(now, actions);
        let acquire = self.rebalance(now, actions);
        (self.is_requesting, self.requested_at, self.next_request_at) = (true, Some(now), Nanos::NEVER);
        let mut request = LeaseRequest { is_able: self.is_able, acquire, ..LeaseRequest::default() };
        for (number, key) in self.keys.iter().enumerate() {
            match key.lease {
                LeaseState::Held { token, .. } | LeaseState::Releasing { token, .. } => {
                    request.renew.push((number, token, false));
                }
                LeaseState::Expired { token } => request.renew.push((number, token, true)),
                LeaseState::Released { token } => request.release.push((number, token)),
                LeaseState::NotHeld => {}
            }
        }
        Some(request)
    }

    /// Records a request without a reply. The store may have carried it out: a key acquired by it is free again when
    /// that lease expires.
    pub fn request_failed(&mut self, now: Nanos) {
        self.is_requesting = false;
        self.next_request_at = self.next_request_at.min(now + Nanos(self.lease_duration.0 / 8));
    }

    /// Takes in the store's reply to a request.
    pub fn on_reply(
        &mut self,
        now: Nanos,
        request: &LeaseRequest,
        reply: LeaseReply<'_>,
        actions: &mut Vec<LeaseAction>,
    ) {
        self.is_requesting = false;
        self.expire_leases(now, actions);
        // From before the request, not from the reply: the store's lease ends later.
        let until = self.requested_at.unwrap_or_default() + (self.lease_duration - Nanos(self.lease_duration.0 / 10));
        let exchange = LeaseExchange { now, until, request, reply };
        self.apply_renewals(exchange, actions);
        for (number, token) in &request.release {
            if let Some(key) = self.keys.get_mut(*number)
                && key.lease == (LeaseState::Released { token: *token })
            {
                key.lease = LeaseState::NotHeld;
            }
        }
        self.apply_acquisitions(exchange, actions);
        self.apply_table(now, reply.table);
        for (number, _) in request.acquire.iter().zip(reply.acquired).filter(|(_, token)| token.is_none()) {
            // The table has no owner, but the store did not grant the key: retry later.
            if let Some(key) = self.keys.get_mut(*number) {
                key.free_at = key.free_at.max(now + Nanos(self.lease_duration.0 / 8));
            }
        }
        self.expire_leases(now, actions);
        let usable = self.rebalance(now, actions);
        let mut next = now + Nanos(self.lease_duration.0 / 3);
        if !usable.is_empty() || self.keys.iter().any(|key| matches!(key.lease, LeaseState::Released { .. })) {
            next = now;
        }
        for key in self.keys.iter().filter(|key| key.lease == LeaseState::NotHeld && key.free_at > now) {
            next = next.min(key.free_at);
        }
        self.next_request_at = self.next_request_at.min(next);
    }

    /// Extends the renewed leases to `until`, and drops those that were not renewed.
    fn apply_renewals(&mut self, exchange: LeaseExchange<'_>, actions: &mut Vec<LeaseAction>) {
        let LeaseExchange { now, until, request, reply } = exchange;
        for ((number, token, expired), renewed) in request.renew.iter().zip(reply.renewed) {
            let Some(key) = self.keys.get_mut(*number) else { continue };
            match key.lease {
                LeaseState::Held { token: own_count, .. } if own_count == *token && *renewed => {
                    key.lease = LeaseState::Held { token: *token, until };
                }
                LeaseState::Releasing { token: own_count, .. } if own_count == *token && *renewed => {
                    key.lease = LeaseState::Releasing { token: *token, until };
                }
                // A lease that expired after the request is requested once more, as expired: an unsettled store trusts
                // the sender on leases that have not.
                LeaseState::Expired { token: own_count }
                    if own_count == *token && *renewed && *expired && now < until =>
                {
                    key.lease = LeaseState::Held { token: *token, until };
                    actions.push(LeaseAction::Resume(*number));
                }
                LeaseState::Held { token: own_count, .. } | LeaseState::Releasing { token: own_count, .. }
                    if own_count == *token && !*renewed =>
                {
                    key.lease = LeaseState::NotHeld;
                    actions.push(LeaseAction::Expire(*number));
                }
                LeaseState::Expired { token: own_count } if own_count == *token && !*renewed => {
                    key.lease = LeaseState::NotHeld;
                }
                _ => {}
            }
        }
    }

    /// Holds the acquired keys until `until`; a lease that has expired already is returned.
    fn apply_acquisitions(&mut self, exchange: LeaseExchange<'_>, actions: &mut Vec<LeaseAction>) {
        let LeaseExchange { now, until, request, reply } = exchange;
        for (index, (number, token)) in request.acquire.iter().zip(reply.acquired).enumerate() {
            let Some(key) = self.keys.get_mut(*number) else { continue };
            if let Some(token) = *token
                && key.lease == LeaseState::NotHeld
            {
                key.lease =
                    if now < until { LeaseState::Held { token, until } } else { LeaseState::Released { token } };
                if now < until {
                    actions.push(LeaseAction::Acquire { key: *number, index });
                }
            }
        }
    }

    fn apply_table(&mut self, now: Nanos, table: &LeaseTable) {
        self.has_table = true;
        let others = table.peers.iter().filter(|peer| peer.is_able && peer.name != self.name);
        self.peers = others.map(|peer| (peer.name.clone(), now + peer.ttl)).collect();
        let placements: HashMap<&str, &KeyPlacement> =
            table.placements.iter().map(|placement| (placement.key.as_str(), placement)).collect();
        for key in &mut self.keys {
            let placement = placements.get(key.name.as_str());
            key.owner = placement.and_then(|placement| placement.owner.clone());
            key.free_at = placement.map_or(now, |placement| now + placement.free_in);
        }
    }

    /// Releases keys above the fair share; returns free keys to acquire, up to it.
    fn rebalance(&mut self, now: Nanos, actions: &mut Vec<LeaseAction>) -> Vec<usize> {
        let fair_share = self.fair_share(now);
        let mut held = self.held_count();
        for (number, key) in self.keys.iter_mut().enumerate().rev() {
            if held > fair_share
                && let LeaseState::Held { token, until } = key.lease
            {
                key.lease = LeaseState::Releasing { token, until };
                actions.push(LeaseAction::Release(number));
                held -= 1;
            }
        }
        let is_free = |key: &SharedKey| key.is_accepted && key.lease == LeaseState::NotHeld && key.free_at <= now;
        let free: Vec<usize> =
            self.keys.iter().enumerate().filter(|(_, key)| is_free(key)).map(|(number, _)| number).collect();
        // Senders start at different positions, so that they do not request the same keys.
        let begin = self.rank(now) * free.len() / (self.alive_peers(now).count() + 1).max(1);
        let (before, after) = free.split_at(begin.min(free.len()));
        after.iter().chain(before).copied().take(fair_share.saturating_sub(held)).collect()
    }

    fn alive_peers(&self, now: Nanos) -> impl Iterator<Item = &str> {
        self.peers.iter().filter(move |(_, until)| now < *until).map(|(name, _)| name.as_str())
    }

    fn rank(&self, now: Nanos) -> usize {
        self.alive_peers(now).filter(|name| *name < self.name.as_str()).count()
    }

    /// Number of keys that this sender should hold.
    fn fair_share(&self, now: Nanos) -> usize {
        if !self.is_able || !self.has_table {
            return 0;
        }
        let usable = self.keys.iter().filter(|key| key.is_accepted).count();
        let mut owned: HashMap<&str, usize> = HashMap::new();
        for key in self.keys.iter().filter(|key| key.lease == LeaseState::NotHeld && key.free_at > now) {
            if let Some(owner) = &key.owner {
                *owned.entry(owner.as_str()).or_default() += 1;
            }
        }
        let own_count = self.held_count();
        let is_preferred = |name: &&str| {
            let other_count = owned.get(*name).copied().unwrap_or(0);
            other_count > own_count || other_count == own_count && *name < self.name.as_str()
        };
        let (senders, before) = (self.alive_peers(now).count() + 1, self.alive_peers(now).filter(is_preferred).count());
        usable / senders + usize::from(before < usable % senders)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
mod tests;
