//! The table that all gates ask, as plainly as it can be written; `gate/sharing/renew.lua` is the same on a server.

use std::collections::{BTreeMap, BTreeSet};

use super::{AllocationKey, Fraction, SplitReply, SplitRequest};
use crate::decide::Nanos;

const WHOLE_PARTS: u64 = 65_536;

/// What is known of a gate.
#[derive(Clone, Debug, Default)]
struct TableGate {
    until: Nanos,
    number: u64,
    /// The number of the first question.
    joined: u64,
    /// What it may be using of what is no claim.
    default_parts: u64,
    seen_change: u64,
}

/// What is known of a claim: of each gate what it may be using, and what it wants.
#[derive(Clone, Debug, Default)]
struct AllocationRow {
    by_gate: BTreeMap<String, (u64, u64)>,
    /// The number of its beginning.
    began_at_change: u64,
}

impl AllocationRow {
    fn in_use(&self) -> u64 {
        self.by_gate.values().map(|(held, _)| held).sum()
    }

    fn demand(&self) -> u64 {
        self.by_gate.values().map(|(_, wants)| wants).sum()
    }
}

/// What a server keeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct SplitTable {
    server_run: Option<u32>,
    last_request_at: Nanos,
    lease: Nanos,
    settled_at: Nanos,
    last_change: u64,
    gates: BTreeMap<String, TableGate>,
    allocations: BTreeMap<AllocationKey, AllocationRow>,
    ended: BTreeMap<AllocationKey, u64>,
}

impl SplitTable {
    /// Claims at most.
    pub(crate) const MAX_ALLOCATIONS: usize = 1024;
    /// Beginnings, and ends, that one answer tells of.
    const MAX_CHANGES_PER_REPLY: usize = 128;

    /// Of a server that was never silent: nobody has to wait.
    pub(crate) fn new_settled(run: u32) -> Self {
        Self { server_run: Some(run), last_request_at: Nanos(u64::MAX / 4), ..Self::default() }
    }

    /// What a gate asks, and what it is told; nothing if a later question of its came first.
    pub(crate) fn renew(
        &mut self,
        now: Nanos,
        run: u32,
        gate: &str,
        lease: Nanos,
        ask: &SplitRequest,
    ) -> Option<SplitReply> {
        self.lease = self.lease.max(lease);
        let silent = self.last_request_at + Nanos(self.lease.0 / 2) < now && !self.gates.is_empty();
        let known = self.gates.get(gate).cloned();
        if known.as_ref().is_some_and(|known| ask.number <= known.number) {
            return None;
        }
        if self.server_run != Some(run) || silent {
            self.settled_at = now + self.lease;
        }
        (self.server_run, self.last_request_at) = (Some(run), self.last_request_at.max(now));
        if now >= self.settled_at {
            let over = self.gates.iter().filter(|(name, known)| *name != gate && known.until <= now);
            let over: Vec<String> = over.map(|(name, _)| name.clone()).collect();
            over.iter().for_each(|name| self.forget(name));
        }
        if ask.is_leaving {
            self.forget(gate);
            return Some(SplitReply::default());
        }
        // As long as it has not heard so.
        let joined = known.as_ref().is_none_or(|known| ask.last_reply < known.joined);
        let began = known.map_or(ask.number, |known| known.joined);
        let (holds, seen) = (u64::from(ask.default_fraction.parts()), if joined { 0 } else { ask.seen_change });
        let it = TableGate {
            until: now + lease,
            number: ask.number,
            joined: began,
            default_parts: holds,
            seen_change: seen,
        };
        self.gates.insert(gate.to_owned(), it);
        let mut said = SplitReply {
            gates: self.gates.len() as u32,
            joined,
            fits: now >= self.settled_at,
            ..SplitReply::default()
        };
        for asked in &ask.allocations {
            let its = u64::from(asked.in_use.parts());
            if !self.allocations.contains_key(&asked.allocation) {
                // As long as not all have been heard, whoever says that it is one is right.
                let is_one = u64::from(asked.demand) > its || now < self.settled_at && its != holds;
                if !is_one || self.allocations.len() >= Self::MAX_ALLOCATIONS {
                    said.allocations.push((asked.allocation, None));
                    continue;
                }
                self.last_change += 1;
                let of = self.gates.iter().map(|(name, gate)| (name.clone(), (gate.default_parts, 0)));
                self.allocations.insert(
                    asked.allocation,
                    AllocationRow { by_gate: of.collect(), began_at_change: self.last_change },
                );
                self.ended.remove(&asked.allocation);
            }
            self.allocate(now, gate, asked.allocation, its, Some(u64::from(asked.demand)), &mut said);
        }
        // Beginnings and ends that it does not know of, in their order.
        let after = |number: &u64| *number > seen;
        let mut begun: Vec<(u64, AllocationKey)> = self
            .allocations
            .iter()
            .map(|(claim, deal)| (deal.began_at_change, *claim))
            .filter(|(number, _)| after(number))
            .collect();
        let mut ended: Vec<(u64, AllocationKey)> =
            self.ended.iter().map(|(claim, number)| (*number, *claim)).filter(|(number, _)| after(number)).collect();
        if joined {
            ended.clear();
        }
        let last = self.last_change;
        let mut up_to = last;
        for list in [&mut begun, &mut ended] {
            list.sort_unstable();
            list.truncate(Self::MAX_CHANGES_PER_REPLY);
            if let (Self::MAX_CHANGES_PER_REPLY, Some((number, _))) = (list.len(), list.last()) {
                up_to = up_to.min(*number);
            }
        }
        let told: BTreeSet<AllocationKey> = said.allocations.iter().map(|(claim, _)| *claim).collect();
        let is_new = |(number, claim): &&(u64, AllocationKey)| *number <= up_to && !told.contains(claim);
        for (_, claim) in begun.iter().filter(is_new) {
            // Of one that it does not name it may be using what it was told, if it heard that.
            let told = self.allocations.get(claim).and_then(|deal| deal.by_gate.get(gate)).map_or(0, |(held, _)| *held);
            self.allocate(now, gate, *claim, holds.max(told), None, &mut said);
        }
        said.allocations.extend(ended.iter().filter(is_new).map(|(_, claim)| (*claim, None)));
        (said.seen_change, said.has_more) = (up_to, up_to < last);
        if self.ended.len() > Self::MAX_CHANGES_PER_REPLY {
            let least = self.gates.values().map(|gate| gate.seen_change).min().unwrap_or(0).min(up_to);
            self.ended.retain(|_, number| *number > least);
        }
        let sum: u64 = self.gates.values().map(|gate| gate.default_parts).sum();
        said.fits &= sum <= WHOLE_PARTS && !said.has_more;
        let usual = if said.has_more {
            holds
        } else {
            self.grant(now, holds, WHOLE_PARTS / u64::from(said.gates), sum - holds)
        };
        if let Some(it) = self.gates.get_mut(gate) {
            it.default_parts = holds.max(usual);
        }
        said.default_fraction = Fraction::from_parts(usual as u32);
        Some(said)
    }

    /// What a gate gets that uses so much, is due so much, and where the others may be using so much.
    fn grant(&self, now: Nanos, holds: u64, due: u64, others: u64) -> u64 {
        if holds >= due {
            return due;
        }
        let free = if now < self.settled_at { 0 } else { WHOLE_PARTS.saturating_sub(others) };
        holds.max(due.min(free))
    }

    fn allocate(
        &mut self,
        now: Nanos,
        gate: &str,
        claim: AllocationKey,
        holds: u64,
        wants: Option<u64>,
        said: &mut SplitReply,
    ) {
        let Some(mut deal) = self.allocations.get(&claim).cloned() else { return };
        let has_said = wants.is_some();
        let wants = wants.unwrap_or_else(|| deal.by_gate.get(gate).map_or(0, |(_, wants)| *wants));
        deal.by_gate.insert(gate.to_owned(), (holds, wants));
        let (gates, wanted) = (self.gates.len() as u64, deal.demand());
        let (even, is_small) = (WHOLE_PARTS / gates, wanted * 2 <= WHOLE_PARTS / gates);
        let due = match wanted {
            // What it wants is not known: it keeps what it has until it says so.
            _ if !has_said => self.gates.get(gate).map_or(0, |gate| gate.default_parts),
            _ if is_small => even,
            0..=WHOLE_PARTS => wants + (WHOLE_PARTS - wanted) / gates,
            _ => wants * WHOLE_PARTS / wanted,
        };
        said.fits &= deal.in_use() <= WHOLE_PARTS;
        let portion = self.grant(now, holds, due, deal.in_use() - holds);
        deal.by_gate.insert(gate.to_owned(), (holds.max(portion), wants));
        let may_use = |name: &String| deal.by_gate.get(name).map_or(0, |(held, _)| *held);
        if is_small
            && now >= self.settled_at
            && self.gates.iter().all(|(name, gate)| may_use(name) <= gate.default_parts)
        {
            self.last_change += 1;
            self.allocations.remove(&claim);
            self.ended.insert(claim, self.last_change);
            said.allocations.push((claim, None));
        } else {
            self.allocations.insert(claim, deal);
            said.allocations.push((claim, Some(Fraction::from_parts(portion as u32))));
        }
    }

    fn forget(&mut self, gate: &str) {
        self.gates.remove(gate);
        for deal in self.allocations.values_mut() {
            deal.by_gate.remove(gate);
        }
    }
}
