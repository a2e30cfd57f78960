//! Stalls of the upstream's host: intervals without any completion, though many were expected.
//!
//! When the host of an upstream stands still for some tens of milliseconds, all calls in flight end later by that time,
//! and the arrivals of that time come at once. That looks like a service which gets slower with more calls, and like a
//! queue that does not move; but fewer calls would have waited as long. So this time counts neither as queue wait nor
//! as service time, within bounds: an upstream that stalls for long, or often, has no capacity then.

use std::collections::VecDeque;

use super::service_rate::ServiceRate;
use weir_base::Nanos;

/// Shortest stall. Equal to the queue wait under overload: a shorter one does not matter.
const MIN_STALL: Nanos = Nanos::from_millis(5);
/// Completions expected in a stall, at least: ten expected and none seen is chance once in e^10.
const MIN_EXPECTED_DEPARTURES: f64 = 10.0;
/// Longest time excluded at once. With 100 ms some calls were rejected between two stalls in a row in the simulation
/// (`upstream-stalls`).
const MAX_FORGIVEN: Nanos = Nanos::from_millis(150);
/// Fraction of all time that may be excluded; stalls of 20 ms five times per second are 0.1. From `upstream-stalls`.
const FORGIVEN_FRACTION: f64 = 0.3;
/// Recent stalls kept, for the calls in flight during them. Chosen: more than fit into [`MAX_FORGIVEN`] at once.
const MAX_STALLS: usize = 16;

/// Time without completions.
#[derive(Clone, Copy, Debug)]
struct UpstreamStall {
    begin: Nanos,
    end: Nanos,
}

/// Stalls of one upstream. All times are without pauses of weir's own process ([`super::Pulse`]).
#[derive(Clone, Debug)]
pub(super) struct StallAllowance {
    /// Ended calls when that number last grew.
    departures: u64,
    last_departure_at: Nanos,
    /// Calls in flight at that time: those that could end.
    in_flight: u32,
    /// Time that may still be excluded, in ns.
    credit: f64,
    /// Excluded time so far.
    forgiven: Nanos,
    /// Recent stalls.
    stalls: VecDeque<UpstreamStall>,
}

impl StallAllowance {
    pub(super) fn new(now: Nanos) -> Self {
        Self {
            departures: 0,
            last_departure_at: now,
            in_flight: 0,
            credit: MAX_FORGIVEN.0 as f64,
            forgiven: Nanos::ZERO,
            stalls: VecDeque::new(),
        }
    }

    /// Records the numbers of ended calls so far and of calls in flight.
    pub(super) fn observe(&mut self, now: Nanos, departures: u64, in_flight: u32, rate: &ServiceRate) {
        if departures == self.departures && in_flight > 0 {
            return;
        }
        let stall = self.current_stall(now, rate);
        if departures != self.departures && stall > Nanos::ZERO {
            self.forgiven += stall;
            self.credit -= stall.0 as f64;
            self.stalls.push_back(UpstreamStall { begin: now - stall, end: now });
            if self.stalls.len() > MAX_STALLS {
                self.stalls.pop_front();
            }
        }
        self.credit =
            (self.credit + FORGIVEN_FRACTION * (now - self.last_departure_at).0 as f64).min(MAX_FORGIVEN.0 as f64);
        (self.departures, self.last_departure_at, self.in_flight) = (departures, now, in_flight);
    }

    /// Excluded part of the stall that lasts now; zero without one.
    pub(super) fn current_stall(&self, now: Nanos, rate: &ServiceRate) -> Nanos {
        let stall = now - self.last_departure_at;
        // With fewer calls in flight than before, fewer can end.
        let possible_per_s = f64::from(self.in_flight) / rate.mean_service_time().as_secs_f64();
        let expected = stall.as_secs_f64() * rate.responses_per_s().min(possible_per_s);
        if stall < MIN_STALL || expected < MIN_EXPECTED_DEPARTURES {
            Nanos::ZERO
        } else {
            Nanos((stall.0 as f64).min(self.credit) as u64)
        }
    }

    /// Excluded time so far.
    pub(super) fn forgiven(&self) -> Nanos {
        self.forgiven
    }

    /// Time since then that lies in stalls.
    pub(super) fn forgiven_since(&self, started: Nanos) -> Nanos {
        let overlap = |stall: &UpstreamStall| stall.end - started.max(stall.begin);
        self.stalls.iter().fold(Nanos::ZERO, |sum, stall| sum + overlap(stall))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::{ServiceOutcome, Slots};

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    /// 1,000 responses per second, each after 10 ms.
    fn service_rate() -> ServiceRate {
        let (mut rate, slots) = (ServiceRate::new(ms(0)), Slots::new(100));
        for at in 0..1000 {
            assert!(slots.try_acquire(0) && !slots.release(ServiceOutcome::Responded));
            rate.record(ms(at), ms(10));
            rate.update(ms(at + 1), &slots);
        }
        rate
    }

    #[test]
    fn a_stall_is_forgiven_and_an_outage_is_not() {
        let (mut stall, rate) = (StallAllowance::new(ms(0)), service_rate());
        stall.observe(ms(1000), 1000, 10, &rate);
        assert_eq!(stall.current_stall(ms(1004), &rate), ms(0));
        stall.observe(ms(1020), 1000, 30, &rate);
        assert_eq!(stall.current_stall(ms(1040), &rate), ms(40), "arrivals do not end it");
        stall.observe(ms(1040), 1001, 10, &rate);
        assert_eq!(
            (stall.forgiven(), stall.forgiven_since(ms(900)), stall.forgiven_since(ms(1030))),
            (ms(40), ms(40), ms(10))
        );
        stall.observe(ms(3000), 1002, 10, &rate);
        assert_eq!(stall.forgiven_since(ms(1040)), ms(122), "the rest of 150 ms after 40, and 0.3 of these");
    }

    #[test]
    fn fewer_calls_than_before_and_none_are_not_a_stall() {
        let (mut stall, rate) = (StallAllowance::new(ms(0)), service_rate());
        stall.observe(ms(1000), 1000, 1, &rate);
        assert_eq!(stall.current_stall(ms(1040), &rate), ms(0), "one call of 10 ms is not ten");
        stall.observe(ms(1900), 1000, 0, &rate);
        assert_eq!((stall.current_stall(ms(1904), &rate), stall.forgiven()), (ms(0), ms(0)));
    }
}
