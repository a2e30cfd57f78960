//! A window that restarts at fixed times.

use super::Nanos;

/// The aligned window: a count from 0 at each multiple of `per`. Twice the limit may pass around an edge.
#[derive(Clone, Debug)]
pub(super) struct AlignedWindow {
    per: Nanos,
    /// Number of the window: its times are in [index * per, (index + 1) * per).
    index: u64,
    count: u64,
}

impl AlignedWindow {
    pub(super) fn new(per: Nanos) -> Self {
        Self { per, index: 0, count: 0 }
    }

    pub(super) fn used(&mut self, now: Nanos) -> u64 {
        let index = now.0 / self.per.0;
        if index != self.index {
            (self.index, self.count) = (index, 0);
        }
        self.count
    }

    pub(super) fn available_at(&self, now: Nanos) -> Nanos {
        Nanos((now.0 / self.per.0).saturating_add(1).saturating_mul(self.per.0))
    }

    pub(super) fn take(&mut self, now: Nanos, weight: u64) {
        self.used(now);
        self.count += weight;
    }
}
