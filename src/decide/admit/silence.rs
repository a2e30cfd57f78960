//! Stretches in which nothing leaves, though much should have.
//!
//! When the host of an upstream stands still for some tens of milliseconds, all that is there ends later by as much, and
//! all that comes meanwhile is there at once. It looks like a service that takes longer beside many, and like a line
//! that does not move; but fewer calls would have waited as long. So time in which nobody leaves counts neither
//! against those that wait nor as the time of those that are in, within bounds: an upstream that stands still for
//! long, or often, has no capacity then.

use std::collections::VecDeque;

use super::usual::Usual;
use crate::decide::Nanos;

/// It is a silence after this time ...
const LEAST: Nanos = Nanos::from_millis(5);
/// ... in which so many were expected to leave: by chance that happens once in e^10.
const EXPECTED: f64 = 10.0;
/// So much of it is forgiven at once, ...
const MOST: Nanos = Nanos::from_millis(150);
/// ... and this share of all time. A stall of 20 ms five times a second is a tenth.
const SHARE: f64 = 0.3;
/// So many are remembered, for those that were in.
const KEPT: usize = 16;

/// When nobody left. All times are in own time ([`super::Pulse`]).
#[derive(Clone, Debug)]
pub(super) struct Silence {
    /// Those that had left, when that was seen to grow last.
    left: u64,
    at: Nanos,
    /// How many were in then: they are those that could leave.
    in_flight: u32,
    /// What may still be forgiven.
    credit: f64,
    forgiven: Nanos,
    past: VecDeque<(Nanos, Nanos)>,
}

impl Silence {
    pub(super) fn new(own: Nanos) -> Self {
        Self { left: 0, at: own, in_flight: 0, credit: MOST.0 as f64, forgiven: Nanos::ZERO, past: VecDeque::new() }
    }

    /// So many have left, ever, and so many are in.
    pub(super) fn look(&mut self, own: Nanos, left: u64, in_flight: u32, usual: &Usual) {
        if left == self.left && in_flight > 0 {
            return;
        }
        let silent = self.lasts(own, usual);
        if left != self.left && silent > Nanos::ZERO {
            self.forgiven += silent;
            self.credit -= silent.0 as f64;
            self.past.push_back((own - silent, own));
            if self.past.len() > KEPT {
                self.past.pop_front();
            }
        }
        self.credit = (self.credit + SHARE * (own - self.at).0 as f64).min(MOST.0 as f64);
        (self.left, self.at, self.in_flight) = (left, own, in_flight);
    }

    /// How much of the silence that lasts now is forgiven.
    pub(super) fn lasts(&self, own: Nanos, usual: &Usual) -> Nanos {
        let silent = own - self.at;
        // Where fewer come than did, fewer leave: no more than those that were in can.
        let could = f64::from(self.in_flight) / usual.mean().as_secs_f64();
        let expected = silent.as_secs_f64() * usual.left_per_s().min(could);
        if silent < LEAST || expected < EXPECTED {
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
    pub(super) fn since(&self, began: Nanos) -> Nanos {
        let of = |(from, to): &(Nanos, Nanos)| *to - began.max(*from);
        self.past.iter().fold(Nanos::ZERO, |sum, silence| sum + of(silence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::admit::{End, Room};

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    /// 1000 leave in a second, each after 10 ms.
    fn usual() -> Usual {
        let (mut usual, room) = (Usual::new(ms(0)), Room::new(100));
        for at in 0..1000 {
            assert!(room.enter(0) && !room.leave(End::Answered));
            usual.took(ms(at), ms(10));
            usual.count(ms(at + 1), &room);
        }
        usual
    }

    #[test]
    fn a_stall_is_forgiven_and_an_outage_is_not() {
        let (mut silence, usual) = (Silence::new(ms(0)), usual());
        silence.look(ms(1000), 1000, 10, &usual);
        assert_eq!(silence.lasts(ms(1004), &usual), ms(0));
        assert_eq!(silence.lasts(ms(1040), &usual), ms(40));
        silence.look(ms(1040), 1001, 10, &usual);
        assert_eq!((silence.forgiven(), silence.since(ms(900)), silence.since(ms(1030))), (ms(40), ms(40), ms(10)));
        silence.look(ms(3000), 1002, 10, &usual);
        assert_eq!(silence.since(ms(1040)), ms(122), "what is left of 150 ms after 40, and 0.3 of these");
    }

    #[test]
    fn fewer_calls_than_before_and_none_are_no_silence() {
        let (mut silence, usual) = (Silence::new(ms(0)), usual());
        silence.look(ms(1000), 1000, 1, &usual);
        assert_eq!(silence.lasts(ms(1040), &usual), ms(0), "one that takes 10 ms is not ten");
        silence.look(ms(1900), 1000, 0, &usual);
        assert_eq!((silence.lasts(ms(1904), &usual), silence.forgiven()), (ms(0), ms(0)));
    }
}
