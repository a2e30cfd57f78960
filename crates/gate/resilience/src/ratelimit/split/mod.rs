//! The allocations of one gate, of limits that several gates share: its use, its demand, and its renewals.
//!
//! A limit is one caller's rate, or the budget of extra attempts. The gate has a [`Fraction`] of each, and decides by
//! that alone. A few times per lease it reports its use and its demand to a table that all gates share, and gets its
//! fractions from then on. The table keeps the sum of what all gates *may* be using within the whole; for that a gate
//! only has to use what it got last, and to report that with its next request. So there is no agreement protocol, and
//! no call waits for a reply.
//!
//! - The *default* fraction is an even part, and applies to every limit without an own allocation. *Own allocations*
//!   are those of limits that ran short at some gate. Every gate has all of them, including those without local demand,
//!   since otherwise it would use the default there.
//! - A lease counts from before the request, less a tenth, so it ends here before it does at the table. After its end
//!   the gate keeps its fractions. Then other gates may have them, too: see [`Allocations::is_live`].
//! - A gate that has to use less confirms that soon, since other gates wait for it.
//!
//! The table is a script on a Redis server; `table.rs` is the same in Rust. How fractions are computed, and why the sum
//! holds, is in `docs/design/cluster.md`.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;

use weir_base::Nanos;
use weir_limits::fraction::Fraction;

/// ID of a shared limit: a caller's rate, or a budget, as hashes that are the same at all gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllocationKey {
    /// Hash of the limit.
    pub limit: u64,
    /// Hash of the caller; 0 for a budget.
    pub key: u64,
}

/// A gate's report of an own allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationRequest {
    /// The allocation.
    pub allocation: AllocationKey,
    /// Fraction in use by this gate.
    pub in_use: Fraction,
    /// Demand, in the parts of a [`Fraction`]; above the whole if more arrives than the limit allows.
    pub demand: u32,
}

/// A gate's request to the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitRequest {
    /// Sequence number.
    pub number: u64,
    /// Number of the latest request whose reply came; 0: none.
    pub last_reply: u64,
    /// Whether the gate leaves, and uses nothing any more.
    pub is_leaving: bool,
    /// Default fraction in use.
    pub default_fraction: Fraction,
    /// Number of the latest change of own allocations that the gate has seen.
    pub seen_change: u64,
    /// Some of the known own allocations, and new ones.
    pub allocations: Vec<AllocationRequest>,
}

/// The table's reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitReply {
    /// Number of gates.
    pub gates: u32,
    /// Default fraction from now on.
    pub default_fraction: Fraction,
    /// Number of the latest change that the reply includes.
    pub seen_change: u64,
    /// Whether the gate was new to the table (or its earlier replies were lost): it has to report all its use again.
    pub joined: bool,
    /// Whether more changes follow in the next reply.
    pub has_more: bool,
    /// Whether all gates together may use at most the whole, and all of that is known.
    pub fits: bool,
    /// Own allocations; None: the default applies again.
    pub allocations: Vec<(AllocationKey, Option<Fraction>)>,
}

#[derive(Clone, Copy, Debug)]
struct OwnAllocation {
    fraction: Fraction,
    /// Recent demand, which fades. A new allocation's demand is its fraction, until it was counted.
    demand: u32,
    is_counted: bool,
    /// Number of the request that reported the current use; 0: not reported yet.
    reported_in: u64,
}

/// A gate's allocations of all shared limits. Pure: instants are arguments, requests and replies are values.
#[derive(Clone, Debug)]
pub struct Allocations {
    lease_duration: Nanos,
    /// Fraction if the table is unreachable from the start.
    fallback: Fraction,
    default_fraction: Fraction,
    own_allocations: BTreeMap<AllocationKey, OwnAllocation>,
    seen_change: u64,
    gates: u32,
    last_request: u64,
    /// Number of the latest request whose reply came.
    last_reply: u64,
    requested_at: Nanos,
    /// Whether a request awaits its reply.
    is_requesting: bool,
    /// Time of the next request.
    next_request_at: Nanos,
    /// Time of the next demand count.
    count_at: Nanos,
    lease_until: Nanos,
    /// Whether the table's sum includes this gate's use.
    is_in_sum: bool,
}

impl Allocations {
    /// Maximum reported demand: 16 times the limit.
    pub const MAX_DEMAND_PARTS: u32 = 16 << 16;
    /// Maximum number of allocations in a request.
    pub const MAX_REQUESTED_ALLOCATIONS: usize = 128;
    /// Maximum number of new ones among them.
    const MAX_NEW_ALLOCATIONS: usize = 64;

    /// Allocations before the first reply; `fallback` is the fraction if the table is unreachable until the first lease
    /// would have ended.
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

    /// Fraction of limits without an own allocation.
    pub fn default_fraction(&self) -> Fraction {
        self.default_fraction
    }

    /// Fraction of this limit.
    pub fn fraction_of(&self, claim: AllocationKey) -> Fraction {
        self.own_allocations.get(&claim).map_or(self.default_fraction, |own| own.fraction)
    }

    /// Own allocations of a limit: key and fraction, by key.
    pub fn own_of_limit(&self, limit: u64) -> impl Iterator<Item = (u64, Fraction)> {
        let all = AllocationKey { limit, key: 0 }..=AllocationKey { limit, key: u64::MAX };
        self.own_allocations.range(all).map(|(claim, own)| (claim.key, own.fraction))
    }

    /// Number of own allocations, of all limits.
    pub fn own_allocations(&self) -> usize {
        self.own_allocations.len()
    }

    /// Number of gates by the latest reply; 0: no reply yet.
    pub fn gates(&self) -> u32 {
        self.gates
    }

    /// Whether this gate's fractions are exclusively its own. If not, it continues with them, since nothing better is
    /// known.
    pub fn is_live(&self, now: Nanos) -> bool {
        self.is_in_sum && now < self.lease_until
    }

    /// Whether the lease has expired without a reply.
    pub fn is_unreachable(&self, now: Nanos) -> bool {
        now >= self.lease_until
    }

    /// Whether the default fraction is the even one.
    pub fn has_even_share(&self) -> bool {
        self.gates > 0 && self.default_fraction >= Fraction::even(self.gates)
    }

    /// Time of the next request.
    pub fn wake_at(&self) -> Nanos {
        if self.is_requesting { Nanos::NEVER } else { self.next_request_at }
    }

    /// The next request, if one is due; [`Self::on_reply`] or [`Self::request_failed`] must follow. Now and then it
    /// calls `wanted` for the demand since the last such call, by allocation in parts.
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
            self.own_allocations.iter().map(|(claim, own)| (own.reported_in, *claim)).collect();
        // Unreported ones first, then those reported longest ago.
        known.sort_unstable();
        let known = known.into_iter().filter_map(|(_, claim)| {
            let own = self.own_allocations.get(&claim)?;
            Some(AllocationRequest { allocation: claim, in_use: own.fraction, demand: own.demand })
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

    /// The last request, by which the gate leaves.
    pub fn leave_request(&mut self) -> SplitRequest {
        self.last_request += 1;
        (self.is_requesting, self.is_in_sum) = (true, false);
        SplitRequest { number: self.last_request, is_leaving: true, ..SplitRequest::default() }
    }

    /// Takes in counted demand; returns new allocations to request, the highest demand first.
    fn update_demand(&mut self, wanted: Vec<(AllocationKey, u32)>) -> Vec<AllocationRequest> {
        // Demand fades, so that a burst does not move its allocation each time.
        for own in self.own_allocations.values_mut() {
            own.demand =
                if std::mem::replace(&mut own.is_counted, true) { own.demand - own.demand.div_ceil(4) } else { 0 };
        }
        let (default, mut new) = (self.default_fraction, Vec::new());
        for (claim, demand) in wanted {
            let demand = demand.min(Self::MAX_DEMAND_PARTS);
            match self.own_allocations.get_mut(&claim) {
                Some(own) => own.demand = own.demand.max(demand),
                None if demand > default.parts() => {
                    new.push(AllocationRequest { allocation: claim, in_use: default, demand });
                }
                None => {}
            }
        }
        new.sort_unstable_by_key(|requested| (std::cmp::Reverse(requested.demand), requested.allocation));
        new.truncate(Self::MAX_NEW_ALLOCATIONS);
        new
    }

    /// Records a request without a reply. The table may have processed it: then it assumes that this gate uses what the
    /// reply had.
    pub fn request_failed(&mut self, now: Nanos) {
        self.is_requesting = false;
        self.next_request_at = now + Nanos(self.lease_duration.0 / 8);
        if self.default_fraction == Fraction::NONE && self.is_unreachable(now) {
            let even = if self.gates == 0 { Fraction::WHOLE } else { Fraction::even(self.gates) };
            self.default_fraction = self.fallback.min(even);
        }
    }

    /// Takes in the reply to the latest request.
    pub fn on_reply(&mut self, now: Nanos, request: &SplitRequest, reply: &SplitReply) {
        self.is_requesting = false;
        (self.last_reply, self.gates) = (request.number, reply.gates);
        let was_over = self.is_unreachable(now);
        // From before the request, not from the reply: the table's lease ends later.
        self.lease_until = self.requested_at + (self.lease_duration - Nanos(self.lease_duration.0 / 10));
        for requested in &request.allocations {
            if let Some(own) = self.own_allocations.get_mut(&requested.allocation) {
                own.reported_in = request.number;
            }
        }
        if reply.joined {
            let mut is_all_reported = true;
            for (claim, own) in &mut self.own_allocations {
                if !request.allocations.iter().any(|requested| requested.allocation == *claim) {
                    (own.reported_in, is_all_reported) = (0, false);
                }
            }
            // A gate is forgotten before its lease ends only by a server that restarted. For a lease that server gives
            // no gate more, so this gate's fractions are still its own.
            self.is_in_sum &= is_all_reported && !was_over;
        }
        // The table assumes that this gate uses the reply's fractions from now on; all its earlier use must have been
        // reported.
        let is_unreported = self.own_allocations.values().any(|own| own.reported_in == 0);
        let mut lowered = reply.default_fraction < self.default_fraction;
        for (claim, fraction) in &reply.allocations {
            let Some(fraction) = *fraction else {
                self.own_allocations.remove(claim);
                continue;
            };
            // Other gates wait for a large reduction; small ones are reported with the next request.
            let previous = self.fraction_of(*claim).parts();
            lowered |= fraction.parts() < previous - previous / 8;
            let requested = request.allocations.iter().find(|requested| requested.allocation == *claim);
            let (demand, is_counted) =
                (requested.map_or(fraction.parts(), |requested| requested.demand), requested.is_some());
            let new = OwnAllocation { fraction: Fraction::NONE, demand, is_counted, reported_in: 0 };
            let own = self.own_allocations.entry(*claim).or_insert(new);
            if own.fraction != fraction {
                (own.fraction, own.reported_in) = (fraction, 0);
            }
        }
        (self.default_fraction, self.seen_change) = (reply.default_fraction, reply.seen_change);
        self.is_in_sum |= reply.fits && !reply.has_more && !is_unreported;
        self.next_request_at = if reply.has_more {
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
