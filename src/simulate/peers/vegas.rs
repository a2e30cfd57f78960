//! The queue at the upstream, from the least response time that was ever seen; TCP Vegas' idea.
//!
//! As `VegasLimit` of Netflix' concurrency-limits 0.5: 20 at first, at most 1000; with queue = limit x (1 - least / last)
//! it grows by 6 log10 while the queue is at most log10 of the limit, by log10 while it is under 3 log10, and goes down by
//! log10 above 6 log10, at each answer; a drop takes log10; nothing happens while less than half is used. Each 15 to 30
//! x limit answers the next one's time becomes the least.

use super::LimitAlgorithm;
use crate::decide::Nanos;
use crate::decide::dice::Dice;
use crate::simulate::gate::{SimulatedOutcome, UpstreamCompletion};

const MAX_LIMIT: f64 = 1000.0;
const PROBE_MULTIPLIER: f64 = 30.0;

#[derive(Clone, Debug)]
pub(in crate::simulate) struct Vegas {
    limit: f64,
    min_rtt_ns: f64,
    since_probe: f64,
    jitter: f64,
    dice: Dice,
}

impl Vegas {
    pub(in crate::simulate) fn new(seed: u64) -> Self {
        let mut vegas =
            Self { limit: 20.0, min_rtt_ns: 0.0, since_probe: 0.0, jitter: 0.0, dice: Dice::new(seed, 0x7e9a5) };
        vegas.draw_jitter();
        vegas
    }

    fn draw_jitter(&mut self) {
        self.jitter = 0.5 + self.dice.unit() / 2.0;
    }

    fn next_limit(&self, took: f64, ended: &UpstreamCompletion) -> Option<f64> {
        let log = self.limit.log10().trunc().max(1.0);
        let queue = (self.limit * (1.0 - self.min_rtt_ns / took)).ceil();
        if ended.outcome != SimulatedOutcome::Responded {
            Some(self.limit - log)
        } else if f64::from(ended.in_flight_at_start) * 2.0 < self.limit {
            None
        } else if queue <= log {
            Some(self.limit + 6.0 * log)
        } else if queue < 3.0 * log {
            Some(self.limit + log)
        } else if queue > 6.0 * log {
            Some(self.limit - log)
        } else {
            None
        }
    }
}

impl LimitAlgorithm for Vegas {
    fn completed(&mut self, now: Nanos, ended: &UpstreamCompletion) {
        let took = (now - ended.start).0.max(1) as f64;
        self.since_probe += 1.0;
        if self.jitter * PROBE_MULTIPLIER * self.limit <= self.since_probe {
            self.draw_jitter();
            (self.since_probe, self.min_rtt_ns) = (0.0, took);
        } else if self.min_rtt_ns == 0.0 || took < self.min_rtt_ns {
            self.min_rtt_ns = took;
        } else if let Some(next) = self.next_limit(took, ended) {
            self.limit = next.clamp(1.0, MAX_LIMIT);
        }
    }

    fn limit(&self) -> Option<u32> {
        Some(self.limit as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A limit of 100, so that log10 is 2, and a least time of 90 ms.
    fn vegas() -> Vegas {
        Vegas { limit: 100.0, min_rtt_ns: 90e6, jitter: 1.0, ..Vegas::new(1) }
    }

    fn after(took_ms: u64, beside: u32, how: SimulatedOutcome) -> f64 {
        let mut vegas = vegas();
        vegas.completed(
            Nanos::from_millis(took_ms),
            &UpstreamCompletion { start: Nanos::ZERO, in_flight_at_start: beside, lag: Nanos::ZERO, outcome: how },
        );
        vegas.limit
    }

    #[test]
    fn the_queue_is_what_the_limit_follows() {
        // 100 x (1 - 90 / 91) is 2 when rounded up, of 94 ms 5, of 100 ms 10, of 105 ms 15.
        let answered = |took_ms| after(took_ms, 100, SimulatedOutcome::Responded);
        assert_eq!([91, 94, 100, 105].map(answered), [112.0, 102.0, 100.0, 98.0]);
        assert_eq!(
            (after(91, 49, SimulatedOutcome::Responded), after(91, 49, SimulatedOutcome::DeadlineExceeded)),
            (100.0, 98.0)
        );
    }

    #[test]
    fn the_least_time_is_forgotten_now_and_then() {
        let mut vegas = vegas();
        let mut times = Vec::new();
        for _ in 0..20_000 {
            vegas.completed(
                Nanos::from_millis(100),
                &UpstreamCompletion {
                    start: Nanos::ZERO,
                    in_flight_at_start: 100,
                    lag: Nanos::ZERO,
                    outcome: SimulatedOutcome::Responded,
                },
            );
            times.push(vegas.min_rtt_ns);
        }
        assert_eq!((times[0], times[4000]), (90e6, 100e6));
    }
}
