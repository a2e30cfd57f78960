//! A window that estimates from two counts.

use super::Nanos;

/// The sliding counter: assumes that the last aligned window's requests were uniform.
///
/// ```text
///   estimate = count of this window + count of the last one x (per - time since this one began) / per
/// ```
///
/// Two numbers in place of a log; wrong if the last window's requests came in a burst. All sums are exact: in units of
/// 1/per of a request, in 128 bits.
#[derive(Clone, Debug)]
pub(super) struct SlidingCounter {
    limit: u64,
    per: Nanos,
    /// Number of this window: its times are in [index * per, (index + 1) * per).
    index: u64,
    previous: u64,
    current: u64,
}

impl SlidingCounter {
    pub(super) fn new(limit: u64, per: Nanos) -> Self {
        Self { limit, per, index: 0, previous: 0, current: 0 }
    }

    pub(super) fn used(&mut self, now: Nanos) -> u64 {
        self.roll_to(now);
        let overlap = self.per.0 - now.0 % self.per.0;
        self.current + times(self.previous, overlap).div_ceil(u128::from(self.per.0)) as u64
    }

    pub(super) fn available_at(&mut self, now: Nanos, weight: u64) -> Nanos {
        self.roll_to(now);
        // In this window the last one's count fades; from the next on, this one's.
        let begin = Nanos(self.index.saturating_mul(self.per.0));
        match self.limit.checked_sub(self.current + weight) {
            Some(left) => begin + self.faded(self.previous, left),
            None => begin + self.per + self.faded(self.current, self.limit.saturating_sub(weight)),
        }
    }

    pub(super) fn take(&mut self, now: Nanos, weight: u64) {
        self.roll_to(now);
        self.current += weight;
    }

    /// Time after the end of its window until a count has faded to `left`.
    fn faded(&self, count: u64, left: u64) -> Nanos {
        if count <= left {
            return Nanos::ZERO;
        }
        self.per - Nanos((times(left, self.per.0) / u128::from(count)) as u64)
    }

    fn roll_to(&mut self, now: Nanos) {
        let index = now.0 / self.per.0;
        if index != self.index {
            self.previous = if index == self.index + 1 { self.current } else { 0 };
            (self.index, self.current) = (index, 0);
        }
    }
}

fn times(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}
