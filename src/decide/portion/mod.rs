//! Which part of each limit is ours, when several gates share them: what we say of it, and when.
//!
//! A limit is one caller's rate, or what extra attempts may come to. Of each we have a [`Portion`], and decide by it alone.
//! A few times per lease a table that all gates know is told what we use and want, and says what is ours from then on. It
//! keeps the sum of what all *may* be using within the whole; all that it needs for that is that we use what we were told
//! last, and say so with the next question. So nothing is agreed upon, and nothing waits for an answer.
//!
//! - The *usual* portion is that of all of whom nothing else is said: an even share. *Claims* have portions of their own:
//!   those that some gate was short of. We know all of them, also those that nobody asks us for; else they would have the
//!   usual one here.
//! - We count a lease from the moment before we asked, less a tenth, so it is over for us before it is for the table. When it
//!   is over we go on with what we have. Then somebody else may have it, too, and this is what [`Portions::is_live`] says.
//! - Who has to use less says so soon, since others wait for that.
//!
//! The table's side is a script on a Redis server; `table.rs` has it as plainly as it can be written. How portions come to
//! be, and why the sum holds, is in `docs/design/share.md`.

mod part;
#[cfg(test)]
pub(crate) mod table;
#[cfg(test)]
mod world;

use std::collections::BTreeMap;

pub use self::part::Portion;
use super::Nanos;

/// A caller's rate, or a budget, by hashes that are the same at all gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    /// Which limit.
    pub limit: u64,
    /// Whose; 0 of a budget.
    pub key: u64,
}

/// What is said of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Which.
    pub claim: Claim,
    /// What we use of it.
    pub holds: Portion,
    /// What we could use, in the parts of a [`Portion`]; more than the whole if more comes in than the limit lets through.
    pub wants: u32,
}

/// What to say to the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Grows with each.
    pub number: u64,
    /// The number of the last one to which the answer came; 0 if none did.
    pub heard: u64,
    /// These are our last words: nothing is used any more.
    pub leaves: bool,
    /// What we use of all that is no claim.
    pub usual: Portion,
    /// Up to which beginning or end we know of claims.
    pub seen: u64,
    /// Some of the claims that we know, and some that are new.
    pub claims: Vec<Asked>,
}

/// What the table has said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// How many gates there are.
    pub gates: u32,
    /// What we may use of all that is no claim.
    pub usual: Portion,
    /// Up to which beginning or end we know of claims now.
    pub seen: u64,
    /// It had not known us before we asked, or before an ask whose answer did not come: all that we use is to be said again.
    pub joined: bool,
    /// There is more to hear of claims.
    pub more: bool,
    /// What all may be using together is no more than the whole, as far as is known, and all of it is.
    pub fits: bool,
    /// What we may use of claims; of None nothing else than usual.
    pub claims: Vec<(Claim, Option<Portion>)>,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    portion: Portion,
    /// What was wanted of late; it fades. What is new to us is taken to want what it has, until it was counted.
    wants: u32,
    is_counted: bool,
    /// The number of the ask that said last what we use; 0 if we use something else by now.
    told: u64,
}

/// Which part of each limit is ours.
#[derive(Clone, Debug)]
pub struct Portions {
    lease: Nanos,
    /// Ours if the table is away before it has said what is.
    alone: Portion,
    usual: Portion,
    claims: BTreeMap<Claim, Held>,
    seen: u64,
    gates: u32,
    number: u64,
    /// The number of the last ask to which the answer came.
    heard: u64,
    asked: Nanos,
    /// There is no answer yet.
    asking: bool,
    /// When the table is to be asked next.
    next: Nanos,
    /// When what is wanted is to be counted next.
    count_at: Nanos,
    until: Nanos,
    /// The table has our part in its sum.
    counted: bool,
}

impl Portions {
    /// Of that much nobody speaks of a share any more: sixteen times the limit.
    pub const MOST_WANTS: u32 = 16 << 16;
    /// Claims in one ask at most.
    pub const MOST_ASKED: usize = 128;
    /// New ones among them.
    const MOST_NEW: usize = 64;

    /// Nothing is ours yet; `alone` is, if the table is away before it has said what is.
    pub fn new(lease: Nanos, alone: Portion) -> Self {
        Self {
            lease,
            alone,
            usual: Portion::NONE,
            claims: BTreeMap::new(),
            seen: 0,
            gates: 0,
            number: 0,
            heard: 0,
            asked: Nanos::ZERO,
            asking: false,
            next: Nanos::ZERO,
            count_at: Nanos::ZERO,
            until: Nanos::ZERO,
            counted: false,
        }
    }

    /// What is ours of all that is no claim.
    pub fn usual(&self) -> Portion {
        self.usual
    }

    /// What is ours of this.
    pub fn of(&self, claim: Claim) -> Portion {
        self.claims.get(&claim).map_or(self.usual, |held| held.portion)
    }

    /// The claims of a limit: key and portion, by key.
    pub fn of_limit(&self, limit: u64) -> impl Iterator<Item = (u64, Portion)> {
        let all = Claim { limit, key: 0 }..=Claim { limit, key: u64::MAX };
        self.claims.range(all).map(|(claim, held)| (claim.key, held.portion))
    }

    /// How many claims there are, of all limits.
    pub fn claims(&self) -> usize {
        self.claims.len()
    }

    /// How many gates there are, as far as we know; 0 if nobody has said.
    pub fn gates(&self) -> u32 {
        self.gates
    }

    /// Whether all of what is ours is nobody else's. If not, we go on with it, for nobody says anything better.
    pub fn is_live(&self, now: Nanos) -> bool {
        self.counted && now < self.until
    }

    /// Whether our lease is over: the table has not answered for so long.
    pub fn is_away(&self, now: Nanos) -> bool {
        now >= self.until
    }

    /// Whether we have our even share.
    pub fn has_room(&self) -> bool {
        self.gates > 0 && self.usual >= Portion::even(self.gates)
    }

    /// When the table is to be asked next.
    pub fn wake(&self) -> Nanos {
        if self.asking { Nanos::NEVER } else { self.next }
    }

    /// What to say to the table, if it is time to; to be followed by [`Self::heard`] or [`Self::failed`]. Now and then
    /// it asks what was wanted since it asked for that last, by claim in the parts of a portion.
    pub fn due(&mut self, now: Nanos, wanted: impl FnOnce() -> Vec<(Claim, u32)>) -> Option<Ask> {
        if self.asking || now < self.next {
            return None;
        }
        let mut new = Vec::new();
        if now >= self.count_at {
            self.count_at = now + Nanos(self.lease.0 / 4);
            new = self.count(wanted());
        }
        self.number += 1;
        (self.asking, self.asked, self.next) = (true, now, Nanos::NEVER);
        let mut known: Vec<(u64, Claim)> = self.claims.iter().map(|(claim, held)| (held.told, *claim)).collect();
        // Those first that we have not said it of, or not for the longest time.
        known.sort_unstable();
        let known = known.into_iter().filter_map(|(_, claim)| {
            let held = self.claims.get(&claim)?;
            Some(Asked { claim, holds: held.portion, wants: held.wants })
        });
        let claims = new.into_iter().chain(known).take(Self::MOST_ASKED).collect();
        Some(Ask { number: self.number, heard: self.heard, leaves: false, usual: self.usual, seen: self.seen, claims })
    }

    /// Our last words.
    pub fn leave(&mut self) -> Ask {
        self.number += 1;
        (self.asking, self.counted) = (true, false);
        Ask { number: self.number, leaves: true, ..Ask::default() }
    }

    /// Takes in what was wanted; gives what we have to claim anew, what is wanted most first.
    fn count(&mut self, wanted: Vec<(Claim, u32)>) -> Vec<Asked> {
        // What comes and goes is not to take its portion along each time.
        for held in self.claims.values_mut() {
            held.wants =
                if std::mem::replace(&mut held.is_counted, true) { held.wants - held.wants.div_ceil(4) } else { 0 };
        }
        let (usual, mut new) = (self.usual, Vec::new());
        for (claim, wants) in wanted {
            let wants = wants.min(Self::MOST_WANTS);
            match self.claims.get_mut(&claim) {
                Some(held) => held.wants = held.wants.max(wants),
                None if wants > usual.parts() => new.push(Asked { claim, holds: usual, wants }),
                None => {}
            }
        }
        new.sort_unstable_by_key(|asked| (std::cmp::Reverse(asked.wants), asked.claim));
        new.truncate(Self::MOST_NEW);
        new
    }

    /// The table did not answer. It may have heard us all the same: then it takes us to use what it said.
    pub fn failed(&mut self, now: Nanos) {
        self.asking = false;
        self.next = now + Nanos(self.lease.0 / 8);
        if self.usual == Portion::NONE && self.is_away(now) {
            let even = if self.gates == 0 { Portion::WHOLE } else { Portion::even(self.gates) };
            self.usual = self.alone.min(even);
        }
    }

    /// What the table has said to the last ask.
    pub fn heard(&mut self, now: Nanos, ask: &Ask, said: &Said) {
        self.asking = false;
        (self.heard, self.gates) = (ask.number, said.gates);
        let was_over = self.is_away(now);
        // From before we asked, and not from when it was heard of: the table's lease ends later.
        self.until = self.asked + (self.lease - Nanos(self.lease.0 / 10));
        for asked in &ask.claims {
            if let Some(held) = self.claims.get_mut(&asked.claim) {
                held.told = ask.number;
            }
        }
        if said.joined {
            let mut is_all_said = true;
            for (claim, held) in &mut self.claims {
                if !ask.claims.iter().any(|asked| asked.claim == *claim) {
                    (held.told, is_all_said) = (0, false);
                }
            }
            // Who is forgotten before its lease is over is so by a server that begins anew. For a lease it gives nobody
            // more, so what was nobody else's is so still.
            self.counted &= is_all_said && !was_over;
        }
        // What is told now the table takes us to use from now on; all that we used before must have been said.
        let unsaid = self.claims.values().any(|held| held.told == 0);
        let mut lowered = said.usual < self.usual;
        for (claim, portion) in &said.claims {
            let Some(portion) = *portion else {
                self.claims.remove(claim);
                continue;
            };
            // Somebody waits for what is much; the rest is said with the next question.
            let before = self.of(*claim).parts();
            lowered |= portion.parts() < before - before / 8;
            let asked = ask.claims.iter().find(|asked| asked.claim == *claim);
            let (wants, is_counted) = (asked.map_or(portion.parts(), |asked| asked.wants), asked.is_some());
            let new = Held { portion: Portion::NONE, wants, is_counted, told: 0 };
            let held = self.claims.entry(*claim).or_insert(new);
            if held.portion != portion {
                (held.portion, held.told) = (portion, 0);
            }
        }
        (self.usual, self.seen) = (said.usual, said.seen);
        self.counted |= said.fits && !said.more && !unsaid;
        self.next = if said.more {
            now
        } else if lowered {
            (self.asked + Nanos(self.lease.0 / 16)).max(now)
        } else if !self.has_room() {
            now + Nanos(self.lease.0 / 8)
        } else {
            now + Nanos(self.lease.0 / 3)
        };
    }
}
