//! The table that all gates ask, as plainly as it can be written; `gate/sharing/renew.lua` is the same on a server.

use std::collections::{BTreeMap, BTreeSet};

use super::{Ask, Claim, Portion, Said};
use crate::decide::Nanos;

const WHOLE: u64 = 65_536;

/// What is known of a gate.
#[derive(Clone, Debug, Default)]
struct Gate {
    until: Nanos,
    number: u64,
    /// The number of the first question.
    joined: u64,
    /// What it may be using of what is no claim.
    usual: u64,
    seen: u64,
}

/// What is known of a claim: of each gate what it may be using, and what it wants.
#[derive(Clone, Debug, Default)]
struct Deal {
    of: BTreeMap<String, (u64, u64)>,
    /// The number of its beginning.
    began: u64,
}

impl Deal {
    fn held(&self) -> u64 {
        self.of.values().map(|(held, _)| held).sum()
    }

    fn wanted(&self) -> u64 {
        self.of.values().map(|(_, wants)| wants).sum()
    }
}

/// What a server keeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    run: Option<u32>,
    heard: Nanos,
    lease: Nanos,
    settled: Nanos,
    last: u64,
    gates: BTreeMap<String, Gate>,
    claims: BTreeMap<Claim, Deal>,
    gone: BTreeMap<Claim, u64>,
}

impl Table {
    /// Claims at most.
    pub(crate) const MOST: usize = 1024;
    /// Beginnings, and ends, that one answer tells of.
    const PAGE: usize = 128;

    /// Of a server that was never silent: nobody has to wait.
    pub(crate) fn settled(run: u32) -> Self {
        Self { run: Some(run), heard: Nanos(u64::MAX / 4), ..Self::default() }
    }

    /// What a gate asks, and what it is told; nothing if a later question of its came first.
    pub(crate) fn renew(&mut self, now: Nanos, run: u32, gate: &str, lease: Nanos, ask: &Ask) -> Option<Said> {
        self.lease = self.lease.max(lease);
        let silent = self.heard + Nanos(self.lease.0 / 2) < now && !self.gates.is_empty();
        let known = self.gates.get(gate).cloned();
        if known.as_ref().is_some_and(|known| ask.number <= known.number) {
            return None;
        }
        if self.run != Some(run) || silent {
            self.settled = now + self.lease;
        }
        (self.run, self.heard) = (Some(run), self.heard.max(now));
        if now >= self.settled {
            let over = self.gates.iter().filter(|(name, known)| *name != gate && known.until <= now);
            let over: Vec<String> = over.map(|(name, _)| name.clone()).collect();
            over.iter().for_each(|name| self.forget(name));
        }
        if ask.leaves {
            self.forget(gate);
            return Some(Said::default());
        }
        // As long as it has not heard so.
        let joined = known.as_ref().is_none_or(|known| ask.heard < known.joined);
        let began = known.map_or(ask.number, |known| known.joined);
        let (holds, seen) = (u64::from(ask.usual.parts()), if joined { 0 } else { ask.seen });
        let it = Gate { until: now + lease, number: ask.number, joined: began, usual: holds, seen };
        self.gates.insert(gate.to_owned(), it);
        let mut said = Said { gates: self.gates.len() as u32, joined, fits: now >= self.settled, ..Said::default() };
        for asked in &ask.claims {
            let its = u64::from(asked.holds.parts());
            if !self.claims.contains_key(&asked.claim) {
                // As long as not all have been heard, whoever says that it is one is right.
                let is_one = u64::from(asked.wants) > its || now < self.settled && its != holds;
                if !is_one || self.claims.len() >= Self::MOST {
                    said.claims.push((asked.claim, None));
                    continue;
                }
                self.last += 1;
                let of = self.gates.iter().map(|(name, gate)| (name.clone(), (gate.usual, 0)));
                self.claims.insert(asked.claim, Deal { of: of.collect(), began: self.last });
                self.gone.remove(&asked.claim);
            }
            self.deal(now, gate, asked.claim, its, Some(u64::from(asked.wants)), &mut said);
        }
        // Beginnings and ends that it does not know of, in their order.
        let after = |number: &u64| *number > seen;
        let mut begun: Vec<(u64, Claim)> =
            self.claims.iter().map(|(claim, deal)| (deal.began, *claim)).filter(|(number, _)| after(number)).collect();
        let mut ended: Vec<(u64, Claim)> =
            self.gone.iter().map(|(claim, number)| (*number, *claim)).filter(|(number, _)| after(number)).collect();
        if joined {
            ended.clear();
        }
        let last = self.last;
        let mut up_to = last;
        for list in [&mut begun, &mut ended] {
            list.sort_unstable();
            list.truncate(Self::PAGE);
            if let (Self::PAGE, Some((number, _))) = (list.len(), list.last()) {
                up_to = up_to.min(*number);
            }
        }
        let told: BTreeSet<Claim> = said.claims.iter().map(|(claim, _)| *claim).collect();
        let is_new = |(number, claim): &&(u64, Claim)| *number <= up_to && !told.contains(claim);
        for (_, claim) in begun.iter().filter(is_new) {
            // Of one that it does not name it may be using what it was told, if it heard that.
            let told = self.claims.get(claim).and_then(|deal| deal.of.get(gate)).map_or(0, |(held, _)| *held);
            self.deal(now, gate, *claim, holds.max(told), None, &mut said);
        }
        said.claims.extend(ended.iter().filter(is_new).map(|(_, claim)| (*claim, None)));
        (said.seen, said.more) = (up_to, up_to < last);
        if self.gone.len() > Self::PAGE {
            let least = self.gates.values().map(|gate| gate.seen).min().unwrap_or(0).min(up_to);
            self.gone.retain(|_, number| *number > least);
        }
        let sum: u64 = self.gates.values().map(|gate| gate.usual).sum();
        said.fits &= sum <= WHOLE && !said.more;
        let usual = if said.more { holds } else { self.grant(now, holds, WHOLE / u64::from(said.gates), sum - holds) };
        if let Some(it) = self.gates.get_mut(gate) {
            it.usual = holds.max(usual);
        }
        said.usual = Portion::of(usual as u32);
        Some(said)
    }

    /// What a gate gets that uses so much, is due so much, and where the others may be using so much.
    fn grant(&self, now: Nanos, holds: u64, due: u64, others: u64) -> u64 {
        if holds >= due {
            return due;
        }
        let free = if now < self.settled { 0 } else { WHOLE.saturating_sub(others) };
        holds.max(due.min(free))
    }

    fn deal(&mut self, now: Nanos, gate: &str, claim: Claim, holds: u64, wants: Option<u64>, said: &mut Said) {
        let Some(mut deal) = self.claims.get(&claim).cloned() else { return };
        let has_said = wants.is_some();
        let wants = wants.unwrap_or_else(|| deal.of.get(gate).map_or(0, |(_, wants)| *wants));
        deal.of.insert(gate.to_owned(), (holds, wants));
        let (gates, wanted) = (self.gates.len() as u64, deal.wanted());
        let (even, is_small) = (WHOLE / gates, wanted * 2 <= WHOLE / gates);
        let due = match wanted {
            // What it wants is not known: it keeps what it has until it says so.
            _ if !has_said => self.gates.get(gate).map_or(0, |gate| gate.usual),
            _ if is_small => even,
            0..=WHOLE => wants + (WHOLE - wanted) / gates,
            _ => wants * WHOLE / wanted,
        };
        said.fits &= deal.held() <= WHOLE;
        let portion = self.grant(now, holds, due, deal.held() - holds);
        deal.of.insert(gate.to_owned(), (holds.max(portion), wants));
        let may_use = |name: &String| deal.of.get(name).map_or(0, |(held, _)| *held);
        if is_small && now >= self.settled && self.gates.iter().all(|(name, gate)| may_use(name) <= gate.usual) {
            self.last += 1;
            self.claims.remove(&claim);
            self.gone.insert(claim, self.last);
            said.claims.push((claim, None));
        } else {
            self.claims.insert(claim, deal);
            said.claims.push((claim, Some(Portion::of(portion as u32))));
        }
    }

    fn forget(&mut self, gate: &str) {
        self.gates.remove(gate);
        for deal in self.claims.values_mut() {
            deal.of.remove(gate);
        }
    }
}
