//! What surely arrived lately: the count behind windows that remember each request.

use std::collections::VecDeque;

use super::Nanos;
use super::road::InTransit;

/// A request counts from when it is sent until `span` after the instant by which it had surely arrived.
#[derive(Clone, Debug)]
pub(super) struct ArrivalLog {
    span: Nanos,
    /// By when, and how much; the oldest first.
    arrived: VecDeque<(Nanos, u64)>,
    used: u64,
}

impl ArrivalLog {
    pub(super) fn new(span: Nanos) -> Self {
        Self { span, arrived: VecDeque::new(), used: 0 }
    }

    pub(super) fn advance(&mut self, now: Nanos) {
        while let Some((by, amount)) = self.arrived.front().copied()
            && by + self.span <= now
        {
            self.arrived.pop_front();
            self.used -= amount;
        }
    }

    pub(super) fn arrive(&mut self, by: Nanos, amount: u64) {
        match self.arrived.back_mut() {
            _ if amount == 0 => return,
            // What a lowered bound says of the past does not go before what is there: later is safe.
            Some((last, sum)) if *last >= by => *sum += amount,
            _ => self.arrived.push_back((by, amount)),
        }
        self.used += amount;
    }

    /// What was taken to have arrived from `from` on may have done so as late as at `to`.
    pub(super) fn postpone(&mut self, from: Nanos, to: Nanos) {
        let late = self.arrived.iter_mut().rev().take_while(|(by, _)| *by >= from);
        late.for_each(|(by, _)| *by = to.max(*by));
    }

    /// This much of what was there at `until` was never counted; what came later counts as it did.
    pub(super) fn refund(&mut self, until: Nanos, amount: u64) {
        let mut left = amount;
        for (_, there) in self.arrived.iter_mut().rev().filter(|(by, _)| *by <= until) {
            let taken = left.min(*there);
            (*there, left) = (*there - taken, left - taken);
            self.used -= taken;
            if left == 0 {
                break;
            }
        }
        self.arrived.retain(|(_, there)| *there > 0);
    }

    /// The most that the server may have counted, without what is on its way.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// When this much more may be sent, if the window holds `most`.
    pub(super) fn earliest(&self, amount: u64, most: u64, ahead: &InTransit<'_>) -> Nanos {
        let over = self.used.saturating_add(ahead.total()).saturating_add(amount).saturating_sub(most);
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

    /// How long ago, and how much; the oldest first.
    pub(super) fn ages(&self, now: Nanos) -> impl Iterator<Item = (Nanos, u64)> {
        self.arrived.iter().map(move |(by, amount)| (now - *by, *amount))
    }
}
