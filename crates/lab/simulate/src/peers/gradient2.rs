//! Gradient of the recent response time against its long-term average.
//!
//! Port of `Gradient2Limit` of Netflix concurrency-limits 0.5 in its `WindowedLimit`, configured as in its
//! documentation: initially 20, range 20 to 200; every second with at least ten responses, limit x clamp(1.5 x long /
//! short, 0.5, 1) + 4, smoothed by 0.2. The long RTT is an exponential mean over 600 windows (the plain mean of the
//! first ten) and shrinks by 5% while it is over twice the short one. No update while less than half of the limit is
//! used.

use super::LimitAlgorithm;
use crate::gate::{SimulatedOutcome, UpstreamCompletion};
use weir_base::Nanos;

const MIN_LIMIT: f64 = 20.0;
const MAX_LIMIT: f64 = 200.0;
const QUEUE_SIZE: f64 = 4.0;
const SMOOTHING: f64 = 0.2;
const RTT_TOLERANCE_RATIO: f64 = 1.5;
const LONG_RTT_WINDOWS: f64 = 600.0;
const WARM_UP_WINDOWS: f64 = 10.0;
const WINDOW: Nanos = Nanos::SECOND;
const MIN_SAMPLES: u64 = 10;
const MIN_SAMPLE_RTT: Nanos = Nanos(100_000);

#[derive(Clone, Debug)]
pub(crate) struct Gradient2 {
    limit: f64,
    long_rtt: f64,
    windows: f64,
    warm_up: f64,
    /// End of the current window; the fields below are of this window.
    window_end: Nanos,
    samples: u64,
    rtt_sum: f64,
    max_in_flight: u32,
}

impl Default for Gradient2 {
    fn default() -> Self {
        let (until, count, sum) = (Nanos::ZERO, 0, 0.0);
        Self {
            limit: MIN_LIMIT,
            long_rtt: 0.0,
            windows: 0.0,
            warm_up: 0.0,
            window_end: until,
            samples: count,
            rtt_sum: sum,
            max_in_flight: 0,
        }
    }
}

impl Gradient2 {
    fn update_limit(&mut self, short: f64) {
        if self.windows < WARM_UP_WINDOWS {
            self.windows += 1.0;
            self.warm_up += short;
            self.long_rtt = self.warm_up / self.windows;
        } else {
            let weight = 2.0 / (LONG_RTT_WINDOWS + 1.0);
            self.long_rtt = self.long_rtt * (1.0 - weight) + short * weight;
        }
        let long = self.long_rtt;
        if long / short > 2.0 {
            self.long_rtt *= 0.95;
        }
        if f64::from(self.max_in_flight) < self.limit / 2.0 {
            return;
        }
        let gradient = (RTT_TOLERANCE_RATIO * long / short).clamp(0.5, 1.0);
        let next = self.limit * gradient + QUEUE_SIZE;
        self.limit = (self.limit * (1.0 - SMOOTHING) + next * SMOOTHING).clamp(MIN_LIMIT, MAX_LIMIT);
    }
}

impl LimitAlgorithm for Gradient2 {
    fn completed(&mut self, now: Nanos, ended: &UpstreamCompletion) {
        let took = now - ended.start;
        // A dropped call counts for the number in flight, not for the response time.
        self.max_in_flight = self.max_in_flight.max(ended.in_flight_at_start);
        if took < MIN_SAMPLE_RTT || ended.outcome == SimulatedOutcome::Rejected {
            return;
        }
        self.samples += 1;
        self.rtt_sum += took.0 as f64;
        if now > self.window_end {
            self.window_end = now + WINDOW;
            if self.samples >= MIN_SAMPLES {
                self.update_limit(self.rtt_sum / self.samples as f64);
            }
            (self.samples, self.rtt_sum, self.max_in_flight) = (0, 0.0, 0);
        }
    }

    fn limit(&self) -> Option<u32> {
        Some(self.limit as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Responses of `took_ms` every 10 ms, from `from_s` for a number of windows.
    fn respond(gradient: &mut Gradient2, from_s: u64, windows: u64, took_ms: u64) {
        for at in 0..windows * 100 {
            let now = Nanos::from_secs(from_s) + Nanos::from_millis(10 * at);
            let start = now - Nanos::from_millis(took_ms);
            gradient.completed(
                now,
                &UpstreamCompletion {
                    start,
                    in_flight_at_start: gradient.limit as u32,
                    lag: Nanos::ZERO,
                    outcome: SimulatedOutcome::Responded,
                },
            );
        }
    }

    #[test]
    fn it_grows_by_a_fifth_of_the_queue_per_window_and_shrinks_beyond_the_tolerance() {
        let mut gradient = Gradient2 { limit: 50.0, ..Gradient2::default() };
        respond(&mut gradient, 10, 11, 100);
        // The first window ends with its first response, which is too few.
        assert!((gradient.limit - 58.0).abs() < 0.81, "{}", gradient.limit);
        let before = gradient.limit;
        respond(&mut gradient, 30, 3, 140);
        assert!(gradient.limit > before + 0.7, "{}", gradient.limit);
        let before = gradient.limit;
        respond(&mut gradient, 40, 4, 300);
        assert!(gradient.limit < before - 5.0, "{}", gradient.limit);
    }
}
