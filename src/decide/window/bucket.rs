//! The worst that a server's bucket may be at: the count behind windows that refill evenly.

use super::Nanos;
use super::road::InTransit;

/// A bucket that gets `rate` back in `per`, fed with the latest instants by which requests had arrived.
///
/// It bounds how much arrives in *every* stretch of time by what it holds + length x `rate` / `per`, whatever the ways in
/// were like; later arrivals leave the bucket emptier, so the latest instants are the safe ones. The form is that of
/// the server's own bucket (`decide::limit`): it keeps when it would be full again, times `rate`, and never rounds.
#[derive(Clone, Debug)]
pub(super) struct WorstCaseBucket {
    /// What it holds, times `per`.
    scaled_capacity: u128,
    rate: u64,
    per: Nanos,
    /// Every arrival is taken to be so much later, for the server's clock has ticks.
    clock_tick: Nanos,
    scaled_full_at: u128,
}

impl WorstCaseBucket {
    /// As a server has it that lets through `limit` in `per`.
    pub(super) fn for_token_bucket(limit: u64, per: Nanos, clock_tick: Nanos) -> Self {
        Self { scaled_capacity: times(limit, per.0), rate: limit, per, clock_tick, scaled_full_at: 0 }
    }

    /// What it holds and what it gets back in `per` are `limit` together. As much as is sent while requests are on
    /// their way has to be in it, for it may arrive at once; that leaves (limit - 1) / (per + way in) as its rate.
    pub(super) fn for_sliding_counter(limit: u64, per: Nanos, clock_tick: Nanos, way_in: Nanos) -> Self {
        let (rate, longer) = (limit.saturating_sub(1).max(1), per + way_in + clock_tick);
        let scaled_capacity = times(limit, longer.0).saturating_sub(times(rate, per.0));
        Self { scaled_capacity, rate, per: longer, clock_tick, scaled_full_at: 0 }
    }

    pub(super) fn arrive(&mut self, by: Nanos, amount: u64) {
        self.scaled_full_at = self.full_after(self.scaled_full_at, by, amount);
    }

    /// This much, which was taken to have arrived at `from`, may have done so as late as at `to`, which nothing else has
    /// come after: either all came that much later, or it came once more.
    pub(super) fn postpone(&mut self, from: Nanos, to: Nanos, amount: u64) {
        let all_later = self.scaled_full_at.saturating_add(times((to - from).0, self.rate));
        self.scaled_full_at = all_later.min(self.full_after(self.scaled_full_at, to, amount));
    }

    fn full_after(&self, full: u128, by: Nanos, amount: u64) -> u128 {
        full.max(times((by + self.clock_tick).0, self.rate)).saturating_add(times(amount, self.per.0))
    }

    /// This much was never taken.
    pub(super) fn refund(&mut self, amount: u64) {
        self.scaled_full_at = self.scaled_full_at.saturating_sub(times(amount, self.per.0));
    }

    /// When it will be full again.
    pub(super) fn full_at(&self) -> Nanos {
        instant(self.scaled_full_at, self.rate)
    }

    pub(super) fn set_full_at(&mut self, at: Nanos) {
        self.scaled_full_at = self.scaled_full_at.max(times(at.0, self.rate));
    }

    /// It may have been empty then.
    pub(super) fn empty_at(&mut self, by: Nanos) {
        self.scaled_full_at =
            self.scaled_full_at.max(times((by + self.clock_tick).0, self.rate).saturating_add(self.scaled_capacity));
    }

    /// Less than this was in it then.
    pub(super) fn had_less_than(&mut self, by: Nanos, amount: u64) {
        let gone = self.scaled_capacity.saturating_sub(times(amount, self.per.0));
        self.scaled_full_at = self.scaled_full_at.max(times(by.0, self.rate).saturating_add(gone));
    }

    /// What is gone from another one at `now` is gone from this one.
    pub(super) fn with_usage_of(mut self, other: &Self, now: Nanos) -> Self {
        let used = other.used(now);
        if used > 0 {
            self.scaled_full_at = times(now.0, self.rate).saturating_add(times(used, self.per.0));
        }
        self
    }

    /// No more is gone from it than it holds.
    pub(super) fn at_worst_empty(mut self, now: Nanos) -> Self {
        self.scaled_full_at =
            self.scaled_full_at.min(times((now + self.clock_tick).0, self.rate).saturating_add(self.scaled_capacity));
        self
    }

    /// The most that the server may have counted at `now`, fractions rounded up, without what is on its way.
    pub(super) fn used(&self, now: Nanos) -> u64 {
        let gone = self.scaled_full_at.saturating_sub(times(now.0, self.rate)).div_ceil(u128::from(self.per.0.max(1)));
        u64::try_from(gone).unwrap_or(u64::MAX)
    }

    /// When this much more may be sent.
    pub(super) fn earliest(&self, amount: u64, ahead: &InTransit<'_>) -> Nanos {
        let (mut full, mut since) = (self.scaled_full_at, Nanos::ZERO);
        // What may still arrive at any moment has to find its tokens together with the new request.
        let mut together = ahead.total().saturating_add(amount);
        let mut ahead = ahead.iter().peekable();
        loop {
            if let Some(spare) = self.scaled_capacity.checked_sub(times(together, self.per.0)) {
                let at = instant(full.saturating_sub(spare), self.rate).max(since);
                if ahead.peek().is_none_or(|(by, _)| at < *by + self.clock_tick) {
                    return at;
                }
            }
            match ahead.next() {
                Some((by, amount)) if by != Nanos::NEVER => {
                    full = self.full_after(full, by, amount);
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
