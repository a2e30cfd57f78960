//! Measurement of a rate, from one recovery to the next.

use super::{Nanos, PacedRequest};

/// Requests sent from one recovery to the next and not rejected: rejections come soon, other responses may take long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycle {
    pub(super) start: Nanos,
    /// Their total weight.
    pub(super) weight: u64,
    /// Their number.
    pub(super) requests: u64,
}

impl Cycle {
    pub(super) fn starting_at(start: Nanos) -> Self {
        Self { start, ..Self::default() }
    }

    pub(super) fn add(&mut self, weight: u64) {
        self.weight = self.weight.saturating_add(weight);
        self.requests += 1;
    }

    /// Takes back a rejected request, if it was sent in this cycle.
    pub(super) fn remove(&mut self, sent: PacedRequest) {
        if sent.at >= self.start {
            self.weight = self.weight.saturating_sub(sent.weight);
            self.requests = self.requests.saturating_sub(1);
        }
    }

    /// Continues the previous cycle in place of a new one.
    pub(super) fn extend(&mut self, previous: &Self) {
        self.start = previous.start;
        self.weight += previous.weight;
        self.requests += previous.requests;
    }
}
