//! Which part of each limit is ours, when several gates share them: what we say of it, and when.
//!
//! A limit is one caller's rate, or what extra attempts may come to. Of each we have a [`Fraction`], and decide by it alone.
//! A few times per lease a table that all gates know is told what we use and want, and says what is ours from then on. It
//! keeps the sum of what all *may* be using within the whole; all that it needs for that is that we use what we were told
//! last, and say so with the next question. So nothing is agreed upon, and nothing waits for an answer.
//!
//! - The *usual* portion is that of all of whom nothing else is said: an even share. *Claims* have portions of their own:
//!   those that some gate was short of. We know all of them, also those that nobody asks us for; else they would have the
//!   usual one here.
//! - We count a lease from the moment before we asked, less a tenth, so it is over for us before it is for the table. When it
//!   is over we go on with what we have. Then somebody else may have it, too, and this is what [`Allocations::is_live`] says.
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

pub use self::part::Fraction;
use super::Nanos;

/// A caller's rate, or a budget, by hashes that are the same at all gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllocationKey {
    /// Which limit.
    pub limit: u64,
    /// Whose; 0 of a budget.
    pub key: u64,
}

/// What is said of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationRequest {
    /// Which.
    pub allocation: AllocationKey,
    /// What we use of it.
    pub in_use: Fraction,
    /// What we could use, in the parts of a [`Fraction`]; more than the whole if more comes in than the limit lets through.
    pub demand: u32,
}

/// What to say to the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitRequest {
    /// Grows with each.
    pub number: u64,
    /// The number of the last one to which the answer came; 0 if none did.
    pub last_reply: u64,
    /// These are our last words: nothing is used any more.
    pub is_leaving: bool,
    /// What we use of all that is no claim.
    pub default_fraction: Fraction,
    /// Up to which beginning or end we know of claims.
    pub seen_change: u64,
    /// Some of the claims that we know, and some that are new.
    pub allocations: Vec<AllocationRequest>,
}

/// What the table has said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitReply {
    /// How many gates there are.
    pub gates: u32,
    /// What we may use of all that is no claim.
    pub default_fraction: Fraction,
    /// Up to which beginning or end we know of claims now.
    pub seen_change: u64,
    /// It had not known us before we asked, or before an ask whose answer did not come: all that we use is to be said again.
    pub joined: bool,
    /// There is more to hear of claims.
    pub has_more: bool,
    /// What all may be using together is no more than the whole, as far as is known, and all of it is.
    pub fits: bool,
    /// What we may use of claims; of None nothing else than usual.
    pub allocations: Vec<(AllocationKey, Option<Fraction>)>,
}

#[derive(Clone, Copy, Debug)]
struct OwnAllocation {
    fraction: Fraction,
    /// What was wanted of late; it fades. What is new to us is taken to want what it has, until it was counted.
    demand: u32,
    is_counted: bool,
    /// The number of the ask that said last what we use; 0 if we use something else by now.
    reported_in: u64,
}

/// Which part of each limit is ours.
#[derive(Clone, Debug)]
pub struct Allocations {
    lease_duration: Nanos,
    /// Ours if the table is away before it has said what is.
    fallback: Fraction,
    default_fraction: Fraction,
    own_allocations: BTreeMap<AllocationKey, OwnAllocation>,
    seen_change: u64,
    gates: u32,
    last_request: u64,
    /// The number of the last ask to which the answer came.
    last_reply: u64,
    requested_at: Nanos,
    /// There is no answer yet.
    is_requesting: bool,
    /// When the table is to be asked next.
    next_request_at: Nanos,
    /// When what is wanted is to be counted next.
    count_at: Nanos,
    lease_until: Nanos,
    /// The table has our part in its sum.
    is_in_sum: bool,
}

impl Allocations {
    /// Of that much nobody speaks of a share any more: sixteen times the limit.
    pub const MAX_DEMAND_PARTS: u32 = 16 << 16;
    /// Claims in one ask at most.
    pub const MAX_REQUESTED_ALLOCATIONS: usize = 128;
    /// New ones among them.
    const MAX_NEW_ALLOCATIONS: usize = 64;

    /// Nothing is ours yet; `alone` is, if the table is away before it has said what is.
    pub fn new(lease_duration: Nanos, fallback: Fraction) -> Self {
        Self {
            lease_duration,
            fallback,
            default_fraction: Fraction::NONE,
            own_allocations: BTreeMap::new(),
            seen_change: 0,
            gates: 0,
            last_request: 0,
            last_reply: 0,
            requested_at: Nanos::ZERO,
            is_requesting: false,
            next_request_at: Nanos::ZERO,
            count_at: Nanos::ZERO,
            lease_until: Nanos::ZERO,
            is_in_sum: false,
        }
    }

    /// What is ours of all that is no claim.
    pub fn default_fraction(&self) -> Fraction {
        self.default_fraction
    }

    /// What is ours of this.
    pub fn fraction_of(&self, claim: AllocationKey) -> Fraction {
        self.own_allocations.get(&claim).map_or(self.default_fraction, |held| held.fraction)
    }

    /// The claims of a limit: key and portion, by key.
    pub fn own_of_limit(&self, limit: u64) -> impl Iterator<Item = (u64, Fraction)> {
        let all = AllocationKey { limit, key: 0 }..=AllocationKey { limit, key: u64::MAX };
        self.own_allocations.range(all).map(|(claim, held)| (claim.key, held.fraction))
    }

    /// How many claims there are, of all limits.
    pub fn own_allocations(&self) -> usize {
        self.own_allocations.len()
    }

    /// How many gates there are, as far as we know; 0 if nobody has said.
    pub fn gates(&self) -> u32 {
        self.gates
    }

    /// Whether all of what is ours is nobody else's. If not, we go on with it, for nobody says anything better.
    pub fn is_live(&self, now: Nanos) -> bool {
        self.is_in_sum && now < self.lease_until
    }

    /// Whether our lease is over: the table has not answered for so long.
    pub fn is_unreachable(&self, now: Nanos) -> bool {
        now >= self.lease_until
    }

    /// Whether we have our even share.
    pub fn has_even_share(&self) -> bool {
        self.gates > 0 && self.default_fraction >= Fraction::even(self.gates)
    }

    /// When the table is to be asked next.
    pub fn wake_at(&self) -> Nanos {
        if self.is_requesting { Nanos::NEVER } else { self.next_request_at }
    }

    /// What to say to the table, if it is time to; to be followed by [`Self::on_reply`] or [`Self::request_failed`]. Now and then
    /// it asks what was wanted since it asked for that last, by claim in the parts of a portion.
    pub fn next_request(
        &mut self,
        now: Nanos,
        wanted: impl FnOnce() -> Vec<(AllocationKey, u32)>,
    ) -> Option<SplitRequest> {
        if self.is_requesting || now < self.next_request_at {
            return None;
        }
        let mut new = Vec::new();
        if now >= self.count_at {
            self.count_at = now + Nanos(self.lease_duration.0 / 4);
            new = self.update_demand(wanted());
        }
        self.last_request += 1;
        (self.is_requesting, self.requested_at, self.next_request_at) = (true, now, Nanos::NEVER);
        let mut known: Vec<(u64, AllocationKey)> =
            self.own_allocations.iter().map(|(claim, held)| (held.reported_in, *claim)).collect();
        // Those first that we have not said it of, or not for the longest time.
        known.sort_unstable();
        let known = known.into_iter().filter_map(|(_, claim)| {
            let held = self.own_allocations.get(&claim)?;
            Some(AllocationRequest { allocation: claim, in_use: held.fraction, demand: held.demand })
        });
        let claims = new.into_iter().chain(known).take(Self::MAX_REQUESTED_ALLOCATIONS).collect();
        Some(SplitRequest {
            number: self.last_request,
            last_reply: self.last_reply,
            is_leaving: false,
            default_fraction: self.default_fraction,
            seen_change: self.seen_change,
            allocations: claims,
        })
    }

    /// Our last words.
    pub fn leave_request(&mut self) -> SplitRequest {
        self.last_request += 1;
        (self.is_requesting, self.is_in_sum) = (true, false);
        SplitRequest { number: self.last_request, is_leaving: true, ..SplitRequest::default() }
    }

    /// Takes in what was wanted; gives what we have to claim anew, what is wanted most first.
    fn update_demand(&mut self, wanted: Vec<(AllocationKey, u32)>) -> Vec<AllocationRequest> {
        // What comes and goes is not to take its portion along each time.
        for held in self.own_allocations.values_mut() {
            held.demand =
                if std::mem::replace(&mut held.is_counted, true) { held.demand - held.demand.div_ceil(4) } else { 0 };
        }
        let (usual, mut new) = (self.default_fraction, Vec::new());
        for (claim, wants) in wanted {
            let wants = wants.min(Self::MAX_DEMAND_PARTS);
            match self.own_allocations.get_mut(&claim) {
                Some(held) => held.demand = held.demand.max(wants),
                None if wants > usual.parts() => {
                    new.push(AllocationRequest { allocation: claim, in_use: usual, demand: wants });
                }
                None => {}
            }
        }
        new.sort_unstable_by_key(|asked| (std::cmp::Reverse(asked.demand), asked.allocation));
        new.truncate(Self::MAX_NEW_ALLOCATIONS);
        new
    }

    /// The table did not answer. It may have heard us all the same: then it takes us to use what it said.
    pub fn request_failed(&mut self, now: Nanos) {
        self.is_requesting = false;
        self.next_request_at = now + Nanos(self.lease_duration.0 / 8);
        if self.default_fraction == Fraction::NONE && self.is_unreachable(now) {
            let even = if self.gates == 0 { Fraction::WHOLE } else { Fraction::even(self.gates) };
            self.default_fraction = self.fallback.min(even);
        }
    }

    /// What the table has said to the last ask.
    pub fn on_reply(&mut self, now: Nanos, ask: &SplitRequest, said: &SplitReply) {
        self.is_requesting = false;
        (self.last_reply, self.gates) = (ask.number, said.gates);
        let was_over = self.is_unreachable(now);
        // From before we asked, and not from when it was heard of: the table's lease ends later.
        self.lease_until = self.requested_at + (self.lease_duration - Nanos(self.lease_duration.0 / 10));
        for asked in &ask.allocations {
            if let Some(held) = self.own_allocations.get_mut(&asked.allocation) {
                held.reported_in = ask.number;
            }
        }
        if said.joined {
            let mut is_all_said = true;
            for (claim, held) in &mut self.own_allocations {
                if !ask.allocations.iter().any(|asked| asked.allocation == *claim) {
                    (held.reported_in, is_all_said) = (0, false);
                }
            }
            // Who is forgotten before its lease is over is so by a server that begins anew. For a lease it gives nobody
            // more, so what was nobody else's is so still.
            self.is_in_sum &= is_all_said && !was_over;
        }
        // What is told now the table takes us to use from now on; all that we used before must have been said.
        let unsaid = self.own_allocations.values().any(|held| held.reported_in == 0);
        let mut lowered = said.default_fraction < self.default_fraction;
        for (claim, portion) in &said.allocations {
            let Some(portion) = *portion else {
                self.own_allocations.remove(claim);
                continue;
            };
            // Somebody waits for what is much; the rest is said with the next question.
            let before = self.fraction_of(*claim).parts();
            lowered |= portion.parts() < before - before / 8;
            let asked = ask.allocations.iter().find(|asked| asked.allocation == *claim);
            let (wants, is_counted) = (asked.map_or(portion.parts(), |asked| asked.demand), asked.is_some());
            let new = OwnAllocation { fraction: Fraction::NONE, demand: wants, is_counted, reported_in: 0 };
            let held = self.own_allocations.entry(*claim).or_insert(new);
            if held.fraction != portion {
                (held.fraction, held.reported_in) = (portion, 0);
            }
        }
        (self.default_fraction, self.seen_change) = (said.default_fraction, said.seen_change);
        self.is_in_sum |= said.fits && !said.has_more && !unsaid;
        self.next_request_at = if said.has_more {
            now
        } else if lowered {
            (self.requested_at + Nanos(self.lease_duration.0 / 16)).max(now)
        } else if !self.has_even_share() {
            now + Nanos(self.lease_duration.0 / 8)
        } else {
            now + Nanos(self.lease_duration.0 / 3)
        };
    }
}
