//! A window that remembers when each request was accepted.

use std::collections::VecDeque;

use super::Nanos;

/// The sliding log: exact, at the price of an entry for each request.
///
/// A request leaves the window when *more* than `per` has gone by, in whole ticks: the ring of the seed's exchange
/// asks `now_ms - oldest_ms > 1000`, so 1001 ms are long enough and 1000 are not. A burst of the whole limit is fine.
#[derive(Clone, Debug)]
pub(super) struct SlidingLog {
    limit: u64,
    per: Nanos,
    /// When, and how much, the oldest first. What was accepted in the same tick leaves in the same tick: one entry.
    accepted: VecDeque<(Nanos, u64)>,
    used: u64,
}

impl SlidingLog {
    pub(super) fn new(limit: u64, per: Nanos) -> Self {
        Self { limit, per, accepted: VecDeque::new(), used: 0 }
    }

    pub(super) fn used(&mut self, now: Nanos) -> u64 {
        while let Some((at, weight)) = self.accepted.front().copied()
            && now - at > self.per
        {
            self.accepted.pop_front();
            self.used -= weight;
        }
        self.used
    }

    pub(super) fn available_at(&mut self, now: Nanos, weight: u64) -> Nanos {
        let mut used = self.used(now);
        let blocking = self.accepted.iter().find(|(_, leaving)| {
            used -= leaving;
            used + weight <= self.limit
        });
        blocking.map_or(now, |(at, _)| *at + self.per + Nanos(1))
    }

    pub(super) fn take(&mut self, now: Nanos, weight: u64) {
        match self.accepted.back_mut() {
            _ if weight == 0 => {}
            Some((at, sum)) if *at == now => *sum += weight,
            _ => self.accepted.push_back((now, weight)),
        }
        self.used += weight;
    }

    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.accepted.len()
    }
}
