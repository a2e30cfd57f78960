//! Stretches in which nothing leaves, though much should have.
//!
//! When the host of an upstream stands still for some tens of milliseconds, all that is there ends later by as much, and
//! all that comes meanwhile is there at once. It looks like a service that takes longer beside many, and like a line
//! that does not move; but fewer calls would have waited as long. So time in which nobody leaves counts neither
//! against those that wait nor as the time of those that are in, within bounds: an upstream that stands still for
//! long, or often, has no capacity then.

use std::collections::VecDeque;

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
    /// What may still be forgiven.
    credit: f64,
    forgiven: Nanos,
    past: VecDeque<(Nanos, Nanos)>,
}

impl Silence {
    pub(super) fn new(own: Nanos) -> Self {
        Self { left: 0, at: own, credit: MOST.0 as f64, forgiven: Nanos::ZERO, past: VecDeque::new() }
    }

    /// So many have left, ever, and so many do per second; `busy` if there are some that could.
    pub(super) fn look(&mut self, own: Nanos, left: u64, per_s: f64, busy: bool) {
        if left == self.left && busy {
            return;
        }
        let silent = self.lasts(own, per_s);
        if left != self.left && silent > Nanos::ZERO {
            self.forgiven += silent;
            self.credit -= silent.0 as f64;
            self.past.push_back((own - silent, own));
            if self.past.len() > KEPT {
                self.past.pop_front();
            }
        }
        self.credit = (self.credit + SHARE * (own - self.at).0 as f64).min(MOST.0 as f64);
        (self.left, self.at) = (left, own);
    }

    /// How much of the silence that lasts now is forgiven.
    pub(super) fn lasts(&self, own: Nanos, per_s: f64) -> Nanos {
        let silent = own - self.at;
        let expected = silent.as_secs_f64() * per_s;
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

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn a_stall_is_forgiven_and_an_outage_is_not() {
        let mut silence = Silence::new(ms(0));
        silence.look(ms(1000), 1000, 0.0, true);
        assert_eq!(silence.lasts(ms(1004), 1000.0), ms(0));
        assert_eq!(silence.lasts(ms(1040), 1000.0), ms(40));
        assert_eq!(silence.lasts(ms(1040), 100.0), ms(0), "four are too few to be missed");
        silence.look(ms(1040), 1001, 1000.0, true);
        assert_eq!((silence.forgiven(), silence.since(ms(900)), silence.since(ms(1030))), (ms(40), ms(40), ms(10)));
        silence.look(ms(3000), 1002, 1000.0, true);
        assert_eq!(silence.since(ms(1040)), ms(72), "what is left of 150 ms after 40, and 0.3 of these");
    }

    #[test]
    fn an_idle_upstream_is_not_silent() {
        let mut silence = Silence::new(ms(0));
        silence.look(ms(1000), 1000, 0.0, true);
        silence.look(ms(1900), 1000, 1000.0, false);
        assert_eq!(silence.lasts(ms(1904), 1000.0), ms(0));
        assert_eq!(silence.forgiven(), ms(0));
    }
}
