//! Queue at the upstream, estimated from the minimum response time, as in TCP Vegas.
//!
//! Port of `VegasLimit` of Netflix concurrency-limits 0.5: initially 20, at most 1000. With queue = limit x (1 - min /
//! last) and log = log10(limit), each response adds 6 log while queue <= log, adds log while it is under 3 log, and
//! subtracts log above 6 log; a drop subtracts log. No update while less than half of the limit is used. Every 15 to 30
//! x limit responses the next response time becomes the minimum.

use super::LimitAlgorithm;
use crate::gate::{SimulatedOutcome, UpstreamCompletion};
use weir_base::Nanos;
use weir_base::rng::SeededRng;

const MAX_LIMIT: f64 = 1000.0;
const PROBE_MULTIPLIER: f64 = 30.0;

#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    limit: f64,
    min_rtt_ns: f64,
    since_probe: f64,
    jitter: f64,
    rng: SeededRng,
}

impl Vegas {
    pub(crate) fn new(seed: u64) -> Self {
        let mut vegas =
            Self { limit: 20.0, min_rtt_ns: 0.0, since_probe: 0.0, jitter: 0.0, rng: SeededRng::new(seed, 0x7e9a5) };
        vegas.draw_jitter();
        vegas
    }

    fn draw_jitter(&mut self) {
        self.jitter = 0.5 + self.rng.unit() / 2.0;
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

    /// Limit of 100, so that log10 is 2, and a minimum of 90 ms.
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
    fn the_limit_follows_the_estimated_queue() {
        // 100 x (1 - 90 / 91) is 2 when rounded up, of 94 ms 5, of 100 ms 10, of 105 ms 15.
        let responded = |took_ms| after(took_ms, 100, SimulatedOutcome::Responded);
        assert_eq!([91, 94, 100, 105].map(responded), [112.0, 102.0, 100.0, 98.0]);
        assert_eq!(
            (after(91, 49, SimulatedOutcome::Responded), after(91, 49, SimulatedOutcome::DeadlineExceeded)),
            (100.0, 98.0)
        );
    }

    #[test]
    fn the_minimum_is_reset_from_time_to_time() {
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
