//! Pauses one after the other, by dice.

use super::world::{StallModel, StallTarget};
use crate::decide::Nanos;
use crate::decide::dice::Dice;

#[derive(Clone, Debug)]
pub(super) struct StallSequence {
    stall: StallModel,
    dice: Dice,
    next_start: Nanos,
    next_end: Nanos,
}

impl StallSequence {
    pub(super) fn new(stall: &StallModel, seed: u64, at: usize) -> Self {
        let dice = Dice::new(seed, 0x57a1 + at as u64);
        let mut stalls = Self { stall: *stall, dice, next_start: stall.from, next_end: stall.from };
        let _ = stalls.next_stall();
        stalls
    }

    pub(super) fn target(&self) -> StallTarget {
        self.stall.target
    }

    /// When the next one begins.
    pub(super) fn next_start(&self) -> Nanos {
        self.next_start
    }

    /// The next one, with its end; then it is the one after it that is next.
    pub(super) fn next_stall(&mut self) -> (Nanos, Nanos) {
        let taken = (self.next_start, self.next_end);
        let times = if self.stall.regular { 1.0 } else { self.dice.exponential() };
        let (least, most) = self.stall.length;
        let length = least + Nanos(((most - least).0 as f64 * self.dice.unit()) as u64);
        // One at a time.
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
    fn stalls_come_as_often_as_they_should_and_never_two_at_once() {
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
