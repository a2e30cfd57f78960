//! The offset of another machine's clock, from round trips (Cristian: "Probabilistic clock synchronization",
//! Distributed Computing 3, 1989).
//!
//! The request leaves at `asked` by the local clock, the remote clock reads `theirs`, and the reply comes at `heard`.
//! The remote read was in between, so the middle is wrong by at most half the round trip. The quickest round trip has
//! the smallest error.

use weir_base::nanos::Nanos;

/// Estimate of a remote clock's offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// Of the quickest round trip: the remote time less the local one in ns, and its maximum error.
    best: Option<(i128, Nanos)>,
    samples: u32,
}

impl ClockOffset {
    /// Adds a round trip.
    pub fn add(&mut self, sent: Nanos, theirs: Nanos, received: Nanos) {
        let way = received - sent;
        let error = Nanos(way.0.div_ceil(2));
        self.samples = self.samples.saturating_add(1);
        if self.best.is_none_or(|(_, least)| error < least) {
            let middle = i128::from(sent.0) + i128::from(way.0 / 2);
            self.best = Some((i128::from(theirs.0) - middle, error));
        }
    }

    /// Number of round trips.
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// Remote time at the local time `ours`; the same without a round trip.
    pub fn to_remote(&self, ours: Nanos) -> Nanos {
        let theirs = i128::from(ours.0) + self.best.map_or(0, |(offset, _)| offset);
        Nanos(u64::try_from(theirs.max(0)).unwrap_or(u64::MAX))
    }

    /// Maximum error of that; [`Nanos::NEVER`] without a round trip.
    pub fn error(&self) -> Nanos {
        self.best.map_or(Nanos::NEVER, |(_, error)| error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// For any delays in both directions the true offset is within the error.
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
        fn absurd_clocks_do_no_harm(sent: u64, theirs: u64, received: u64, at: u64) {
            let mut offset = ClockOffset::default();
            offset.add(Nanos(sent), Nanos(theirs), Nanos(received));
            let _ = (offset.to_remote(Nanos(at)), offset.error());
        }
    }

    #[test]
    fn without_a_round_trip_the_offset_is_unknown() {
        let offset = ClockOffset::default();
        assert_eq!((offset.to_remote(Nanos(5)), offset.error(), offset.samples()), (Nanos(5), Nanos::NEVER, 0));
    }
}
