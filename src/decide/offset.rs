//! How far another machine's clock is from ours, from questions and answers (Cristian: "Probabilistic clock
//! synchronization", Distributed Computing 3, 1989).
//!
//! We ask at `asked` by our clock, the other reads its own clock as `theirs`, and the answer is here at `heard`. Somewhere in
//! between it was `theirs`, so the middle is wrong by half the way at most. Of several answers the quickest says most.

use super::nanos::Nanos;

/// What the questions so far say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// Of the quickest answer: the other clock's time less ours in ns, and the most by which that may be wrong.
    best: Option<(i128, Nanos)>,
    samples: u32,
}

impl ClockOffset {
    /// Takes an answer in.
    pub fn add(&mut self, asked: Nanos, theirs: Nanos, heard: Nanos) {
        let way = heard - asked;
        let error = Nanos(way.0.div_ceil(2));
        self.samples = self.samples.saturating_add(1);
        if self.best.is_none_or(|(_, least)| error < least) {
            let middle = i128::from(asked.0) + i128::from(way.0 / 2);
            self.best = Some((i128::from(theirs.0) - middle, error));
        }
    }

    /// How many answers there were.
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// What the other clock shows when ours shows `ours`, by the best that is known; the same, if nothing is.
    pub fn to_remote(&self, ours: Nanos) -> Nanos {
        let theirs = i128::from(ours.0) + self.best.map_or(0, |(offset, _)| offset);
        Nanos(u64::try_from(theirs.max(0)).unwrap_or(u64::MAX))
    }

    /// The most by which that may be wrong; for ever, if nothing is known.
    pub fn error(&self) -> Nanos {
        self.best.map_or(Nanos::NEVER, |(_, error)| error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the delays are there and back: the truth is within the error.
        #[test]
        fn the_true_offset_is_within_the_error(
            ours in 0..1_u64 << 60, theirs in 0..1_u64 << 60,
            ways in prop::collection::vec((0..50_000_000_u64, 0..50_000_000_u64), 1..20)
        ) {
            let mut offset = ClockOffset::default();
            let mut now = 0;
            for (there, back) in &ways {
                offset.add(Nanos(ours + now), Nanos(theirs + now + there), Nanos(ours + now + there + back));
                now += there + back + 1_000;
            }
            let shown = offset.to_remote(Nanos(ours + now));
            prop_assert!(shown.0.abs_diff(theirs + now) <= offset.error().0);
            let quickest = ways.iter().map(|(there, back)| there + back).min().expect("one at least");
            prop_assert_eq!(offset.error(), Nanos(quickest.div_ceil(2)));
        }

        #[test]
        fn absurd_clocks_do_no_harm(asked: u64, theirs: u64, heard: u64, at: u64) {
            let mut offset = ClockOffset::default();
            offset.add(Nanos(asked), Nanos(theirs), Nanos(heard));
            let _ = (offset.to_remote(Nanos(at)), offset.error());
        }
    }

    #[test]
    fn without_an_answer_nothing_is_known() {
        let offset = ClockOffset::default();
        assert_eq!((offset.to_remote(Nanos(5)), offset.error(), offset.samples()), (Nanos(5), Nanos::NEVER, 0));
    }
}
