//! Gradient of the response time against one measured at minimal concurrency.
//!
//! Port of Envoy's adaptive concurrency filter with the gradient controller, configured as in its documentation: every
//! 100 ms limit x clamp(1.25 x min RTT / p90, 0.5, 2) + sqrt(limit), range 3 to 1000. The min RTT is the p90 of 50
//! responses at a limit of 3, measured at the start, then every 60 s (plus up to 10% jitter), and after five
//! consecutive windows at the minimum limit.

use super::LimitAlgorithm;
use crate::gate::UpstreamCompletion;
use weir_base::Nanos;
use weir_base::rng::SeededRng;

const SAMPLE_QUANTILE: f64 = 0.9;
const WINDOW: Nanos = Nanos::from_millis(100);
const PROBE_INTERVAL: Nanos = Nanos::from_secs(60);
const JITTER_FRACTION: f64 = 0.1;
const PROBE_SAMPLES: usize = 50;
const MIN_LIMIT: f64 = 3.0;
const MAX_LIMIT: f64 = 1000.0;
const BUFFER_FRACTION: f64 = 0.25;
const MAX_WINDOWS_AT_MIN_LIMIT: u32 = 5;

#[derive(Clone, Debug)]
pub(crate) struct Envoy {
    limit: f64,
    /// Limit after the current probe; none without a probe.
    deferred_limit: Option<f64>,
    /// Start of the last probe; samples of earlier calls are ignored.
    epoch: Nanos,
    min_rtt_ns: f64,
    samples: Vec<u64>,
    window_end: Nanos,
    probe_at: Nanos,
    windows_at_min_limit: u32,
    rng: SeededRng,
}

impl Envoy {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            limit: MIN_LIMIT,
            deferred_limit: Some(MIN_LIMIT),
            epoch: Nanos::ZERO,
            min_rtt_ns: 0.0,
            samples: Vec::new(),
            window_end: Nanos::ZERO,
            probe_at: Nanos::NEVER,
            windows_at_min_limit: 0,
            rng: SeededRng::new(seed, 0xe04),
        }
    }

    /// Percentile of the samples, which are then cleared.
    fn aggregate(&mut self) -> f64 {
        let at = ((self.samples.len() as f64 * SAMPLE_QUANTILE) as usize).min(self.samples.len() - 1);
        let (_, value, _) = self.samples.select_nth_unstable(at);
        let value = (*value).max(1) as f64;
        self.samples.clear();
        value
    }

    fn set_limit(&mut self, limit: f64) {
        let at_minimum = limit == MIN_LIMIT && self.limit == MIN_LIMIT && self.deferred_limit.is_none();
        self.windows_at_min_limit = if at_minimum { self.windows_at_min_limit + 1 } else { 0 };
        self.limit = limit;
    }

    fn start_probe(&mut self, now: Nanos) {
        self.deferred_limit = Some(self.limit);
        self.set_limit(MIN_LIMIT);
        self.samples.clear();
        (self.epoch, self.probe_at) = (now, Nanos::NEVER);
    }

    fn finish_probe(&mut self, now: Nanos) {
        self.min_rtt_ns = self.aggregate();
        let deferred = self.deferred_limit.unwrap_or(MIN_LIMIT);
        self.set_limit(deferred);
        self.deferred_limit = None;
        let jitter = PROBE_INTERVAL.as_secs_f64() * JITTER_FRACTION * self.rng.unit();
        self.probe_at = now + PROBE_INTERVAL + Nanos::from_secs_f64(jitter);
        self.window_end = now + WINDOW;
    }
}

impl LimitAlgorithm for Envoy {
    fn tick(&mut self, now: Nanos) {
        if self.deferred_limit.is_some() {
            return;
        }
        if now >= self.window_end {
            self.window_end = now + WINDOW;
            if !self.samples.is_empty() {
                let gradient = ((1.0 + BUFFER_FRACTION) * self.min_rtt_ns / self.aggregate()).clamp(0.5, 2.0);
                let limit = self.limit * gradient;
                self.set_limit((limit + limit.sqrt()).trunc().clamp(MIN_LIMIT, MAX_LIMIT));
            }
        }
        if now >= self.probe_at || self.windows_at_min_limit >= MAX_WINDOWS_AT_MIN_LIMIT {
            self.start_probe(now);
        }
    }

    fn completed(&mut self, now: Nanos, ended: &UpstreamCompletion) {
        // Rejections by the upstream and timeouts are sampled like responses.
        if ended.start < self.epoch {
            return;
        }
        self.samples.push((now - ended.start).0);
        if self.deferred_limit.is_some() && self.samples.len() >= PROBE_SAMPLES {
            self.finish_probe(now);
        }
    }

    fn limit(&self) -> Option<u32> {
        Some(self.limit as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::SimulatedOutcome;

    fn ended(envoy: &mut Envoy, now_ms: u64, took_ms: u64) {
        let now = Nanos::from_millis(now_ms);
        envoy.tick(now);
        envoy.completed(
            now,
            &UpstreamCompletion {
                start: now - Nanos::from_millis(took_ms),
                in_flight_at_start: 3,
                lag: Nanos::ZERO,
                outcome: SimulatedOutcome::Responded,
            },
        );
    }

    #[test]
    fn it_probes_then_follows_the_gradient_then_probes_again() {
        let mut envoy = Envoy::new(1);
        let mut now = 1000;
        for _ in 0..50 {
            assert_eq!(envoy.limit(), Some(3));
            ended(&mut envoy, now, 100);
            now += 1;
        }
        assert_eq!(envoy.min_rtt_ns, 100e6);
        // Without a queue it grows by 5/4 and the root: 3 x 1.25 + sqrt(3.75) = 5.68.
        ended(&mut envoy, now + 10, 100);
        envoy.tick(Nanos::from_millis(now + 100));
        assert_eq!(envoy.limit(), Some(5));
        envoy.limit = 100.0;
        // At twice the response time: 100 x 0.625 + sqrt(62.5).
        ended(&mut envoy, now + 150, 200);
        envoy.tick(Nanos::from_millis(now + 250));
        assert_eq!(envoy.limit(), Some(70));
        envoy.tick(Nanos::from_secs(60));
        assert_eq!(envoy.limit(), Some(70));
        envoy.tick(Nanos::from_secs(68));
        assert_eq!(envoy.limit(), Some(3));
        // Calls that started before the probe do not count.
        ended(&mut envoy, 68_010, 200);
        assert!(envoy.samples.is_empty());
    }
}
