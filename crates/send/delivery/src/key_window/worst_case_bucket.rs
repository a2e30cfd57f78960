//! The lowest level that a server's bucket may have: the count behind windows that refill evenly.

use serde::{Deserialize, Serialize};

use super::Nanos;
use super::in_flight::InTransit;

/// Token bucket that refills `rate` per `per`, fed with the latest possible arrivals.
///
/// In *every* interval at most capacity + length x `rate` / `per` arrives, whatever the delays; later arrivals leave
/// the bucket emptier, so the latest instants are the safe ones. As the server's own bucket (`weir_limits`) it stores
/// the instant when it would be full again, times `rate`, and never rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WorstCaseBucket {
    /// Capacity, times `per`.
    scaled_capacity: u128,
    rate: u64,
    per: Nanos,
    /// Added to every arrival, since the server's clock has ticks.
    clock_tick: Nanos,
    scaled_full_at: u128,
}

impl WorstCaseBucket {
    /// The bucket of a server that allows `limit` per `per`.
    pub(super) fn for_token_bucket(limit: u64, per: Nanos, clock_tick: Nanos) -> Self {
        Self { scaled_capacity: times(limit, per.0), rate: limit, per, clock_tick, scaled_full_at: 0 }
    }

    /// Bucket whose capacity and refill per `per` are `limit` together. Requests in transit may all arrive at once, so
    /// the capacity has to cover them; that leaves (limit - 1) / (per + max_delay) as the rate.
    pub(super) fn for_sliding_counter(limit: u64, per: Nanos, clock_tick: Nanos, max_delay: Nanos) -> Self {
        let (rate, longer) = (limit.saturating_sub(1).max(1), per + max_delay + clock_tick);
        let scaled_capacity = times(limit, longer.0).saturating_sub(times(rate, per.0));
        Self { scaled_capacity, rate, per: longer, clock_tick, scaled_full_at: 0 }
    }

    /// Whether the numbers are those of a bucket.
    pub(super) fn is_valid(&self) -> bool {
        self.rate > 0 && self.per > Nanos::ZERO && self.scaled_capacity < u128::MAX >> 8
    }

    pub(super) fn arrive(&mut self, by: Nanos, amount: u64) {
        self.scaled_full_at = self.full_after(self.scaled_full_at, by, amount);
    }

    /// Moves `amount`, assumed to have arrived at `from`, to as late as `to`, after which nothing else has arrived:
    /// either all came that much later, or the amount came once more; the earlier full time counts.
    pub(super) fn postpone(&mut self, from: Nanos, to: Nanos, amount: u64) {
        let all_later = self.scaled_full_at.saturating_add(times((to - from).0, self.rate));
        self.scaled_full_at = all_later.min(self.full_after(self.scaled_full_at, to, amount));
    }

    fn full_after(&self, scaled_full: u128, by: Nanos, amount: u64) -> u128 {
        scaled_full.max(times((by + self.clock_tick).0, self.rate)).saturating_add(times(amount, self.per.0))
    }

    /// Returns an amount that was never taken.
    pub(super) fn refund(&mut self, amount: u64) {
        self.scaled_full_at = self.scaled_full_at.saturating_sub(times(amount, self.per.0));
    }

    /// Time when the bucket is full again.
    pub(super) fn full_at(&self) -> Nanos {
        instant(self.scaled_full_at, self.rate)
    }

    pub(super) fn set_full_at(&mut self, at: Nanos) {
        self.scaled_full_at = self.scaled_full_at.max(times(at.0, self.rate));
    }

    /// Assumes that the bucket was empty at `by`.
    pub(super) fn empty_at(&mut self, by: Nanos) {
        self.scaled_full_at =
            self.scaled_full_at.max(times((by + self.clock_tick).0, self.rate).saturating_add(self.scaled_capacity));
    }

    /// Assumes that less than `amount` was available at `by`.
    pub(super) fn had_less_than(&mut self, by: Nanos, amount: u64) {
        let used = self.scaled_capacity.saturating_sub(times(amount, self.per.0));
        self.scaled_full_at = self.scaled_full_at.max(times(by.0, self.rate).saturating_add(used));
    }

    /// The same amount used as in `other` at `now`.
    pub(super) fn with_usage_of(mut self, other: &Self, now: Nanos) -> Self {
        let used = other.used(now);
        if used > 0 {
            self.scaled_full_at = times(now.0, self.rate).saturating_add(times(used, self.per.0));
        }
        self
    }

    /// The used amount, limited to the capacity.
    pub(super) fn at_worst_empty(mut self, now: Nanos) -> Self {
        self.scaled_full_at =
            self.scaled_full_at.min(times((now + self.clock_tick).0, self.rate).saturating_add(self.scaled_capacity));
        self
    }

    /// Maximum that the server may have counted at `now`, fractions rounded up, without requests in transit.
    pub(super) fn used(&self, now: Nanos) -> u64 {
        let used = self.scaled_full_at.saturating_sub(times(now.0, self.rate)).div_ceil(u128::from(self.per.0.max(1)));
        u64::try_from(used).unwrap_or(u64::MAX)
    }

    /// Earliest time to send this amount.
    pub(super) fn earliest(&self, amount: u64, ahead: &InTransit<'_>) -> Nanos {
        let (mut scaled_full, mut since) = (self.scaled_full_at, Nanos::ZERO);
        // Requests in transit may arrive at any moment, so they need their tokens together with the new request.
        let mut together = ahead.total().saturating_add(amount);
        let mut ahead = ahead.iter().peekable();
        loop {
            if let Some(spare) = self.scaled_capacity.checked_sub(times(together, self.per.0)) {
                let at = instant(scaled_full.saturating_sub(spare), self.rate).max(since);
                if ahead.peek().is_none_or(|(by, _)| at < *by + self.clock_tick) {
                    return at;
                }
            }
            match ahead.next() {
                Some((by, amount)) if by != Nanos::NEVER => {
                    scaled_full = self.full_after(scaled_full, by, amount);
                    together -= amount;
                    since = by + self.clock_tick;
                }
                _ => return Nanos::NEVER,
            }
        }
    }
}

fn instant(scaled: u128, rate: u64) -> Nanos {
    u64::try_from(scaled.div_ceil(u128::from(rate))).map_or(Nanos::NEVER, Nanos)
}

fn times(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}
