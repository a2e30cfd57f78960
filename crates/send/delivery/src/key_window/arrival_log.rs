//! Recent arrivals: the count behind windows that remember each request.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::Nanos;
use super::in_flight::InTransit;

/// Log of arrivals; each counts from its send until `span` after the latest time by which it arrived.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ArrivalLog {
    span: Nanos,
    /// Arrival times are rounded up to a multiple of it, so that there are few entries.
    grain: Nanos,
    /// Arrival time of the latest entry that has expired.
    expired_at: Nanos,
    /// Latest arrival times and amounts, the oldest first.
    arrived: VecDeque<(Nanos, u64)>,
    #[serde(skip)]
    used: u64,
}

impl ArrivalLog {
    pub(super) fn new(span: Nanos, grain: Nanos) -> Self {
        Self { span, grain, expired_at: Nanos::ZERO, arrived: VecDeque::new(), used: 0 }
    }

    pub(super) fn advance(&mut self, now: Nanos) {
        while let Some((by, amount)) = self.arrived.front().copied()
            && by + self.span <= now
        {
            self.arrived.pop_front();
            self.expired_at = by;
            self.used -= amount;
        }
    }

    pub(super) fn arrive(&mut self, by: Nanos, amount: u64) {
        let by = by.0.checked_next_multiple_of(self.grain.0).map_or(by, Nanos);
        match self.arrived.back_mut() {
            _ if amount == 0 => return,
            // An arrival under a lowered bound is not placed before existing ones: later is safe.
            Some((last, sum)) if *last >= by => *sum += amount,
            _ => self.arrived.push_back((by, amount)),
        }
        self.used += amount;
    }

    /// Computes what is not stored, for a log of this span and grain; false: the entries contradict one another.
    pub(super) fn restore(&mut self, like: &Self) -> bool {
        (self.span, self.grain) = (like.span, like.grain);
        let sum = self.arrived.iter().try_fold(0_u64, |sum, (_, amount)| sum.checked_add(*amount));
        self.used = sum.unwrap_or_default();
        sum.is_some() && self.arrived.iter().is_sorted_by_key(|(by, _)| *by)
    }

    /// Moves arrivals assumed from `from` on to as late as `to`.
    pub(super) fn postpone(&mut self, from: Nanos, to: Nanos) {
        let late = self.arrived.iter_mut().rev().take_while(|(by, _)| *by >= from);
        late.for_each(|(by, _)| *by = to.max(*by));
    }

    /// Removes an amount of the arrivals up to `until` that was counted twice; later arrivals stay.
    pub(super) fn refund(&mut self, until: Nanos, amount: u64) {
        let mut left = amount;
        for (_, counted) in self.arrived.iter_mut().rev().filter(|(by, _)| *by <= until) {
            let taken = left.min(*counted);
            (*counted, left) = (*counted - taken, left - taken);
            self.used -= taken;
            if left == 0 {
                break;
            }
        }
        self.arrived.retain(|(_, counted)| *counted > 0);
    }

    /// Removes an amount that was assumed to arrive after `departed_at`, and never will. If an earlier entry is reduced in
    /// place of its own, the rest only counts for longer.
    pub(super) fn take_back(&mut self, departed_at: Nanos, amount: u64) {
        // Once an entry of that time may have expired, what is left is others'.
        let has_all = self.arrived.front().is_some_and(|(by, _)| *by <= departed_at) || self.expired_at <= departed_at;
        let index = self.arrived.partition_point(|(by, _)| *by < departed_at);
        if let Some((_, counted)) = self.arrived.get_mut(index).filter(|(_, counted)| has_all && *counted >= amount) {
            *counted -= amount;
            self.used -= amount;
            self.arrived.retain(|(_, counted)| *counted > 0);
        }
    }

    /// Maximum that the server may have counted, without requests in transit.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Earliest time to send this amount, if the limit is `max`.
    pub(super) fn earliest(&self, amount: u64, max: u64, ahead: &InTransit<'_>) -> Nanos {
        let over = self.used.saturating_add(ahead.total()).saturating_add(amount).saturating_sub(max);
        if over == 0 {
            return Nanos::ZERO;
        }
        let mut freed = 0;
        let mut leaving = self.arrived.iter().copied().chain(ahead.iter());
        let last = leaving.find(|(_, amount)| {
            freed += amount;
            freed >= over
        });
        last.map_or(Nanos::NEVER, |(by, _)| by + self.span)
    }

    /// Ages and amounts, the oldest first.
    pub(super) fn ages(&self, now: Nanos) -> impl Iterator<Item = (Nanos, u64)> {
        self.arrived.iter().map(move |(by, amount)| (now - *by, *amount))
    }
}
