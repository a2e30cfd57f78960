//! Counts of the events within a sliding window, in fixed memory.
//!
//! Exact counts would need the time of every event in the window. Here 64 intervals stand for these times. The oldest
//! is dropped once it has fully expired, so that counts reach back by the window at least, and by 1/63 of it more at
//! most.
//! A caller that must not count expired events subtracts the [partly expired](SlidingCount::partly_expired) interval.
//!
//! A count costs a comparison and two additions; memory is 512 bytes per kind of event.

use crate::Nanos;

const INTERVALS: usize = 64;

/// Counts of several kinds of events within a window's length.
///
/// A time before the latest counts as the latest.
#[derive(Clone, Debug)]
pub struct SlidingCount<const KINDS: usize> {
    window: u64,
    /// Length of an interval: 63 intervals are at least as long as the window.
    length: u64,
    /// Ring: interval k is at k % 64.
    ring: [[u64; KINDS]; INTERVALS],
    /// Numbers of the oldest interval that has not fully expired, and of the one that contains the latest time.
    oldest: u64,
    current: u64,
    latest: u64,
    /// Time at which either of them changes.
    next_change: u64,
    /// Sums over the ring.
    sums: [u64; KINDS],
}

impl<const KINDS: usize> SlidingCount<KINDS> {
    /// No events yet.
    pub fn new(window: Nanos) -> Self {
        let window = window.0.max(1);
        let length = window.div_ceil(INTERVALS as u64 - 1);
        let (ring, sums) = ([[0; KINDS]; INTERVALS], [0; KINDS]);
        Self { window, length, ring, oldest: 0, current: 0, latest: 0, next_change: length, sums }
    }

    /// Counts an event of this kind at `now`.
    pub fn count(&mut self, now: Nanos, kind: usize) {
        self.advance(now);
        self.add(self.current, kind);
    }

    /// Counts an event of the time `at`, which is not later than `now`, unless it has expired.
    pub fn count_at(&mut self, now: Nanos, at: Nanos, kind: usize) {
        self.advance(now);
        let number = at.0 / self.length;
        if number >= self.oldest {
            self.add(number.min(self.current), kind);
        }
    }

    /// Counts per kind, including the partly expired interval.
    pub fn totals(&self) -> [u64; KINDS] {
        self.sums
    }

    /// Counts per kind in the interval that contains the start of the window; zeros without one.
    pub fn partly_expired(&self) -> [u64; KINDS] {
        // The window excludes its start: an event exactly one window ago has expired.
        let is_partly_expired = self.oldest.saturating_mul(self.length).saturating_add(self.window) <= self.latest;
        if is_partly_expired { self.ring[slot(self.oldest)] } else { [0; KINDS] }
    }

    /// Drops the fully expired intervals.
    pub fn advance(&mut self, now: Nanos) {
        self.latest = self.latest.max(now.0);
        if self.latest < self.next_change {
            return;
        }
        let current = self.latest / self.length;
        // The first interval that ends after the start of the window.
        let oldest = self.latest.checked_sub(self.window).map_or(0, |edge| (edge + 1) / self.length);
        for expired in self.oldest..oldest.min(self.current + 1) {
            let counts = std::mem::replace(&mut self.ring[slot(expired)], [0; KINDS]);
            for (sum, count) in self.sums.iter_mut().zip(counts) {
                *sum -= count;
            }
        }
        (self.oldest, self.current) = (oldest, current);
        let next = |number: u64| (number + 1).saturating_mul(self.length);
        self.next_change = next(current).min(next(oldest).saturating_add(self.window - 1));
    }

    /// Clears all counts, but not the time.
    pub fn clear(&mut self) {
        (self.ring, self.sums) = ([[0; KINDS]; INTERVALS], [0; KINDS]);
    }

    fn add(&mut self, number: u64, kind: usize) {
        self.ring[slot(number)][kind] += 1;
        self.sums[kind] += 1;
    }
}

fn slot(number: u64) -> usize {
    (number % INTERVALS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn what_is_counted_reaches_back_by_the_window_and_a_stretch_more_at_most(
            window in prop_oneof![1_u64..200, 1_u64..1_000_000_000],
            steps in prop::collection::vec((0_u8..8, 0_u8..3, 0_u64..4, any::<bool>()), 1..150),
        ) {
            let mut stretches = SlidingCount::<2>::new(Nanos(window));
            let (mut at, mut now, length) = (Vec::new(), 0_u64, window.div_ceil(63));
            for (jump, times, back, kind) in steps {
                now += match jump {
                    0..4 => 0,
                    4 => 1,
                    5 => window / 70,
                    6 => window / 3,
                    _ => window.saturating_mul(u64::from(times)) + 1,
                };
                // What is told late was some time ago, or longer ago than the window.
                let then = now.saturating_sub(back * window / 2);
                at.push((then, usize::from(kind)));
                if back == 0 {
                    stretches.count(Nanos(now), usize::from(kind));
                } else {
                    stretches.count_at(Nanos(now), Nanos(then), usize::from(kind));
                }
                let within = |span: u64, kind: usize| {
                    at.iter().filter(|(at, of)| *of == kind && (now < span || *at > now - span)).count() as u64
                };
                let (all, partly) = (stretches.totals(), stretches.partly_expired());
                for kind in 0..2 {
                    prop_assert!(all[kind] >= within(window, kind));
                    prop_assert!(all[kind] <= within(window + length, kind));
                    prop_assert!(all[kind] - partly[kind] <= within(window, kind));
                }
            }
        }
    }
}
