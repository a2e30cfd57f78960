//! Nonces: ascending numbers, for services that require each request's nonce to exceed the last one.
//!
//! A nonce is the time in ms since 1970, as usual with such services, but at least one more than the one before,
//! whatever the rate and wherever the clock is set. A high-water mark is saved before a nonce above it is used; after a
//! crash nonces begin above the mark.

use weir_base::Nanos;

/// Nonces of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonces {
    last: u64,
    high_water: u64,
}

/// Distance of a new high-water mark: at one nonce per ms it is saved once per second.
const HIGH_WATER_STEP: u64 = 1000;

impl Nonces {
    /// Nonces above this one: 0, or the saved high-water mark.
    pub fn above(high_water: u64) -> Self {
        Self { last: high_water, high_water }
    }

    /// Next nonce, at this time since 1970.
    pub fn next(&mut self, since_1970: Nanos) -> u64 {
        self.last = self.last.saturating_add(1).max(since_1970.as_millis());
        self.last
    }

    /// Highest nonce so far.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// New high-water mark, if the last nonce is above the old one; to be saved before that nonce is sent.
    pub fn raise_high_water(&mut self) -> Option<u64> {
        (self.last > self.high_water).then(|| {
            self.high_water = self.last.saturating_add(HIGH_WATER_STEP);
            self.high_water
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_nonce_is_the_time_as_long_as_that_grows() {
        let mut nonces = Nonces::above(0);
        let all = [5, 7, 7, 7, 20, 3].map(|ms| nonces.next(Nanos::from_millis(ms)));
        assert_eq!(all, [5, 7, 8, 9, 20, 21]);
    }

    proptest! {
        #[test]
        fn nonces_grow_over_clock_steps_and_crashes(
            steps in prop::collection::vec((any::<u32>(), prop::bool::weighted(0.1)), 1..200)
        ) {
            let mut nonces = Nonces::above(0);
            let (mut kept, mut last) = (0, 0);
            for (time, crash) in &steps {
                if *crash {
                    nonces = Nonces::above(kept);
                }
                let next = nonces.next(Nanos(u64::from(*time) << 20));
                prop_assert!(next > last, "{next} after {last}");
                last = next;
                if let Some(mark) = nonces.raise_high_water() {
                    kept = mark;
                }
                prop_assert!(kept >= next);
            }
        }

        #[test]
        fn a_busy_key_keeps_a_mark_a_second(per_ms in 1_u64..3) {
            let mut nonces = Nonces::above(0);
            let begin = 1_700_000_000_000;
            let times = (0..10_000).flat_map(|ms| (0..per_ms).map(move |_| Nanos::from_millis(begin + ms)));
            let marks = times.filter(|at| { nonces.next(*at); nonces.raise_high_water().is_some() }).count();
            prop_assert!(marks as u64 <= 10 * per_ms);
        }
    }
}
