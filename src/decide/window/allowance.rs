//! A limit that nobody told us of but the server itself: so much more until then.

use super::{Nanos, Unit, Windows};
use crate::decide::feedback::Quota;
use crate::decide::window::Slot;

/// What may still be sent.
#[derive(Clone, Debug)]
pub(super) struct Allowance {
    /// The server's name for the limit.
    name: String,
    unit: Unit,
    left: u64,
    until: Nanos,
}

impl Allowance {
    pub(super) fn holds(&self, now: Nanos) -> bool {
        now < self.until
    }

    pub(super) fn room(&self, weight: u64) -> Nanos {
        if self.unit.amount(weight) <= self.left { Nanos::ZERO } else { self.until }
    }

    pub(super) fn send(&mut self, weight: u64) {
        self.left = self.left.saturating_sub(self.unit.amount(weight));
    }
}

impl Windows {
    /// What the answer to this request says of the limits; called before its slot ends.
    ///
    /// Where it speaks of one of ours, the server's number counts if it is less than what we know must be left. Of a limit
    /// that is none of ours, no more is sent than is left of it, until its reset. All that is on its way may come after
    /// the request that was answered, and is taken off.
    pub fn heard(&mut self, slot: Slot, now: Nanos, quotas: &[Quota]) {
        let now = self.advance(now);
        let Some(open) = self.road.get(slot) else { return };
        let (expected, own, arrived) = (open.expected, open.weight, open.arrived);
        for quota in quotas {
            let meant = self.meters.iter().position(|meter| {
                meter.is_meant(quota) && quota.limit.is_some_and(|limit| limit == meter.limit.window.limit())
            });
            let mut others = (0..self.meters.len()).filter(|index| self.meters[*index].is_meant(quota));
            let only = others.next().filter(|_| others.next().is_none());
            if let Some(index) = meant.or(only) {
                self.meters[index].heard(quota, expected[index], now);
            } else if let (Some(remaining), Some(reset)) = (quota.remaining, quota.reset) {
                let unit = quota.unit.unwrap_or(Unit::Requests);
                let own = if arrived { 0 } else { unit.amount(own) };
                let on_the_way = self.road.ahead(unit, None).total().saturating_sub(own);
                self.allow(quota, unit, remaining.saturating_sub(on_the_way), now + reset);
            }
        }
    }

    fn allow(&mut self, quota: &Quota, unit: Unit, left: u64, until: Nanos) {
        self.allowances.retain(|allowance| allowance.name != quota.name);
        self.allowances.push(Allowance { name: quota.name.clone(), unit, left, until });
    }
}
