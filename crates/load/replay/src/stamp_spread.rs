//! Coarse stamps, spread over the interval that they stand for.
//!
//! A log with stamps of a second would become a burst at each full second. Instead, of n requests with one stamp the k-th
//! gets a time in the k-th of n equal parts of the second, at random by the seed: so the order is kept, and no grid is
//! left.

use std::collections::HashMap;

use weir_base::Nanos;
use weir_base::rng::SeededRng;

const SPREAD_SALT: u64 = 0x7265_706c_6179;

/// Spread of stamps that come in order.
#[derive(Clone, Debug)]
pub(crate) struct StampSpread {
    rng: SeededRng,
    /// Number of requests that wait, by stamp.
    waiting: HashMap<i64, u64>,
    /// Stamp of the last request, how many of it there were, and the part of the interval that is over, in [0, 1).
    current: (i64, u64, f64),
}

impl StampSpread {
    pub(crate) fn new(seed: u64) -> Self {
        Self { rng: SeededRng::new(seed, SPREAD_SALT), waiting: HashMap::new(), current: (i64::MIN, 0, 0.0) }
    }

    /// Takes note of a request that will come.
    pub(crate) fn expect(&mut self, stamp_ns: i64) {
        *self.waiting.entry(stamp_ns).or_default() += 1;
    }

    /// Time of the next request, whose number among all is `number`. Stamps come in order.
    pub(crate) fn time(&mut self, stamp_ns: i64, resolution: Nanos, number: u64) -> i64 {
        if self.current.0 != stamp_ns {
            self.current = (stamp_ns, 0, 0.0);
        }
        let (_, before, over) = &mut self.current;
        let waiting =
            self.waiting.get_mut(&stamp_ns).map_or(1, |count| std::mem::replace(count, count.saturating_sub(1)));
        if waiting <= 1 {
            self.waiting.remove(&stamp_ns);
        }
        // More than the window has may have the stamp; then how many there are is known only at its end.
        let count = *before + waiting.max(1);
        *over = over.max((*before as f64 + self.rng.unit_at(number)) / count as f64);
        *before += 1;
        let offset = (*over * resolution.0 as f64) as u64;
        stamp_ns.saturating_add_unsigned(offset.min(resolution.0.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spread(seed: u64, counts: &[u64]) -> Vec<Vec<i64>> {
        let mut spread = StampSpread::new(seed);
        for (second, count) in (0..).zip(counts) {
            (0..*count).for_each(|_| spread.expect(second * 1_000_000_000));
        }
        let mut number = 0;
        let mut second_of = |second: i64, count: u64| {
            let one = |_| {
                number += 1;
                spread.time(second * 1_000_000_000, Nanos::SECOND, number)
            };
            (0..count).map(one).collect()
        };
        (0..).zip(counts).map(|(second, count)| second_of(second, *count)).collect()
    }

    proptest! {
        #[test]
        fn each_request_is_in_its_part_of_the_second(seed: u64, counts in prop::collection::vec(0..40_u64, 0..6)) {
            for (second, times) in (0..).zip(spread(seed, &counts)) {
                let n = times.len() as f64;
                for (k, time) in times.iter().enumerate() {
                    let part = (time - second * 1_000_000_000) as f64 / 1e9 * n;
                    prop_assert!(part >= k as f64 - 1e-6 && part < k as f64 + 1.0, "{} of {}: {}", k, n, part);
                }
            }
        }

        /// A stamp of which more come than were expected: in order, and within its interval.
        #[test]
        fn a_number_that_is_not_known_keeps_the_order(seed: u64, known in 1..9_u64, more in 0..30_u64) {
            let mut spread = StampSpread::new(seed);
            (0..known).for_each(|_| spread.expect(7));
            let mut times = Vec::new();
            for number in 0..known + more {
                times.push(spread.time(7, Nanos::from_millis(1), number));
                if number < more {
                    spread.expect(7);
                }
            }
            prop_assert!(times.is_sorted() && times.iter().all(|time| (7..1_000_007).contains(time)));
        }
    }

    #[test]
    fn times_are_a_function_of_the_seed() {
        assert_eq!(spread(1, &[3, 2]), spread(1, &[3, 2]));
        assert_ne!(spread(1, &[3, 2]), spread(2, &[3, 2]));
    }
}
