//! Pauses one after the other, by dice.

use super::world::{Stall, Whose};
use crate::decide::Nanos;
use crate::decide::dice::Dice;

#[derive(Clone, Debug)]
pub(super) struct Stalls {
    stall: Stall,
    dice: Dice,
    from: Nanos,
    to: Nanos,
}

impl Stalls {
    pub(super) fn new(stall: &Stall, seed: u64, at: usize) -> Self {
        let dice = Dice::new(seed, 0x57a1 + at as u64);
        let mut stalls = Self { stall: *stall, dice, from: stall.from, to: stall.from };
        let _ = stalls.take();
        stalls
    }

    pub(super) fn whose(&self) -> Whose {
        self.stall.whose
    }

    /// When the next one begins.
    pub(super) fn from(&self) -> Nanos {
        self.from
    }

    /// The next one, with its end; then it is the one after it that is next.
    pub(super) fn take(&mut self) -> (Nanos, Nanos) {
        let taken = (self.from, self.to);
        let times = if self.stall.regular { 1.0 } else { self.dice.exponential() };
        let (least, most) = self.stall.length;
        let length = least + Nanos(((most - least).0 as f64 * self.dice.unit()) as u64);
        // One at a time.
        self.from = (self.from + Nanos((self.stall.every.0 as f64 * times) as u64)).max(self.to);
        self.to = self.from + length;
        if self.to > self.stall.to {
            (self.from, self.to) = (Nanos::NEVER, Nanos::NEVER);
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
        let mut stalls = Stalls::new(&Stall { whose: Whose::Gates, every, regular: false, length, from, to }, 1, 0);
        let (mut last, mut sum) = (Nanos::ZERO, Nanos::ZERO);
        for _ in 0..1000 {
            let (from, to) = stalls.take();
            assert!(from >= last && to - from >= length.0 && to - from <= length.1);
            (last, sum) = (to, sum + (to - from));
        }
        let (per_s, mean_ms) = (1000.0 / last.as_secs_f64(), sum.as_millis_f64() / 1000.0);
        assert!((4.5..5.5).contains(&per_s) && (26.0..29.0).contains(&mean_ms), "{per_s} {mean_ms}");
    }
}
