//! The response time of late against one that is measured with next to nobody at the upstream.
//!
//! As Envoy's adaptive concurrency filter with its gradient controller, set up as its documentation does: each 100 ms limit
//! x clamp(1.25 x unhindered / p90, 0.5, 2) + its root, from 3 to 1000. Unhindered is the p90 of 50 answers with a limit of
//! 3, at the start, then each 60 s (up to 10 % later by dice), and when the limit was 3 in five windows one after the other.

use super::Algorithm;
use crate::decide::Nanos;
use crate::decide::dice::Dice;
use crate::simulate::gate::Ended;

const PERCENTILE: f64 = 0.9;
const WINDOW: Nanos = Nanos::from_millis(100);
const PROBE_EACH: Nanos = Nanos::from_secs(60);
const JITTER: f64 = 0.1;
const PROBE_CALLS: usize = 50;
const LEAST: f64 = 3.0;
const MOST: f64 = 1000.0;
const BUFFER: f64 = 0.25;
const AT_LEAST_FOR: u32 = 5;

#[derive(Clone, Debug)]
pub(in crate::simulate) struct Envoy {
    limit: f64,
    /// While it probes: the limit that holds afterwards, ...
    deferred: Option<f64>,
    /// ... and since when.
    epoch: Nanos,
    unhindered: f64,
    samples: Vec<u64>,
    window_end: Nanos,
    probe_at: Nanos,
    at_least: u32,
    dice: Dice,
}

impl Envoy {
    pub(in crate::simulate) fn new(seed: u64) -> Self {
        Self {
            limit: LEAST,
            deferred: Some(LEAST),
            epoch: Nanos::ZERO,
            unhindered: 0.0,
            samples: Vec::new(),
            window_end: Nanos::ZERO,
            probe_at: Nanos::NEVER,
            at_least: 0,
            dice: Dice::new(seed, 0xe04),
        }
    }

    /// The percentile of the samples, which are forgotten.
    fn aggregate(&mut self) -> f64 {
        let at = ((self.samples.len() as f64 * PERCENTILE) as usize).min(self.samples.len() - 1);
        let (_, value, _) = self.samples.select_nth_unstable(at);
        let value = (*value).max(1) as f64;
        self.samples.clear();
        value
    }

    fn set(&mut self, limit: f64) {
        let still = limit == LEAST && self.limit == LEAST && self.deferred.is_none();
        self.at_least = if still { self.at_least + 1 } else { 0 };
        self.limit = limit;
    }

    fn probe(&mut self, now: Nanos) {
        self.deferred = Some(self.limit);
        self.set(LEAST);
        self.samples.clear();
        (self.epoch, self.probe_at) = (now, Nanos::NEVER);
    }

    fn probed(&mut self, now: Nanos) {
        self.unhindered = self.aggregate();
        let deferred = self.deferred.unwrap_or(LEAST);
        self.set(deferred);
        self.deferred = None;
        let jitter = PROBE_EACH.as_secs_f64() * JITTER * self.dice.unit();
        self.probe_at = now + PROBE_EACH + Nanos::from_secs_f64(jitter);
        self.window_end = now + WINDOW;
    }
}

impl Algorithm for Envoy {
    fn look(&mut self, now: Nanos) {
        if self.deferred.is_some() {
            return;
        }
        if now >= self.window_end {
            self.window_end = now + WINDOW;
            if !self.samples.is_empty() {
                let gradient = ((1.0 + BUFFER) * self.unhindered / self.aggregate()).clamp(0.5, 2.0);
                let limit = self.limit * gradient;
                self.set((limit + limit.sqrt()).trunc().clamp(LEAST, MOST));
            }
        }
        if now >= self.probe_at || self.at_least >= AT_LEAST_FOR {
            self.probe(now);
        }
    }

    fn ended(&mut self, now: Nanos, ended: &Ended) {
        // A refusal by the upstream and a timeout are measured as any answer is.
        if ended.began < self.epoch {
            return;
        }
        self.samples.push((now - ended.began).0);
        if self.deferred.is_some() && self.samples.len() >= PROBE_CALLS {
            self.probed(now);
        }
    }

    fn limit(&self) -> Option<u32> {
        Some(self.limit as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::gate::How;

    fn ended(envoy: &mut Envoy, now_ms: u64, took_ms: u64) {
        let now = Nanos::from_millis(now_ms);
        envoy.look(now);
        envoy.ended(
            now,
            &Ended { began: now - Nanos::from_millis(took_ms), beside: 3, lag: Nanos::ZERO, how: How::Answered },
        );
    }

    #[test]
    fn it_measures_with_three_at_a_time_then_follows_the_gradient_then_measures_again() {
        let mut envoy = Envoy::new(1);
        let mut now = 1000;
        for _ in 0..50 {
            assert_eq!(envoy.limit(), Some(3));
            ended(&mut envoy, now, 100);
            now += 1;
        }
        assert_eq!(envoy.unhindered, 100e6);
        // Unhindered, it grows by 5 / 4 and its root: 3 x 1.25 + root(3.75) = 5.68.
        ended(&mut envoy, now + 10, 100);
        envoy.look(Nanos::from_millis(now + 100));
        assert_eq!(envoy.limit(), Some(5));
        envoy.limit = 100.0;
        // Twice as long: 100 x 0.625 + root(62.5).
        ended(&mut envoy, now + 150, 200);
        envoy.look(Nanos::from_millis(now + 250));
        assert_eq!(envoy.limit(), Some(70));
        envoy.look(Nanos::from_secs(60));
        assert_eq!(envoy.limit(), Some(70));
        envoy.look(Nanos::from_secs(68));
        assert_eq!(envoy.limit(), Some(3));
        // What began before does not count.
        ended(&mut envoy, 68_010, 200);
        assert!(envoy.samples.is_empty());
    }
}
