//! The one-way delay bound, learnt from round trips if it is not declared.
//!
//! Only round trips can be measured. One bounds the one-way delay, but only once it is over: so at first only a
//! response proves an arrival, which is always safe. After many responses without a rejection the bound is half of the
//! recent longest round trip, plus a tenth: most delays are about the same in both directions. A rejection revokes it
//! at once. The next attempt is nearer to the full round trip and comes after four times as many responses; after five
//! rejections there is none. A request in flight for longer than any before it raises the bound meanwhile.
//!
//! A declared bound may be exceeded too: a packet is retransmitted, a machine stalls. Such a request has a round trip
//! above nearly all recent ones; then only its response proves the arrival.

use serde::{Deserialize, Serialize};

use super::Nanos;

/// The one-way delay bound of a service, for all its keys.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct OneWayDelayBound {
    fixed: Option<Nanos>,
    learns: bool,
    /// Longest round trip of this interval of responses, and of the previous one.
    longest_round_trips: [Nanos; 2],
    responses: u32,
    /// Slowest round trips of this interval, and of the previous one; the slowest first.
    slowest_round_trips: [[Nanos; SLOW_RESPONSES]; 2],
    /// Responses since the last rejection, and the number required for a bound.
    responses_since_rejection: u64,
    required_responses: u64,
    /// Percentage of the longest round trip; 100: no bound.
    percent: u64,
    next_percent: u64,
    /// Time of the last revocation.
    revoked_at: Nanos,
}

const INTERVAL_RESPONSES: u32 = 500;
const MIN_RESPONSES_TO_LEARN: u64 = 500;
/// Number of unusually slow responses in an interval: 2%.
const SLOW_RESPONSES: usize = 10;
/// Minimum number of responses for an estimate of the usual round trip.
const MIN_USUAL_RESPONSES: u32 = 250;
const FIRST_PERCENT: u64 = 50;
const MARGIN_PERCENT: u64 = 110;
/// Percentages above this gain nothing over waiting for the response.
const MAX_PERCENT: u64 = 98;

impl OneWayDelayBound {
    /// A declared bound.
    pub fn fixed(bound: Nanos) -> Self {
        Self { fixed: Some(bound), ..Self::unknown() }
    }

    /// No bound: only responses prove arrivals.
    pub fn unknown() -> Self {
        Self {
            fixed: None,
            learns: false,
            longest_round_trips: [Nanos::ZERO; 2],
            responses: 0,
            slowest_round_trips: [[Nanos::ZERO; SLOW_RESPONSES]; 2],
            responses_since_rejection: 0,
            required_responses: MIN_RESPONSES_TO_LEARN,
            percent: 100,
            next_percent: FIRST_PERCENT,
            revoked_at: Nanos::ZERO,
        }
    }

    /// A bound learnt from round trips and rejections.
    pub fn learnt() -> Self {
        Self { learns: true, ..Self::unknown() }
    }

    /// The bound; None: only responses prove arrivals.
    pub fn bound(&self) -> Option<Nanos> {
        let learnt = || {
            let longest = u128::from(self.longest_round_trip().0);
            let bound = longest * u128::from(self.percent * MARGIN_PERCENT) / 10_000;
            (self.percent < 100).then(|| Nanos(u64::try_from(bound).unwrap_or(u64::MAX)))
        };
        self.fixed.or_else(learnt)
    }

    /// Takes in the round trip of a response that was not a rejection.
    pub fn responded(&mut self, round_trip: Nanos) {
        self.responses += 1;
        if self.responses > INTERVAL_RESPONSES {
            self.responses = 1;
            self.longest_round_trips = [Nanos::ZERO, self.longest_round_trips[0]];
            self.slowest_round_trips = [[Nanos::ZERO; SLOW_RESPONSES], self.slowest_round_trips[0]];
        }
        if let Some(index) = self.slowest_round_trips[0].iter().position(|slow| *slow < round_trip) {
            self.slowest_round_trips[0][index..].rotate_right(1);
            self.slowest_round_trips[0][index] = round_trip;
        }
        self.outstanding_for(round_trip);
        self.responses_since_rejection += 1;
        if self.learns && self.responses_since_rejection >= self.required_responses {
            self.percent = self.next_percent;
        }
    }

    /// 98th percentile of the round trips, if the bound is declared and so may be exceeded; NEVER: unknown.
    pub fn usual_round_trip(&self) -> Nanos {
        let slow = match self.slowest_round_trips[1][SLOW_RESPONSES - 1] {
            // In the first interval: 2% of the responses so far; the first ones are the quick ones.
            Nanos::ZERO => self.slowest_round_trips[0]
                .get(self.responses as usize / 50)
                .filter(|_| self.responses >= MIN_USUAL_RESPONSES)
                .copied(),
            slow => Some(slow),
        };
        slow.filter(|_| self.fixed.is_some()).unwrap_or(Nanos::NEVER)
    }

    /// Longest recent round trip; a learnt bound is a part of it.
    pub fn longest_round_trip(&self) -> Nanos {
        self.longest_round_trips[0].max(self.longest_round_trips[1])
    }

    /// Takes in the age of a request in flight.
    pub fn outstanding_for(&mut self, age: Nanos) {
        self.longest_round_trips[0] = self.longest_round_trips[0].max(age);
    }

    /// Takes in a rejection, or an overtaken request, sent at `sent`; revokes a learnt bound. True if a learnt bound
    /// may be the cause.
    pub fn rejected(&mut self, now: Nanos, sent: Nanos) -> bool {
        self.responses_since_rejection = 0;
        if self.percent < 100 {
            self.next_percent = (self.percent + 100) / 2;
            self.required_responses = self.required_responses.saturating_mul(4);
            self.percent = 100;
            self.learns = self.next_percent < MAX_PERCENT;
            self.revoked_at = now;
        }
        sent < self.revoked_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    #[test]
    fn a_bound_is_learnt_from_many_responses_and_raised_at_once() {
        let mut bound = OneWayDelayBound::learnt();
        for n in 0..MIN_RESPONSES_TO_LEARN {
            assert_eq!(bound.bound(), None);
            bound.responded(ms(n % 101));
        }
        assert_eq!(bound.bound(), Some(ms(55)));
        bound.outstanding_for(ms(200));
        assert_eq!(bound.bound(), Some(ms(110)));
    }

    #[test]
    fn a_rejection_revokes_the_bound_and_few_are_ever_risked() {
        let mut bound = OneWayDelayBound::learnt();
        let mut rejections = 0;
        for n in 1..1_000_000 {
            bound.responded(ms(100));
            if bound.bound().is_some() {
                assert!(bound.rejected(ms(n), ms(n - 1)));
                assert!(!bound.rejected(ms(n), ms(n)), "a later request has another cause");
                assert_eq!(bound.bound(), None);
                rejections += 1;
            }
        }
        assert_eq!(rejections, 5);
    }

    #[test]
    fn the_usual_round_trip_is_the_98th_percentile_of_the_last_interval() {
        let mut bound = OneWayDelayBound::fixed(ms(50));
        for n in 0..INTERVAL_RESPONSES {
            assert_eq!(bound.usual_round_trip() == Nanos::NEVER, n < MIN_USUAL_RESPONSES);
            // Five of 500 are stalled.
            bound.responded(if n % 100 == 7 { ms(1000) } else { ms(u64::from(n % 100)) });
        }
        bound.responded(ms(1000));
        assert_eq!(bound.usual_round_trip(), ms(99));
        let mut learnt = OneWayDelayBound::learnt();
        (0..2 * INTERVAL_RESPONSES).for_each(|_| learnt.responded(ms(100)));
        assert_eq!(learnt.usual_round_trip(), Nanos::NEVER, "a learnt bound covers all round trips");
    }

    #[test]
    fn old_round_trips_are_forgotten() {
        let mut bound = OneWayDelayBound::learnt();
        bound.responded(ms(1000));
        (0..2 * INTERVAL_RESPONSES).for_each(|_| bound.responded(ms(10)));
        assert_eq!(bound.bound(), Some(Nanos(5_500_000)));
        let mut declared = OneWayDelayBound::fixed(ms(50));
        assert!(!declared.rejected(ms(2), ms(1)));
        assert_eq!(declared.bound(), Some(ms(50)));
    }
}
