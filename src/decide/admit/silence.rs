//! Stretches in which nothing leaves, though much should have.
//!
//! When the host of an upstream stands still for some tens of milliseconds, all that is there ends later by as much, and
//! all that comes meanwhile is there at once. It looks like a service that takes longer beside many, and like a line
//! that does not move; but fewer calls would have waited as long. So time in which nobody leaves counts neither
//! against those that wait nor as the time of those that are in, within bounds: an upstream that stands still for
//! long, or often, has no capacity then.

use std::collections::VecDeque;

use super::usual::ServiceRate;
use crate::decide::Nanos;

/// It is a silence after this time ...
const MIN_STALL: Nanos = Nanos::from_millis(5);
/// ... in which so many were expected to leave: by chance that happens once in e^10.
const MIN_EXPECTED_DEPARTURES: f64 = 10.0;
/// So much of it is forgiven at once, ...
const MAX_FORGIVEN: Nanos = Nanos::from_millis(150);
/// ... and this share of all time. A stall of 20 ms five times a second is a tenth.
const FORGIVEN_FRACTION: f64 = 0.3;
/// So many are remembered, for those that were in.
const MAX_STALLS: usize = 16;

/// When nobody left. All times are in own time ([`super::Pulse`]).
#[derive(Clone, Debug)]
pub(super) struct StallAllowance {
    /// Those that had left, when that was seen to grow last.
    departures: u64,
    last_departure_at: Nanos,
    /// How many were in then: they are those that could leave.
    in_flight: u32,
    /// What may still be forgiven.
    credit: f64,
    forgiven: Nanos,
    stalls: VecDeque<(Nanos, Nanos)>,
}

impl StallAllowance {
    pub(super) fn new(own: Nanos) -> Self {
        Self {
            departures: 0,
            last_departure_at: own,
            in_flight: 0,
            credit: MAX_FORGIVEN.0 as f64,
            forgiven: Nanos::ZERO,
            stalls: VecDeque::new(),
        }
    }

    /// So many have left, ever, and so many are in.
    pub(super) fn observe(&mut self, own: Nanos, left: u64, in_flight: u32, usual: &ServiceRate) {
        if left == self.departures && in_flight > 0 {
            return;
        }
        let silent = self.current_stall(own, usual);
        if left != self.departures && silent > Nanos::ZERO {
            self.forgiven += silent;
            self.credit -= silent.0 as f64;
            self.stalls.push_back((own - silent, own));
            if self.stalls.len() > MAX_STALLS {
                self.stalls.pop_front();
            }
        }
        self.credit =
            (self.credit + FORGIVEN_FRACTION * (own - self.last_departure_at).0 as f64).min(MAX_FORGIVEN.0 as f64);
        (self.departures, self.last_departure_at, self.in_flight) = (left, own, in_flight);
    }

    /// How much of the silence that lasts now is forgiven.
    pub(super) fn current_stall(&self, own: Nanos, usual: &ServiceRate) -> Nanos {
        let silent = own - self.last_departure_at;
        // Where fewer come than did, fewer leave: no more than those that were in can.
        let could = f64::from(self.in_flight) / usual.mean_service_time().as_secs_f64();
        let expected = silent.as_secs_f64() * usual.responses_per_s().min(could);
        if silent < MIN_STALL || expected < MIN_EXPECTED_DEPARTURES {
            Nanos::ZERO
        } else {
            Nanos((silent.0 as f64).min(self.credit) as u64)
        }
    }

    /// How much was forgiven, ever.
    pub(super) fn forgiven(&self) -> Nanos {
        self.forgiven
    }

    /// How much of it since then.
    pub(super) fn forgiven_since(&self, began: Nanos) -> Nanos {
        let of = |(from, to): &(Nanos, Nanos)| *to - began.max(*from);
        self.stalls.iter().fold(Nanos::ZERO, |sum, silence| sum + of(silence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::admit::{ServiceOutcome, Slots};

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    /// 1000 leave in a second, each after 10 ms.
    fn service_rate() -> ServiceRate {
        let (mut usual, room) = (ServiceRate::new(ms(0)), Slots::new(100));
        for at in 0..1000 {
            assert!(room.try_acquire(0) && !room.release(ServiceOutcome::Responded));
            usual.record(ms(at), ms(10));
            usual.update(ms(at + 1), &room);
        }
        usual
    }

    #[test]
    fn a_stall_is_forgiven_and_an_outage_is_not() {
        let (mut silence, usual) = (StallAllowance::new(ms(0)), service_rate());
        silence.observe(ms(1000), 1000, 10, &usual);
        assert_eq!(silence.current_stall(ms(1004), &usual), ms(0));
        assert_eq!(silence.current_stall(ms(1040), &usual), ms(40));
        silence.observe(ms(1040), 1001, 10, &usual);
        assert_eq!(
            (silence.forgiven(), silence.forgiven_since(ms(900)), silence.forgiven_since(ms(1030))),
            (ms(40), ms(40), ms(10))
        );
        silence.observe(ms(3000), 1002, 10, &usual);
        assert_eq!(silence.forgiven_since(ms(1040)), ms(122), "what is left of 150 ms after 40, and 0.3 of these");
    }

    #[test]
    fn fewer_calls_than_before_and_none_are_no_silence() {
        let (mut silence, usual) = (StallAllowance::new(ms(0)), service_rate());
        silence.observe(ms(1000), 1000, 1, &usual);
        assert_eq!(silence.current_stall(ms(1040), &usual), ms(0), "one that takes 10 ms is not ten");
        silence.observe(ms(1900), 1000, 0, &usual);
        assert_eq!((silence.current_stall(ms(1904), &usual), silence.forgiven()), (ms(0), ms(0)));
    }
}
