//! Stalls in sequence, by seeded random numbers.

use super::world::{StallModel, StallTarget};
use weir_base::Nanos;
use weir_base::rng::SeededRng;

/// A stall of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostStall {
    pub(super) from: Nanos,
    pub(super) to: Nanos,
}

/// Sequence of the stalls of a model.
#[derive(Clone, Debug)]
pub(super) struct StallSequence {
    stall: StallModel,
    rng: SeededRng,
    next: HostStall,
}

impl StallSequence {
    pub(super) fn new(stall: &StallModel, seed: u64, at: usize) -> Self {
        let rng = SeededRng::new(seed, 0x57a1 + at as u64);
        let mut stalls = Self { stall: *stall, rng, next: HostStall { from: stall.from, to: stall.from } };
        let _ = stalls.next_stall();
        stalls
    }

    pub(super) fn target(&self) -> StallTarget {
        self.stall.target
    }

    /// Start of the next stall.
    pub(super) fn next_start(&self) -> Nanos {
        self.next.from
    }

    /// Takes the next stall.
    pub(super) fn next_stall(&mut self) -> HostStall {
        let taken = self.next;
        let times = if self.stall.regular { 1.0 } else { self.rng.exponential() };
        let length = self.stall.length.at(self.rng.unit());
        // Stalls do not overlap.
        let from = (taken.from + Nanos((self.stall.period.0 as f64 * times) as u64)).max(taken.to);
        let next = HostStall { from, to: from + length };
        self.next = if next.to > self.stall.to { HostStall { from: Nanos::NEVER, to: Nanos::NEVER } } else { next };
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::TimeRange;

    #[test]
    fn stalls_have_the_configured_rate_and_length_and_do_not_overlap() {
        let every = Nanos::from_millis(200);
        let length = TimeRange { shortest: Nanos::from_millis(5), longest: Nanos::from_millis(50) };
        let (from, to) = (Nanos::ZERO, Nanos::NEVER);
        let mut stalls = StallSequence::new(
            &StallModel { target: StallTarget::Gates, period: every, regular: false, length, from, to },
            1,
            0,
        );
        let (mut last, mut sum) = (Nanos::ZERO, Nanos::ZERO);
        for _ in 0..1000 {
            let HostStall { from, to } = stalls.next_stall();
            assert!(from >= last && (length.shortest..=length.longest).contains(&(to - from)));
            (last, sum) = (to, sum + (to - from));
        }
        let (per_s, mean_ms) = (1000.0 / last.as_secs_f64(), sum.as_millis_f64() / 1000.0);
        assert!((4.5..5.5).contains(&per_s) && (26.0..29.0).contains(&mean_ms), "{per_s} {mean_ms}");
    }
}
