//! The table of allocations at which all gates renew, written for reading;
//! `crates/gate/gate/src/distributed_limits/renew.lua` is the same on a Redis server, and a test compares the replies of
//! both.
//!
//! For each gate and each own allocation the table has what the gate *may be using*: the larger of what it reported
//! last and what it was given last. A gate never gets more than the whole less what all others may be using.

use std::collections::{BTreeMap, BTreeSet};

// Also compiled into the tests of the gateway, so paths are those of the module above.
use super::{AllocationKey, AllocationRequest, Fraction, Nanos, SplitReply, SplitRequest};

const WHOLE_PARTS: u64 = 65_536;

/// The state of a gate.
#[derive(Clone, Debug, Default)]
struct TableGate {
    /// End of its lease.
    until: Nanos,
    /// Number of its latest request.
    number: u64,
    /// Number of the first request, by which the gate joined.
    joined: u64,
    /// Default fraction that it may be using, in parts.
    default_parts: u64,
    seen_change: u64,
}

/// An own allocation: by gate, the parts that it may be using and its demand.
#[derive(Clone, Debug, Default)]
struct AllocationRow {
    by_gate: BTreeMap<String, (u64, u64)>,
    /// Number of the change by which the row began.
    began_at_change: u64,
}

impl AllocationRow {
    fn in_use(&self) -> u64 {
        self.by_gate.values().map(|(in_use, _)| in_use).sum()
    }

    fn demand(&self) -> u64 {
        self.by_gate.values().map(|(_, demand)| demand).sum()
    }

    fn in_use_of(&self, gate: &str) -> u64 {
        self.by_gate.get(gate).map_or(0, |(in_use, _)| *in_use)
    }
}

/// The table.
///
/// Own allocations begin and end by numbered changes; each gate learns of them in that order. The table is settled once
/// every living gate must have reported its use: a lease after a restart of the server, or after a silence. Before that
/// no gate gets more than it has.
#[derive(Clone, Debug, Default)]
pub(crate) struct SplitTable {
    server_run: Option<u32>,
    last_request_at: Nanos,
    lease: Nanos,
    settled_at: Nanos,
    last_change: u64,
    gates: BTreeMap<String, TableGate>,
    allocations: BTreeMap<AllocationKey, AllocationRow>,
    /// Ended own allocations, and the numbers of their ends.
    ended: BTreeMap<AllocationKey, u64>,
}

impl SplitTable {
    /// Maximum number of own allocations.
    pub(crate) const MAX_ALLOCATIONS: usize = 1024;
    /// Maximum number of begun, and of ended, allocations in a reply.
    const MAX_CHANGES_PER_REPLY: usize = 128;

    /// Table of a server that was never silent, so that no gate has to wait.
    pub(crate) fn new_settled(run: u32) -> Self {
        Self { server_run: Some(run), last_request_at: Nanos(u64::MAX / 4), ..Self::default() }
    }

    /// The reply to a gate's request; None if a later request of the gate came first.
    pub(crate) fn renew(
        &mut self,
        now: Nanos,
        run: u32,
        gate: &str,
        lease: Nanos,
        request: &SplitRequest,
    ) -> Option<SplitReply> {
        self.lease = self.lease.max(lease);
        let silent = self.last_request_at + Nanos(self.lease.0 / 2) < now && !self.gates.is_empty();
        let known = self.gates.get(gate).cloned();
        if known.as_ref().is_some_and(|known| request.number <= known.number) {
            return None;
        }
        if self.server_run != Some(run) || silent {
            self.settled_at = now + self.lease;
        }
        (self.server_run, self.last_request_at) = (Some(run), self.last_request_at.max(now));
        if now >= self.settled_at {
            let expired = self.gates.iter().filter(|(name, known)| *name != gate && known.until <= now);
            let expired: Vec<String> = expired.map(|(name, _)| name.clone()).collect();
            expired.iter().for_each(|name| self.forget(name));
        }
        if request.is_leaving {
            self.forget(gate);
            return Some(SplitReply::default());
        }
        // A gate counts as new until it confirms a reply to its first request or a later one.
        let joined = known.as_ref().is_none_or(|known| request.last_reply < known.joined);
        let first_number = known.map_or(request.number, |known| known.joined);
        let in_use = u64::from(request.default_fraction.parts());
        let seen = if joined { 0 } else { request.seen_change };
        let row = TableGate {
            until: now + lease,
            number: request.number,
            joined: first_number,
            default_parts: in_use,
            seen_change: seen,
        };
        self.gates.insert(gate.to_owned(), row);
        let mut reply = SplitReply {
            gates: self.gates.len() as u32,
            joined,
            fits: now >= self.settled_at,
            ..SplitReply::default()
        };
        for requested in &request.allocations {
            self.renew_allocation(now, gate, requested, in_use, &mut reply);
        }
        self.add_changes(now, gate, seen, in_use, &mut reply);
        if self.ended.len() > Self::MAX_CHANGES_PER_REPLY {
            let seen_by_all = self.gates.values().map(|gate| gate.seen_change).min().unwrap_or(0);
            let seen_by_all = seen_by_all.min(reply.seen_change);
            self.ended.retain(|_, number| *number > seen_by_all);
        }
        let sum: u64 = self.gates.values().map(|gate| gate.default_parts).sum();
        reply.fits &= sum <= WHOLE_PARTS && !reply.has_more;
        // The default changes only in a reply that has all own allocations.
        let default = if reply.has_more {
            in_use
        } else {
            self.grant(now, in_use, WHOLE_PARTS / u64::from(reply.gates), sum - in_use)
        };
        if let Some(row) = self.gates.get_mut(gate) {
            row.default_parts = in_use.max(default);
        }
        reply.default_fraction = Fraction::from_parts(default as u32);
        Some(reply)
    }

    /// Renews a requested own allocation; begins it if it is new, and needed.
    fn renew_allocation(
        &mut self,
        now: Nanos,
        gate: &str,
        requested: &AllocationRequest,
        default_in_use: u64,
        reply: &mut SplitReply,
    ) {
        let key = requested.allocation;
        let (in_use, demand) = (u64::from(requested.in_use.parts()), u64::from(requested.demand));
        if !self.allocations.contains_key(&key) {
            // Before the table is settled it may have forgotten the row: a gate that uses something else than its
            // default proves that there was one.
            let is_needed = demand > in_use || now < self.settled_at && in_use != default_in_use;
            if !is_needed || self.allocations.len() >= Self::MAX_ALLOCATIONS {
                reply.allocations.push((key, None));
                return;
            }
            self.last_change += 1;
            let defaults = self.gates.iter().map(|(name, gate)| (name.clone(), (gate.default_parts, 0)));
            let row = AllocationRow { by_gate: defaults.collect(), began_at_change: self.last_change };
            self.allocations.insert(key, row);
            self.ended.remove(&key);
        }
        self.allocate(now, gate, key, in_use, Some(demand), reply);
    }

    /// Adds the own allocations that began and ended after the change `seen`, in their order, up to a page of each.
    fn add_changes(&mut self, now: Nanos, gate: &str, seen: u64, default_in_use: u64, reply: &mut SplitReply) {
        let is_unseen = |(number, _): &(u64, AllocationKey)| *number > seen;
        let begun = self.allocations.iter().map(|(key, row)| (row.began_at_change, *key));
        let mut begun: Vec<(u64, AllocationKey)> = begun.filter(is_unseen).collect();
        let ended = self.ended.iter().map(|(key, number)| (*number, *key));
        let mut ended: Vec<(u64, AllocationKey)> = ended.filter(is_unseen).collect();
        if reply.joined {
            ended.clear();
        }
        let last = self.last_change;
        let mut up_to = last;
        for page in [&mut begun, &mut ended] {
            page.sort_unstable();
            page.truncate(Self::MAX_CHANGES_PER_REPLY);
            if let (Self::MAX_CHANGES_PER_REPLY, Some((number, _))) = (page.len(), page.last()) {
                up_to = up_to.min(*number);
            }
        }
        let listed: BTreeSet<AllocationKey> = reply.allocations.iter().map(|(key, _)| *key).collect();
        let is_new = |(number, key): &&(u64, AllocationKey)| *number <= up_to && !listed.contains(key);
        for (_, key) in begun.iter().filter(is_new) {
            // The gate did not name it: it uses its default, or what an earlier reply gave it.
            let given = self.allocations.get(key).map_or(0, |row| row.in_use_of(gate));
            self.allocate(now, gate, *key, default_in_use.max(given), None, reply);
        }
        reply.allocations.extend(ended.iter().filter(is_new).map(|(_, key)| (*key, None)));
        (reply.seen_change, reply.has_more) = (up_to, up_to < last);
    }

    /// Parts granted to a gate: `due`, as far as `others` leave free; at least `min(in_use, due)`.
    fn grant(&self, now: Nanos, in_use: u64, due: u64, others: u64) -> u64 {
        if in_use >= due {
            return due;
        }
        let free = if now < self.settled_at { 0 } else { WHOLE_PARTS.saturating_sub(others) };
        in_use.max(due.min(free))
    }

    /// Allocates parts of a row to a gate that uses `in_use` of it; ends the row if the defaults suffice. `demand`:
    /// None if the gate has not reported it.
    fn allocate(
        &mut self,
        now: Nanos,
        gate: &str,
        key: AllocationKey,
        in_use: u64,
        demand: Option<u64>,
        reply: &mut SplitReply,
    ) {
        let Some(mut row) = self.allocations.get(&key).cloned() else { return };
        let is_reported = demand.is_some();
        let demand = demand.unwrap_or_else(|| row.by_gate.get(gate).map_or(0, |(_, demand)| *demand));
        row.by_gate.insert(gate.to_owned(), (in_use, demand));
        let (gates, total_demand) = (self.gates.len() as u64, row.demand());
        // Demand that fits into half of one default allocation needs no own ones.
        let (even, is_small) = (WHOLE_PARTS / gates, total_demand * 2 <= WHOLE_PARTS / gates);
        let due = match total_demand {
            // Unknown demand: the gate keeps what it has until it reports it.
            _ if !is_reported => self.gates.get(gate).map_or(0, |gate| gate.default_parts),
            _ if is_small => even,
            0..=WHOLE_PARTS => demand + (WHOLE_PARTS - total_demand) / gates,
            _ => demand * WHOLE_PARTS / total_demand,
        };
        reply.fits &= row.in_use() <= WHOLE_PARTS;
        let parts = self.grant(now, in_use, due, row.in_use() - in_use);
        row.by_gate.insert(gate.to_owned(), (in_use.max(parts), demand));
        let is_within_default = |(name, gate): (&String, &TableGate)| row.in_use_of(name) <= gate.default_parts;
        if is_small && now >= self.settled_at && self.gates.iter().all(is_within_default) {
            self.last_change += 1;
            self.allocations.remove(&key);
            self.ended.insert(key, self.last_change);
            reply.allocations.push((key, None));
        } else {
            self.allocations.insert(key, row);
            reply.allocations.push((key, Some(Fraction::from_parts(parts as u32))));
        }
    }

    fn forget(&mut self, gate: &str) {
        self.gates.remove(gate);
        for row in self.allocations.values_mut() {
            row.by_gate.remove(gate);
        }
    }
}
