//! A bucket of tokens that refill evenly.

use super::Nanos;
use crate::fraction::Fraction;

/// Capacity and refill of a bucket: `limit` tokens per `per`; at least 1 each.
///
/// The generic cell rate algorithm (ITU-T I.371): in place of tokens the state is the instant at which the bucket would
/// be full again, so nothing is rounded. A token takes per / limit, which is not a whole number of nanoseconds; so the
/// instant is stored times the limit, in 128 bits, where a token takes exactly `per`. 0 is a full bucket.
#[derive(Clone, Copy, Debug)]
pub struct Refill {
    /// Tokens per `per`.
    pub limit: u64,
    /// Time in which `limit` tokens are added.
    pub per: Nanos,
    /// Maximum number of tokens.
    pub capacity: u64,
}

impl Refill {
    /// Tokens that a bucket lacks, rounded up.
    pub fn used(&self, full: u128, now: Nanos) -> u64 {
        full.saturating_sub(self.scaled(now)).div_ceil(u128::from(self.per.0)) as u64
    }

    /// The first instant at which this weight, at most the capacity, is available.
    pub fn available_at(&self, full: u128, weight: u64) -> Nanos {
        let ahead = times(self.capacity.saturating_sub(weight), self.per.0);
        let at = full.saturating_sub(ahead).div_ceil(u128::from(self.limit));
        Nanos(u64::try_from(at).unwrap_or(u64::MAX))
    }

    /// The state after this weight was taken.
    pub fn take(&self, full: u128, now: Nanos, weight: u64) -> u128 {
        full.max(self.scaled(now)).saturating_add(times(weight, self.per.0))
    }

    /// Bucket for a fraction of this limit: that fraction of the refill and of the capacity, at least one token if it
    /// is not zero. The same state means the same fullness in both.
    pub fn fraction(&self, fraction: Fraction) -> Self {
        let min = u64::from(fraction > Fraction::NONE);
        let holds = fraction.of_whole(self.capacity).max(min);
        Self { limit: self.limit, per: Nanos(fraction.whole_of(self.per.0)), capacity: holds }
    }

    /// State of a bucket that becomes another fraction of the same limit and keeps its tokens, as far as they fit, in
    /// place of its fullness.
    pub fn convert(&self, to: &Self, full: u128, now: Nanos) -> u128 {
        // In 65,536ths of a token, rounded down.
        let per = u128::from(self.per.0.max(1));
        let there = times(self.capacity, self.per.0).saturating_sub(full.saturating_sub(self.scaled(now)));
        let tokens = (there / per).saturating_mul(1 << Fraction::BITS) + (there % per) * (1 << Fraction::BITS) / per;
        let lacks = (u128::from(to.capacity) << Fraction::BITS).saturating_sub(tokens);
        to.scaled(now).saturating_add(lacks.saturating_mul(u128::from(to.per.0)).div_ceil(1 << Fraction::BITS))
    }

    /// State of an empty bucket.
    pub fn empty_at(&self, now: Nanos) -> u128 {
        self.scaled(now).saturating_add(times(self.capacity, self.per.0))
    }

    fn scaled(&self, now: Nanos) -> u128 {
        times(now.0, self.limit)
    }
}

/// The token bucket: its capacity is the limit, and it refills the limit per `per`.
#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    refill: Refill,
    full_at: u128,
}

impl TokenBucket {
    pub(super) fn new(limit: u64, per: Nanos) -> Self {
        Self { refill: Refill { limit, per, capacity: limit }, full_at: 0 }
    }

    pub(super) fn used(&self, now: Nanos) -> u64 {
        self.refill.used(self.full_at, now)
    }

    pub(super) fn available_at(&self, weight: u64) -> Nanos {
        self.refill.available_at(self.full_at, weight)
    }

    pub(super) fn take(&mut self, now: Nanos, weight: u64) {
        self.full_at = self.refill.take(self.full_at, now, weight);
    }
}

fn times(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}
