//! Requests that the server is still processing.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::Nanos;

/// Amount of the requests that have not ended at the server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct ConcurrencyCount {
    used: u64,
    /// Scheduled ends and their amounts, in order of time.
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

    /// Earliest time to send this amount, if the limit is `max`.
    pub(super) fn earliest(&self, amount: u64, max: u64) -> Nanos {
        let over = self.used.saturating_add(amount).saturating_sub(max);
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
