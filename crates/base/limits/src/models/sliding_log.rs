//! A log of accepted requests.

use std::collections::VecDeque;

use super::Nanos;

/// The sliding log: exact, with an entry for each request.
///
/// A request leaves the window after *more* than `per`, in whole ticks: the reference workload's service checks `now_ms
/// - oldest_ms > 1000`, so 1,001 ms suffice and 1,000 do not. A burst of the whole limit is allowed.
#[derive(Clone, Debug)]
pub(super) struct SlidingLog {
    limit: u64,
    per: Nanos,
    /// Times and weights, the oldest first. Requests of the same tick leave together: one entry.
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
