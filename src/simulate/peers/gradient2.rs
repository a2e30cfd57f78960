//! The response time of late against that of a long while.
//!
//! As `Gradient2Limit` of Netflix' concurrency-limits 0.5 inside its `WindowedLimit`, as its documentation sets it up: 20
//! at first, at least 20, at most 200; once a second, if there were ten answers: limit x clamp(1.5 x long / short, 0.5, 1) +
//! 4, of which a fifth counts; long is an exponential mean over 600 windows, the plain mean of the first ten, and shrinks
//! by a twentieth while it is over twice the short one; nothing happens while less than half is used.

use super::Algorithm;
use crate::decide::Nanos;
use crate::simulate::gate::{Ended, How};

const LEAST: f64 = 20.0;
const MOST: f64 = 200.0;
const QUEUE: f64 = 4.0;
const SMOOTHING: f64 = 0.2;
const TOLERANCE: f64 = 1.5;
const LONG: f64 = 600.0;
const WARM_UP: f64 = 10.0;
const WINDOW: Nanos = Nanos::SECOND;
const ENOUGH: u64 = 10;
const TOO_SHORT: Nanos = Nanos(100_000);

#[derive(Clone, Debug)]
pub(in crate::simulate) struct Gradient2 {
    limit: f64,
    long: f64,
    windows: f64,
    warm_up: f64,
    /// Of this window.
    until: Nanos,
    count: u64,
    sum: f64,
    beside: u32,
}

impl Default for Gradient2 {
    fn default() -> Self {
        let (until, count, sum) = (Nanos::ZERO, 0, 0.0);
        Self { limit: LEAST, long: 0.0, windows: 0.0, warm_up: 0.0, until, count, sum, beside: 0 }
    }
}

impl Gradient2 {
    fn measured(&mut self, short: f64) {
        if self.windows < WARM_UP {
            self.windows += 1.0;
            self.warm_up += short;
            self.long = self.warm_up / self.windows;
        } else {
            let weight = 2.0 / (LONG + 1.0);
            self.long = self.long * (1.0 - weight) + short * weight;
        }
        let long = self.long;
        if long / short > 2.0 {
            self.long *= 0.95;
        }
        if f64::from(self.beside) < self.limit / 2.0 {
            return;
        }
        let gradient = (TOLERANCE * long / short).clamp(0.5, 1.0);
        let next = self.limit * gradient + QUEUE;
        self.limit = (self.limit * (1.0 - SMOOTHING) + next * SMOOTHING).clamp(LEAST, MOST);
    }
}

impl Algorithm for Gradient2 {
    fn ended(&mut self, now: Nanos, ended: &Ended) {
        let took = now - ended.began;
        // What was dropped says how many there were, not how long an answer takes.
        self.beside = self.beside.max(ended.beside);
        if took < TOO_SHORT || ended.how == How::Refused {
            return;
        }
        self.count += 1;
        self.sum += took.0 as f64;
        if now > self.until {
            self.until = now + WINDOW;
            if self.count >= ENOUGH {
                self.measured(self.sum / self.count as f64);
            }
            (self.count, self.sum, self.beside) = (0, 0.0, 0);
        }
    }

    fn limit(&self) -> Option<u32> {
        Some(self.limit as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of so many ms, each 10 ms, in a row that goes on from `from_s` for so many windows.
    fn answers(gradient: &mut Gradient2, from_s: u64, windows: u64, took_ms: u64) {
        for at in 0..windows * 100 {
            let now = Nanos::from_secs(from_s) + Nanos::from_millis(10 * at);
            let began = now - Nanos::from_millis(took_ms);
            gradient.ended(now, &Ended { began, beside: gradient.limit as u32, lag: Nanos::ZERO, how: How::Answered });
        }
    }

    #[test]
    fn it_grows_by_a_fifth_of_the_queue_a_window_and_shrinks_once_times_are_half_as_long_again() {
        let mut gradient = Gradient2 { limit: 50.0, ..Gradient2::default() };
        answers(&mut gradient, 10, 11, 100);
        // The first window ends with its first answer, which is not enough.
        assert!((gradient.limit - 58.0).abs() < 0.81, "{}", gradient.limit);
        let before = gradient.limit;
        answers(&mut gradient, 30, 3, 140);
        assert!(gradient.limit > before + 0.7, "{}", gradient.limit);
        let before = gradient.limit;
        answers(&mut gradient, 40, 4, 300);
        assert!(gradient.limit < before - 5.0, "{}", gradient.limit);
    }
}
