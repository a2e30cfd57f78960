//! Stalls in sequence, by seeded random numbers.

use super::world::{StallModel, StallTarget};
use weir_base::Nanos;
use weir_base::rng::SeededRng;

/// Sequence of the stalls of a model.
#[derive(Clone, Debug)]
pub(super) struct StallSequence {
    stall: StallModel,
    rng: SeededRng,
    next_start: Nanos,
    next_end: Nanos,
}

impl StallSequence {
    pub(super) fn new(stall: &StallModel, seed: u64, at: usize) -> Self {
        let rng = SeededRng::new(seed, 0x57a1 + at as u64);
        let mut stalls = Self { stall: *stall, rng, next_start: stall.from, next_end: stall.from };
        let _ = stalls.next_stall();
        stalls
    }

    pub(super) fn target(&self) -> StallTarget {
        self.stall.target
    }

    /// Start of the next stall.
    pub(super) fn next_start(&self) -> Nanos {
        self.next_start
    }

    /// Takes the next stall: its start and end.
    pub(super) fn next_stall(&mut self) -> (Nanos, Nanos) {
        let taken = (self.next_start, self.next_end);
        let times = if self.stall.regular { 1.0 } else { self.rng.exponential() };
        let (shortest, longest) = self.stall.length;
        let length = shortest + Nanos(((longest - shortest).0 as f64 * self.rng.unit()) as u64);
        // Stalls do not overlap.
        self.next_start = (self.next_start + Nanos((self.stall.period.0 as f64 * times) as u64)).max(self.next_end);
        self.next_end = self.next_start + length;
        if self.next_end > self.stall.to {
            (self.next_start, self.next_end) = (Nanos::NEVER, Nanos::NEVER);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_have_the_configured_rate_and_length_and_do_not_overlap() {
        let (every, length) = (Nanos::from_millis(200), (Nanos::from_millis(5), Nanos::from_millis(50)));
        let (from, to) = (Nanos::ZERO, Nanos::NEVER);
        let mut stalls = StallSequence::new(
            &StallModel { target: StallTarget::Gates, period: every, regular: false, length, from, to },
            1,
            0,
        );
        let (mut last, mut sum) = (Nanos::ZERO, Nanos::ZERO);
        for _ in 0..1000 {
            let (from, to) = stalls.next_stall();
            assert!(from >= last && to - from >= length.0 && to - from <= length.1);
            (last, sum) = (to, sum + (to - from));
        }
        let (per_s, mean_ms) = (1000.0 / last.as_secs_f64(), sum.as_millis_f64() / 1000.0);
        assert!((4.5..5.5).contains(&per_s) && (26.0..29.0).contains(&mean_ms), "{per_s} {mean_ms}");
    }
}
