//! What the server is still working on.

use std::collections::VecDeque;

use super::Nanos;

/// Requests that have not ended.
#[derive(Clone, Debug, Default)]
pub(super) struct ConcurrencyCount {
    used: u64,
    /// Those that are said to end, when, and how much; in the order of time.
    ending: VecDeque<(Nanos, u64)>,
}

impl ConcurrencyCount {
    pub(super) fn start(&mut self, amount: u64) {
        self.used = self.used.saturating_add(amount);
    }

    pub(super) fn end(&mut self, at: Nanos, amount: u64) {
        let index = self.ending.partition_point(|(end, _)| *end <= at);
        self.ending.insert(index, (at, amount));
    }

    pub(super) fn advance(&mut self, now: Nanos) {
        while let Some((end, amount)) = self.ending.front().copied()
            && end <= now
        {
            self.ending.pop_front();
            self.used = self.used.saturating_sub(amount);
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// When this much more may be sent.
    pub(super) fn earliest(&self, amount: u64, most: u64) -> Nanos {
        let over = self.used.saturating_add(amount).saturating_sub(most);
        if over == 0 {
            return Nanos::ZERO;
        }
        let mut freed = 0;
        let last = self.ending.iter().find(|(_, amount)| {
            freed += amount;
            freed >= over
        });
        last.map_or(Nanos::NEVER, |(end, _)| *end)
    }
}
