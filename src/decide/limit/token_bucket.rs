//! A bucket of tokens that come back evenly.

use super::Nanos;

/// The token bucket, in the form of the generic cell rate algorithm (ITU-T I.371): instead of tokens it keeps the
/// instant at which the bucket would be full again, and so never rounds.
///
/// The bucket holds the limit, and a whole limit comes back in `per`; a token therefore in per / limit, which is no
/// whole number of nanoseconds. Times are kept multiplied by the limit, in 128 bits, where a token takes exactly `per`.
#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    limit: u64,
    per: Nanos,
    /// When the bucket is full again, times the limit.
    full: u128,
}

impl TokenBucket {
    pub(super) fn new(limit: u64, per: Nanos) -> Self {
        Self { limit, per, full: 0 }
    }

    pub(super) fn used(&self, now: Nanos) -> u64 {
        self.full.saturating_sub(self.scaled(now)).div_ceil(u128::from(self.per.0)) as u64
    }

    pub(super) fn room(&self, weight: u64) -> Nanos {
        let ahead = times(self.limit.saturating_sub(weight), self.per.0);
        let at = self.full.saturating_sub(ahead).div_ceil(u128::from(self.limit));
        Nanos(u64::try_from(at).unwrap_or(u64::MAX))
    }

    pub(super) fn take(&mut self, now: Nanos, weight: u64) {
        self.full = self.full.max(self.scaled(now)).saturating_add(times(weight, self.per.0));
    }

    fn scaled(&self, now: Nanos) -> u128 {
        times(now.0, self.limit)
    }
}

fn times(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}
