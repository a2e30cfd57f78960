//! Backoff with jitter: the delay before each retry of a call.
//!
//! Calls that failed together must not be retried together. Each delay is drawn between the minimum and three times the
//! one before ("decorrelated jitter", see [`Backoff`]): delays grow while failures last, and no two calls grow in step.

use weir_base::nanos::Nanos;
use weir_base::rng::SeededRng;

/// Exponential backoff with jitter: each delay is uniform between `min` and three times the one before, at most `max`
/// ("decorrelated jitter": M. Brooker, Exponential Backoff And Jitter, AWS Architecture Blog, 2015).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Shortest delay.
    pub min: Nanos,
    /// Longest delay.
    pub max: Nanos,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { min: Nanos::from_millis(25), max: Nanos::from_secs(1) }
    }
}

/// Delays before the retries of one call.
#[derive(Clone, Copy, Debug)]
pub struct BackoffDelays {
    last: Nanos,
    rng: SeededRng,
}

impl BackoffDelays {
    /// The state before the first retry; `rng` is a stream of this call alone.
    pub fn new(backoff: Backoff, rng: SeededRng) -> Self {
        Self { last: backoff.min, rng }
    }

    /// Next delay: uniform from the minimum to three times the last one, at most the maximum.
    pub fn next_delay(&mut self, backoff: Backoff) -> Nanos {
        let Backoff { min, max } = backoff;
        let span = Nanos(self.last.0.saturating_mul(3)) - min;
        let jitter = Nanos((span.0 as f64 * self.rng.unit()) as u64);
        self.last = (min + jitter).min(max);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn waits_grow_and_are_spread_over_their_range() {
        let backoff = Backoff { min: Nanos::from_millis(25), max: Nanos::from_secs(1) };
        let firsts: Vec<f64> = (0..10_000)
            .map(|call| BackoffDelays::new(backoff, SeededRng::new(call, 5)).next_delay(backoff).as_millis_f64())
            .collect();
        // Uniform between 25 and 75 ms.
        let mean = firsts.iter().sum::<f64>() / 1e4;
        assert!((mean - 50.0).abs() < 0.5, "{mean}");
        assert!(firsts.iter().any(|ms| *ms < 26.0) && firsts.iter().any(|ms| *ms > 74.0));
        let tenth = |call| {
            let mut waits = BackoffDelays::new(backoff, SeededRng::new(call, 5));
            (0..10).map(|_| waits.next_delay(backoff)).last().unwrap_or_default().as_millis_f64()
        };
        let mean = (0..1000).map(tenth).sum::<f64>() / 1e3;
        assert!(mean > 300.0, "{mean}");
    }

    proptest! {
        #[test]
        fn a_wait_is_between_the_shortest_and_three_times_the_last(
            first in 0_u64..1 << 62, more in 0_u64..1 << 62, seed: u64
        ) {
            let backoff = Backoff { min: Nanos(first), max: Nanos(first + more) };
            let mut waits = BackoffDelays::new(backoff, SeededRng::new(seed, 1));
            let mut last = backoff.min;
            for _ in 0..20 {
                let wait = waits.next_delay(backoff);
                // A draw is rounded as a float, so 3 x last may be missed by the last digits of a huge one.
                let most = (last.0 as f64 * 3.0 * (1.0 + 1e-12)).ceil() as u64;
                prop_assert!(wait >= backoff.min && wait <= backoff.max && wait.0 <= most, "{wait} after {last}");
                last = wait;
            }
        }

        #[test]
        fn a_longest_wait_below_the_shortest_is_heeded(first: u64, most: u64, seed: u64) {
            let backoff = Backoff { min: Nanos(first), max: Nanos(most) };
            prop_assert!(BackoffDelays::new(backoff, SeededRng::new(seed, 1)).next_delay(backoff).0 <= most);
        }
    }
}
