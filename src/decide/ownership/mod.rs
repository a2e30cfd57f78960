//! Which keys are ours, when several senders share them: who may own what, when a key is taken over, how keys are dealt
//! out.
//!
//! ```text
//!              taken                      too many, of no use, or the end
//!   away ────────────────► held ────────────────────────────────► leaving
//!    ▲  ▲                  │  ▲                                      │ nothing of it is out
//!    │  │ somebody has it  │  │ renewed                              ▼
//!    │  └──────────── lapsed ◄┘ not renewed in time                 left
//!    └──────────────────────────────── given back ──────────────────┘
//! ```
//!
//! The edge keeps the store's word: a lease is given to one at a time, under a token that grows, and only when that of the
//! owner before is over by the *store's* clock. We count a lease from the moment before we asked for it, so it is over
//! for us before it is for the store; all that is needed is that clocks run at the same pace, not that they agree. A guard
//! is taken off for the time between the decision to send and the last byte.
//!
//! - Senders that can use keys share them evenly: of k keys and n senders each has k/n, rounded up for those who have the
//!   most (then by name), so that as few keys move as can. All see the same table, so all come to the same deal; whoever
//!   saw an older one is refused by the store, and sees a newer one with that.
//! - A key goes to another sender when nothing of it is out, with its whole past: the next owner goes on at once. If its
//!   owner is gone without a word, the key is free when its lease is over, and all that the owner may have sent until
//!   then counts ([`KeyHistory::worst_case`](super::window::KeyHistory::worst_case)).
//! - A lease that we lost, and that nobody else has taken meanwhile, is renewed: nobody but us has used the key. Not by a
//!   store that may have forgotten who has taken it: then only a lease that is not over by our clock counts.

#[cfg(test)]
mod world;

use std::collections::HashMap;

use super::Nanos;

/// A sender at the same store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// It can use keys.
    pub is_able: bool,
    /// For so long it counts as alive, if nothing is heard of it.
    pub ttl: Nanos,
}

/// Where a key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPlacement {
    /// Which.
    pub key: String,
    /// Whose it is, or was, if nobody has taken it since.
    pub owner: Option<String>,
    /// In so long nobody's lease is in the way.
    pub free_in: Nanos,
}

/// All senders and keys, as the store knows them at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseTable {
    /// Those that live.
    pub peers: Vec<Peer>,
    /// Keys that have ever been used.
    pub placements: Vec<KeyPlacement>,
}

/// What to ask the store for. Keys by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRequest {
    /// We can use keys.
    pub is_able: bool,
    /// Hold on to these, with their tokens, and whether their leases are over by our clock.
    pub renew: Vec<(usize, u64, bool)>,
    /// Give these back.
    pub release: Vec<(usize, u64)>,
    /// Take these.
    pub acquire: Vec<usize>,
}

/// What the store has said.
#[derive(Clone, Copy, Debug)]
pub struct LeaseReply<'a> {
    /// As it is now.
    pub table: &'a LeaseTable,
    /// Of each that was to be renewed, whether it is.
    pub renewed: &'a [bool],
    /// Of each that was to be taken, its token if it is ours.
    pub acquired: &'a [Option<u64>],
}

/// What to do with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    /// It is ours anew: go on from what the store knows of it. Which of those that were asked for.
    Acquire(usize, usize),
    /// It is ours again, and nobody has used it meanwhile.
    Resume(usize),
    /// Send nothing by it any more. What is out may be answered; tell when nothing is out.
    Release(usize),
    /// Its lease is over: send nothing by it, and call back what has not left yet.
    Expire(usize),
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
    /// The service takes it.
    is_accepted: bool,
    owner: Option<String>,
    free_at: Nanos,
}

/// Which keys are ours.
#[derive(Clone, Debug)]
pub struct KeyLeases {
    name: String,
    lease_duration: Nanos,
    keys: Vec<SharedKey>,
    /// Others that can use keys, and until when they are alive if nothing is heard.
    peers: Vec<(String, Nanos)>,
    is_able: bool,
    /// The store has said who is there.
    has_table: bool,
    /// When the store is to be asked next.
    next_request_at: Nanos,
    /// It was asked last then.
    requested_at: Option<Nanos>,
    /// There is no answer yet.
    is_requesting: bool,
}

impl KeyLeases {
    /// Nothing is ours yet. Our name among the senders, the keys' names, and how long the store leases them.
    pub fn new(me: &str, keys: impl IntoIterator<Item = String>, lease_duration: Nanos) -> Self {
        let key =
            |name| SharedKey { name, lease: LeaseState::NotHeld, is_accepted: true, owner: None, free_at: Nanos::ZERO };
        let keys = keys.into_iter().map(key).collect();
        let name = me.to_owned();
        Self {
            name,
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

    /// Whether a key may send now.
    pub fn is_held(&self, key: usize, now: Nanos) -> bool {
        self.keys.get(key).is_some_and(|key| matches!(key.lease, LeaseState::Held { until, .. } if now < until))
    }

    /// How many keys are ours, or may be again as soon as the store answers.
    pub fn held_count(&self) -> usize {
        self.keys.iter().filter(|key| matches!(key.lease, LeaseState::Held { .. } | LeaseState::Expired { .. })).count()
    }

    /// The keys that wait until nothing of them is out.
    pub fn releasing(&self) -> impl Iterator<Item = usize> {
        let keys = self.keys.iter().enumerate();
        keys.filter(|(_, key)| matches!(key.lease, LeaseState::Releasing { .. })).map(|(number, _)| number)
    }

    /// The token under which a key is ours, whatever becomes of it.
    pub fn token(&self, key: usize) -> Option<u64> {
        match self.keys.get(key)?.lease {
            LeaseState::NotHeld => None,
            LeaseState::Held { token, .. }
            | LeaseState::Expired { token }
            | LeaseState::Releasing { token, .. }
            | LeaseState::Released { token } => Some(token),
        }
    }

    /// When something is to be done, if nothing happens before.
    pub fn wake_at(&self) -> Nanos {
        let ends = self.keys.iter().filter_map(|key| match key.lease {
            LeaseState::Held { until, .. } | LeaseState::Releasing { until, .. } => Some(until),
            _ => None,
        });
        let next = if self.is_requesting { Nanos::NEVER } else { self.next_request_at };
        ends.fold(next, Nanos::min)
    }

    /// Leases that are over by now. To be called before anything is sent.
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

    /// Nothing of a key that is to be left is out any more.
    pub fn drained(&mut self, now: Nanos, key: usize) {
        if let Some(key) = self.keys.get_mut(key)
            && let LeaseState::Releasing { token, .. } = key.lease
        {
            key.lease = LeaseState::Released { token };
            self.next_request_at = self.next_request_at.min(now);
        }
    }

    /// The service does not take a key.
    pub fn key_rejected(&mut self, key: usize) {
        if let Some(key) = self.keys.get_mut(key) {
            key.is_accepted = false;
            if let LeaseState::Held { token, until } = key.lease {
                key.lease = LeaseState::Releasing { token, until };
            }
        }
    }

    /// Whether we can use keys; if not, others get them.
    pub fn set_able(&mut self, now: Nanos, able: bool, actions: &mut Vec<LeaseAction>) {
        if std::mem::replace(&mut self.is_able, able) != able {
            self.next_request_at = self.next_request_at.min(now);
            self.rebalance(now, actions);
        }
    }

    /// Somebody has given a key back, or come, or gone. A crowd that comes at once is not answered one by one.
    pub fn peers_changed(&mut self, now: Nanos) {
        let soonest = self.requested_at.map_or(now, |asked| asked + Nanos(self.lease_duration.0 / 16));
        self.next_request_at = self.next_request_at.min(soonest.max(now));
    }

    /// What to ask the store for, if it is time to; to be followed by [`Self::on_reply`] or [`Self::request_failed`].
    pub fn next_request(&mut self, now: Nanos, actions: &mut Vec<LeaseAction>) -> Option<LeaseRequest> {
        if self.is_requesting || now < self.next_request_at {
            return None;
        }
        self.expire_leases(now, actions);
        let take = self.rebalance(now, actions);
        (self.is_requesting, self.requested_at, self.next_request_at) = (true, Some(now), Nanos::NEVER);
        let mut ask = LeaseRequest { is_able: self.is_able, acquire: take, ..LeaseRequest::default() };
        for (number, key) in self.keys.iter().enumerate() {
            match key.lease {
                LeaseState::Held { token, .. } | LeaseState::Releasing { token, .. } => {
                    ask.renew.push((number, token, false));
                }
                LeaseState::Expired { token } => ask.renew.push((number, token, true)),
                LeaseState::Released { token } => ask.release.push((number, token)),
                LeaseState::NotHeld => {}
            }
        }
        Some(ask)
    }

    /// The store did not answer. It may have done what it was asked for: a key that was taken, and that we do not know
    /// of, is free again when its lease is over.
    pub fn request_failed(&mut self, now: Nanos) {
        self.is_requesting = false;
        self.next_request_at = self.next_request_at.min(now + Nanos(self.lease_duration.0 / 8));
    }

    /// What the store has said to an ask.
    pub fn on_reply(&mut self, now: Nanos, ask: &LeaseRequest, said: LeaseReply<'_>, actions: &mut Vec<LeaseAction>) {
        self.is_requesting = false;
        self.expire_leases(now, actions);
        // From before we asked, and not from when it was heard of: the store's lease ends later.
        let until = self.requested_at.unwrap_or_default() + (self.lease_duration - Nanos(self.lease_duration.0 / 10));
        for ((number, token, over), renewed) in ask.renew.iter().zip(said.renewed) {
            let Some(key) = self.keys.get_mut(*number) else { continue };
            match key.lease {
                LeaseState::Held { token: mine, .. } if mine == *token && *renewed => {
                    key.lease = LeaseState::Held { token: *token, until };
                }
                LeaseState::Releasing { token: mine, .. } if mine == *token && *renewed => {
                    key.lease = LeaseState::Releasing { token: *token, until };
                }
                // One that was not over when we asked, and is now, is asked for once more: a store that is not sure takes
                // our word for what is not over.
                LeaseState::Expired { token: mine } if mine == *token && *renewed && *over && now < until => {
                    key.lease = LeaseState::Held { token: *token, until };
                    actions.push(LeaseAction::Resume(*number));
                }
                LeaseState::Held { token: mine, .. } | LeaseState::Releasing { token: mine, .. }
                    if mine == *token && !*renewed =>
                {
                    key.lease = LeaseState::NotHeld;
                    actions.push(LeaseAction::Expire(*number));
                }
                LeaseState::Expired { token: mine } if mine == *token && !*renewed => key.lease = LeaseState::NotHeld,
                _ => {}
            }
        }
        for (number, token) in &ask.release {
            if let Some(key) = self.keys.get_mut(*number)
                && key.lease == (LeaseState::Released { token: *token })
            {
                key.lease = LeaseState::NotHeld;
            }
        }
        for (place, (number, token)) in ask.acquire.iter().zip(said.acquired).enumerate() {
            let Some(key) = self.keys.get_mut(*number) else { continue };
            if let Some(token) = *token
                && key.lease == LeaseState::NotHeld
            {
                key.lease =
                    if now < until { LeaseState::Held { token, until } } else { LeaseState::Released { token } };
                if now < until {
                    actions.push(LeaseAction::Acquire(*number, place));
                }
            }
        }
        self.apply_table(now, said.table);
        for (number, _) in ask.acquire.iter().zip(said.acquired).filter(|(_, token)| token.is_none()) {
            // Nobody is said to have it, and yet it is not given away: it is not asked for again at once.
            if let Some(key) = self.keys.get_mut(*number) {
                key.free_at = key.free_at.max(now + Nanos(self.lease_duration.0 / 8));
            }
        }
        self.expire_leases(now, actions);
        let wanted = self.rebalance(now, actions);
        let mut next = now + Nanos(self.lease_duration.0 / 3);
        if !wanted.is_empty() || self.keys.iter().any(|key| matches!(key.lease, LeaseState::Released { .. })) {
            next = now;
        }
        for key in self.keys.iter().filter(|key| key.lease == LeaseState::NotHeld && key.free_at > now) {
            next = next.min(key.free_at);
        }
        self.next_request_at = self.next_request_at.min(next);
    }

    fn apply_table(&mut self, now: Nanos, table: &LeaseTable) {
        self.has_table = true;
        let others = table.peers.iter().filter(|peer| peer.is_able && peer.name != self.name);
        self.peers = others.map(|peer| (peer.name.clone(), now + peer.ttl)).collect();
        let places: HashMap<&str, &KeyPlacement> =
            table.placements.iter().map(|place| (place.key.as_str(), place)).collect();
        for key in &mut self.keys {
            let place = places.get(key.name.as_str());
            key.owner = place.and_then(|place| place.owner.clone());
            key.free_at = place.map_or(now, |place| now + place.free_in);
        }
    }

    /// Leaves what is more than our share, and says what to take for the rest of it.
    fn rebalance(&mut self, now: Nanos, actions: &mut Vec<LeaseAction>) -> Vec<usize> {
        let share = self.fair_share(now);
        let mut held = self.held_count();
        for (number, key) in self.keys.iter_mut().enumerate().rev() {
            if held > share
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
        // Each begins at another place, so that they do not all reach for the same.
        let begin = self.rank(now) * free.len() / (self.alive_peers(now).count() + 1).max(1);
        let (before, after) = free.split_at(begin.min(free.len()));
        after.iter().chain(before).copied().take(share.saturating_sub(held)).collect()
    }

    fn alive_peers(&self, now: Nanos) -> impl Iterator<Item = &str> {
        self.peers.iter().filter(move |(_, until)| now < *until).map(|(name, _)| name.as_str())
    }

    fn rank(&self, now: Nanos) -> usize {
        self.alive_peers(now).filter(|name| *name < self.name.as_str()).count()
    }

    /// How many keys are to be ours.
    fn fair_share(&self, now: Nanos) -> usize {
        if !self.is_able || !self.has_table {
            return 0;
        }
        let wanted = self.keys.iter().filter(|key| key.is_accepted).count();
        let mut owned: HashMap<&str, usize> = HashMap::new();
        for key in self.keys.iter().filter(|key| key.lease == LeaseState::NotHeld && key.free_at > now) {
            if let Some(owner) = &key.owner {
                *owned.entry(owner.as_str()).or_default() += 1;
            }
        }
        let mine = self.held_count();
        let goes_before = |name: &&str| {
            let theirs = owned.get(*name).copied().unwrap_or(0);
            theirs > mine || theirs == mine && *name < self.name.as_str()
        };
        let (senders, before) = (self.alive_peers(now).count() + 1, self.alive_peers(now).filter(goes_before).count());
        wanted / senders + usize::from(before < wanted % senders)
    }
}
