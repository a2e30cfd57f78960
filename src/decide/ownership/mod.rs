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
//!   then counts ([`History::full`](super::window::History::full)).
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
    pub able: bool,
    /// For so long it counts as alive, if nothing is heard of it.
    pub lives_for: Nanos,
}

/// Where a key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which.
    pub key: String,
    /// Whose it is, or was, if nobody has taken it since.
    pub owner: Option<String>,
    /// In so long nobody's lease is in the way.
    pub free_in: Nanos,
}

/// All senders and keys, as the store knows them at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Those that live.
    pub peers: Vec<Peer>,
    /// Keys that have ever been used.
    pub places: Vec<Place>,
}

/// What to ask the store for. Keys by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// We can use keys.
    pub able: bool,
    /// Hold on to these, with their tokens, and whether their leases are over by our clock.
    pub renew: Vec<(usize, u64, bool)>,
    /// Give these back.
    pub give: Vec<(usize, u64)>,
    /// Take these.
    pub take: Vec<usize>,
}

/// What the store has said.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// As it is now.
    pub table: &'a Table,
    /// Of each that was to be renewed, whether it is.
    pub renewed: &'a [bool],
    /// Of each that was to be taken, its token if it is ours.
    pub taken: &'a [Option<u64>],
}

/// What to do with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is ours anew: go on from what the store knows of it. Which of those that were asked for.
    Take(usize, usize),
    /// It is ours again, and nobody has used it meanwhile.
    Resume(usize),
    /// Send nothing by it any more. What is out may be answered; tell when nothing is out.
    Leave(usize),
    /// Its lease is over: send nothing by it, and call back what has not left yet.
    Lapse(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Away,
    Held { token: u64, until: Nanos },
    Lapsed { token: u64 },
    Leaving { token: u64, until: Nanos },
    Left { token: u64 },
}

#[derive(Clone, Debug)]
struct Key {
    name: String,
    standing: Standing,
    /// The service takes it.
    wanted: bool,
    owner: Option<String>,
    free_at: Nanos,
}

/// Which keys are ours.
#[derive(Clone, Debug)]
pub struct Ownership {
    me: String,
    lease: Nanos,
    keys: Vec<Key>,
    /// Others that can use keys, and until when they are alive if nothing is heard.
    peers: Vec<(String, Nanos)>,
    able: bool,
    /// The store has said who is there.
    knows: bool,
    /// When the store is to be asked next.
    next: Nanos,
    /// It was asked last then.
    asked: Option<Nanos>,
    /// There is no answer yet.
    asking: bool,
}

impl Ownership {
    /// Nothing is ours yet. Our name among the senders, the keys' names, and how long the store leases them.
    pub fn new(me: &str, keys: impl IntoIterator<Item = String>, lease: Nanos) -> Self {
        let key = |name| Key { name, standing: Standing::Away, wanted: true, owner: None, free_at: Nanos::ZERO };
        let keys = keys.into_iter().map(key).collect();
        let me = me.to_owned();
        Self {
            me,
            lease,
            keys,
            peers: Vec::new(),
            able: true,
            knows: false,
            next: Nanos::ZERO,
            asked: None,
            asking: false,
        }
    }

    /// Whether a key may send now.
    pub fn holds(&self, key: usize, now: Nanos) -> bool {
        self.keys.get(key).is_some_and(|key| matches!(key.standing, Standing::Held { until, .. } if now < until))
    }

    /// How many keys are ours, or may be again as soon as the store answers.
    pub fn held(&self) -> usize {
        self.keys.iter().filter(|key| matches!(key.standing, Standing::Held { .. } | Standing::Lapsed { .. })).count()
    }

    /// The keys that wait until nothing of them is out.
    pub fn leaving(&self) -> impl Iterator<Item = usize> {
        let keys = self.keys.iter().enumerate();
        keys.filter(|(_, key)| matches!(key.standing, Standing::Leaving { .. })).map(|(number, _)| number)
    }

    /// The token under which a key is ours, whatever becomes of it.
    pub fn token(&self, key: usize) -> Option<u64> {
        match self.keys.get(key)?.standing {
            Standing::Away => None,
            Standing::Held { token, .. }
            | Standing::Lapsed { token }
            | Standing::Leaving { token, .. }
            | Standing::Left { token } => Some(token),
        }
    }

    /// When something is to be done, if nothing happens before.
    pub fn wake(&self) -> Nanos {
        let ends = self.keys.iter().filter_map(|key| match key.standing {
            Standing::Held { until, .. } | Standing::Leaving { until, .. } => Some(until),
            _ => None,
        });
        let next = if self.asking { Nanos::NEVER } else { self.next };
        ends.fold(next, Nanos::min)
    }

    /// Leases that are over by now. To be called before anything is sent.
    pub fn pass(&mut self, now: Nanos, actions: &mut Vec<Action>) {
        for (number, key) in self.keys.iter_mut().enumerate() {
            match key.standing {
                Standing::Held { token, until } if until <= now => {
                    key.standing = Standing::Lapsed { token };
                    actions.push(Action::Lapse(number));
                    self.next = self.next.min(now);
                }
                Standing::Leaving { until, .. } if until <= now => {
                    key.standing = Standing::Away;
                    actions.push(Action::Lapse(number));
                }
                _ => {}
            }
        }
    }

    /// Nothing of a key that is to be left is out any more.
    pub fn idle(&mut self, now: Nanos, key: usize) {
        if let Some(key) = self.keys.get_mut(key)
            && let Standing::Leaving { token, .. } = key.standing
        {
            key.standing = Standing::Left { token };
            self.next = self.next.min(now);
        }
    }

    /// The service does not take a key.
    pub fn refused(&mut self, key: usize) {
        if let Some(key) = self.keys.get_mut(key) {
            key.wanted = false;
            if let Standing::Held { token, until } = key.standing {
                key.standing = Standing::Leaving { token, until };
            }
        }
    }

    /// Whether we can use keys; if not, others get them.
    pub fn set_able(&mut self, now: Nanos, able: bool, actions: &mut Vec<Action>) {
        if std::mem::replace(&mut self.able, able) != able {
            self.next = self.next.min(now);
            self.deal(now, actions);
        }
    }

    /// Somebody has given a key back, or come, or gone. A crowd that comes at once is not answered one by one.
    pub fn news(&mut self, now: Nanos) {
        let soonest = self.asked.map_or(now, |asked| asked + Nanos(self.lease.0 / 16));
        self.next = self.next.min(soonest.max(now));
    }

    /// What to ask the store for, if it is time to; to be followed by [`Self::heard`] or [`Self::failed`].
    pub fn due(&mut self, now: Nanos, actions: &mut Vec<Action>) -> Option<Ask> {
        if self.asking || now < self.next {
            return None;
        }
        self.pass(now, actions);
        let take = self.deal(now, actions);
        (self.asking, self.asked, self.next) = (true, Some(now), Nanos::NEVER);
        let mut ask = Ask { able: self.able, take, ..Ask::default() };
        for (number, key) in self.keys.iter().enumerate() {
            match key.standing {
                Standing::Held { token, .. } | Standing::Leaving { token, .. } => {
                    ask.renew.push((number, token, false));
                }
                Standing::Lapsed { token } => ask.renew.push((number, token, true)),
                Standing::Left { token } => ask.give.push((number, token)),
                Standing::Away => {}
            }
        }
        Some(ask)
    }

    /// The store did not answer. It may have done what it was asked for: a key that was taken, and that we do not know
    /// of, is free again when its lease is over.
    pub fn failed(&mut self, now: Nanos) {
        self.asking = false;
        self.next = self.next.min(now + Nanos(self.lease.0 / 8));
    }

    /// What the store has said to an ask.
    pub fn heard(&mut self, now: Nanos, ask: &Ask, said: Said<'_>, actions: &mut Vec<Action>) {
        self.asking = false;
        self.pass(now, actions);
        // From before we asked, and not from when it was heard of: the store's lease ends later.
        let until = self.asked.unwrap_or_default() + (self.lease - Nanos(self.lease.0 / 10));
        for ((number, token, over), renewed) in ask.renew.iter().zip(said.renewed) {
            let Some(key) = self.keys.get_mut(*number) else { continue };
            match key.standing {
                Standing::Held { token: mine, .. } if mine == *token && *renewed => {
                    key.standing = Standing::Held { token: *token, until };
                }
                Standing::Leaving { token: mine, .. } if mine == *token && *renewed => {
                    key.standing = Standing::Leaving { token: *token, until };
                }
                // One that was not over when we asked, and is now, is asked for once more: a store that is not sure takes
                // our word for what is not over.
                Standing::Lapsed { token: mine } if mine == *token && *renewed && *over && now < until => {
                    key.standing = Standing::Held { token: *token, until };
                    actions.push(Action::Resume(*number));
                }
                Standing::Held { token: mine, .. } | Standing::Leaving { token: mine, .. }
                    if mine == *token && !*renewed =>
                {
                    key.standing = Standing::Away;
                    actions.push(Action::Lapse(*number));
                }
                Standing::Lapsed { token: mine } if mine == *token && !*renewed => key.standing = Standing::Away,
                _ => {}
            }
        }
        for (number, token) in &ask.give {
            if let Some(key) = self.keys.get_mut(*number)
                && key.standing == (Standing::Left { token: *token })
            {
                key.standing = Standing::Away;
            }
        }
        for (place, (number, token)) in ask.take.iter().zip(said.taken).enumerate() {
            let Some(key) = self.keys.get_mut(*number) else { continue };
            if let Some(token) = *token
                && key.standing == Standing::Away
            {
                key.standing = if now < until { Standing::Held { token, until } } else { Standing::Left { token } };
                if now < until {
                    actions.push(Action::Take(*number, place));
                }
            }
        }
        self.learn(now, said.table);
        for (number, _) in ask.take.iter().zip(said.taken).filter(|(_, token)| token.is_none()) {
            // Nobody is said to have it, and yet it is not given away: it is not asked for again at once.
            if let Some(key) = self.keys.get_mut(*number) {
                key.free_at = key.free_at.max(now + Nanos(self.lease.0 / 8));
            }
        }
        self.pass(now, actions);
        let wanted = self.deal(now, actions);
        let mut next = now + Nanos(self.lease.0 / 3);
        if !wanted.is_empty() || self.keys.iter().any(|key| matches!(key.standing, Standing::Left { .. })) {
            next = now;
        }
        for key in self.keys.iter().filter(|key| key.standing == Standing::Away && key.free_at > now) {
            next = next.min(key.free_at);
        }
        self.next = self.next.min(next);
    }

    fn learn(&mut self, now: Nanos, table: &Table) {
        self.knows = true;
        let others = table.peers.iter().filter(|peer| peer.able && peer.name != self.me);
        self.peers = others.map(|peer| (peer.name.clone(), now + peer.lives_for)).collect();
        let places: HashMap<&str, &Place> = table.places.iter().map(|place| (place.key.as_str(), place)).collect();
        for key in &mut self.keys {
            let place = places.get(key.name.as_str());
            key.owner = place.and_then(|place| place.owner.clone());
            key.free_at = place.map_or(now, |place| now + place.free_in);
        }
    }

    /// Leaves what is more than our share, and says what to take for the rest of it.
    fn deal(&mut self, now: Nanos, actions: &mut Vec<Action>) -> Vec<usize> {
        let share = self.share(now);
        let mut held = self.held();
        for (number, key) in self.keys.iter_mut().enumerate().rev() {
            if held > share
                && let Standing::Held { token, until } = key.standing
            {
                key.standing = Standing::Leaving { token, until };
                actions.push(Action::Leave(number));
                held -= 1;
            }
        }
        let is_free = |key: &Key| key.wanted && key.standing == Standing::Away && key.free_at <= now;
        let free: Vec<usize> =
            self.keys.iter().enumerate().filter(|(_, key)| is_free(key)).map(|(number, _)| number).collect();
        // Each begins at another place, so that they do not all reach for the same.
        let begin = self.rank(now) * free.len() / (self.alive(now).count() + 1).max(1);
        let (before, after) = free.split_at(begin.min(free.len()));
        after.iter().chain(before).copied().take(share.saturating_sub(held)).collect()
    }

    fn alive(&self, now: Nanos) -> impl Iterator<Item = &str> {
        self.peers.iter().filter(move |(_, until)| now < *until).map(|(name, _)| name.as_str())
    }

    fn rank(&self, now: Nanos) -> usize {
        self.alive(now).filter(|name| *name < self.me.as_str()).count()
    }

    /// How many keys are to be ours.
    fn share(&self, now: Nanos) -> usize {
        if !self.able || !self.knows {
            return 0;
        }
        let wanted = self.keys.iter().filter(|key| key.wanted).count();
        let mut owned: HashMap<&str, usize> = HashMap::new();
        for key in self.keys.iter().filter(|key| key.standing == Standing::Away && key.free_at > now) {
            if let Some(owner) = &key.owner {
                *owned.entry(owner.as_str()).or_default() += 1;
            }
        }
        let mine = self.held();
        let goes_before = |name: &&str| {
            let theirs = owned.get(*name).copied().unwrap_or(0);
            theirs > mine || theirs == mine && *name < self.me.as_str()
        };
        let (senders, before) = (self.alive(now).count() + 1, self.alive(now).filter(goes_before).count());
        wanted / senders + usize::from(before < wanted % senders)
    }
}
