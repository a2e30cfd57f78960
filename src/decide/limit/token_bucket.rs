//! A bucket of tokens that come back evenly.

use super::super::portion::Fraction;
use super::Nanos;

/// What a bucket holds, and how fast tokens come back: `limit` of them in `per`; at least 1 each.
///
/// This is the generic cell rate algorithm (ITU-T I.371): instead of tokens a bucket keeps the instant at which it
/// would be full again, and so never rounds. A token comes back in per / limit, which is no whole number of
/// nanoseconds. So that instant is kept multiplied by the limit, in 128 bits, where a token takes exactly `per`; 0 is a
/// full bucket.
#[derive(Clone, Copy, Debug)]
pub(in crate::decide) struct Refill {
    pub(in crate::decide) limit: u64,
    pub(in crate::decide) per: Nanos,
    pub(in crate::decide) capacity: u64,
}

impl Refill {
    fn used(&self, full: u128, now: Nanos) -> u64 {
        full.saturating_sub(self.scaled(now)).div_ceil(u128::from(self.per.0)) as u64
    }

    /// The first instant at which this weight, at most what the bucket holds, is there.
    pub(in crate::decide) fn available_at(&self, full: u128, weight: u64) -> Nanos {
        let ahead = times(self.capacity.saturating_sub(weight), self.per.0);
        let at = full.saturating_sub(ahead).div_ceil(u128::from(self.limit));
        Nanos(u64::try_from(at).unwrap_or(u64::MAX))
    }

    /// When the bucket is full again after this weight was taken.
    pub(in crate::decide) fn take(&self, full: u128, now: Nanos, weight: u64) -> u128 {
        full.max(self.scaled(now)).saturating_add(times(weight, self.per.0))
    }

    /// A bucket for a part of this limit: it fills at that part of the rate, and holds that part of what this one
    /// holds, at least one token if there is a part at all. The instant that is kept means the same in both: how full
    /// they are.
    pub(in crate::decide) fn fraction(&self, portion: Fraction) -> Self {
        let least = u64::from(portion > Fraction::NONE);
        let holds = portion.of_whole(self.capacity).max(least);
        Self { limit: self.limit, per: Nanos(portion.whole_of(self.per.0)), capacity: holds }
    }

    /// What to keep of a bucket of which `full` was kept, when it becomes another part of the same limit: it has the
    /// tokens that it had, as far as it holds them, in place of being as full as it was.
    pub(in crate::decide) fn convert(&self, to: &Self, full: u128, now: Nanos) -> u128 {
        // In 65,536ths of a token, rounded down.
        let per = u128::from(self.per.0.max(1));
        let there = times(self.capacity, self.per.0).saturating_sub(full.saturating_sub(self.scaled(now)));
        let tokens = (there / per).saturating_mul(1 << Fraction::BITS) + (there % per) * (1 << Fraction::BITS) / per;
        let lacks = (u128::from(to.capacity) << Fraction::BITS).saturating_sub(tokens);
        to.scaled(now).saturating_add(lacks.saturating_mul(u128::from(to.per.0)).div_ceil(1 << Fraction::BITS))
    }

    /// What is kept of a bucket that is empty.
    pub(in crate::decide) fn empty_at(&self, now: Nanos) -> u128 {
        self.scaled(now).saturating_add(times(self.capacity, self.per.0))
    }

    fn scaled(&self, now: Nanos) -> u128 {
        times(now.0, self.limit)
    }
}

/// The token bucket: it holds the limit, and a whole limit comes back in `per`.
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
